"""When to trust an estimate: figures, and notices in plain words that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.results.fit import Fit
from dualt.rows.summary import PosteriorSummary
from dualt.transition import NEAR_SINGULAR, early_posterior

FEW_LABELS = 30
LOW_ANCHOR_CONFIDENCE = 0.4
IN_SAMPLE_AGREEMENT = 0.98
# A row moved this much by chance alone (mean Σ|T − T̂|, between 0 and 2) says little.
MUCH_CHANCE = 0.35
UNINFORMATIVE = 0.02
# How much more often the unsure half of the examples must disagree with its labels than the sure half.
STEEP = 0.2
_HARDLY_INVERTIBLE = 30.0
# Up to so many classes the singular values, or an LU decomposition, of a matrix take about a second.
_EXACT_UP_TO, _ESTIMATED_UP_TO = 1_000, 4_000
_BAND_ENTRIES = 1 << 17
# Estimators that take the rows' labels for news.
_NEED_OUT_OF_FOLD = ("confident-joint", "top-count", "clean-count", "joint")
FIGURES = (
    "condition_number", "label_counts", "predicted_counts", "support", "anchor_confidence", "agreement",
    "double_counting", "chance_error", "information", "steepness",
)  # fmt: skip


@dataclass(frozen=True)
class Notice:
    """One thing worth knowing about an estimate: what was seen, and what to do."""

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


class Diagnostics:
    """Figures that tell how far an estimate can be trusted, each computed when it is first asked for.

    Attributes
    ----------
    label_counts, predicted_counts : (n_classes,)
        How often each class is given as a label, and predicted.
    support : (n_classes,)
        Number of labels that each row of the matrix rests on.
    agreement : float
        Share of examples whose prediction is the given label.
    """

    def __init__(self, fit: Fit, summary: PosteriorSummary) -> None:
        self._transition, self._summary = fit.transition, summary
        self.label_counts = summary.label_counts
        self.predicted_counts = summary.predicted_counts
        self.support = fit.support
        self.agreement = summary.agreement

    @cached_property
    def condition_number(self) -> float | None:
        """How much errors of the posterior are amplified, at most, when the matrix is inverted.

        Above 1,000 classes an estimate from an LU decomposition, above 4,000 None.
        """
        matrix = self._transition
        if len(matrix) <= _EXACT_UP_TO:
            return float(np.linalg.cond(matrix))
        if len(matrix) > _ESTIMATED_UP_TO:
            return None
        from scipy.linalg import lapack

        reciprocal, _ = lapack.dgecon(lapack.dgetrf(matrix)[0], np.abs(matrix).sum(axis=0).max())
        return 1 / float(reciprocal) if reciprocal > 0 else float("inf")

    @property
    def hard(self) -> bool:
        """Whether every row of the sample has a probability of one."""
        return bool((self._summary.sample_rows.max(axis=1) == 1).all())

    @cached_property
    def anchor_confidence(self) -> NDArray[np.float64]:
        """Largest probability that any example has of each class, (n_classes,)."""
        return np.diagonal(self._summary.anchor_rows[:, 0]).astype(np.float64)

    @cached_property
    def double_counting(self) -> float:
        """How much the anchors' posteriors already hold the noise that T♠ counts: 1 − |T♣ − T♠| / |T♠ − I|.

        Over the predicted classes, within 0 and 1. 0 if the anchors are certain (dual-T is right), or if T♠ shows
        hardly any noise; 1 if they equal the counts (dual-T then returns T @ T).
        """
        counts, totals = self._summary.counts, self._summary.predicted_counts
        predicted = np.flatnonzero(totals)
        noise = 2 * float((1 - np.diagonal(counts)[predicted] / totals[predicted]).sum())  # |T♠ − I|
        if noise < 0.1 * len(predicted):
            return 0.0
        apart = 0.0
        for band in np.array_split(predicted, -(-counts.size // _BAND_ENTRIES)):
            t_spade = counts[band] / totals[band, None]
            apart += float(np.abs(self._summary.anchor_rows[band, 0] - t_spade).sum())
        return float(np.clip(1 - apart / noise, 0, 1))

    @cached_property
    def chance_error(self) -> float:
        """Expected Σ|T − T̂| of a row by sampling alone: the mean over rows of Σ_j √(2/π · T(1−T) / support)."""
        # A band of rows at a time, which stays in the cache.
        bands = np.array_split(self._transition, -(-self._transition.size // _BAND_ENTRIES))
        spread = np.concatenate([np.sqrt(2 / np.pi * band * (1 - band)).sum(axis=1) for band in bands])
        return float(np.mean(spread / np.sqrt(np.maximum(self.support, 1))))

    @cached_property
    def information(self) -> float:
        """Share of the given labels' entropy that the prediction explains: 0 for a classifier at chance.

        I(prediction; given label) / H(given label), less the (C−1)² / 2n that chance alone gives.
        """
        counts = self._summary.counts
        predicted, given = counts.sum(axis=1) / counts.sum(), counts.sum(axis=0) / counts.sum()
        entropy = -float(given[given > 0] @ np.log(given[given > 0]))
        filled = np.flatnonzero(counts.ravel() != 0)
        rows, columns = np.divmod(filled, len(counts))
        cells = counts.ravel()[filled] / counts.sum()
        mutual = float(cells @ np.log(cells / (predicted[rows] * given[columns])))
        chance = (np.count_nonzero(predicted) - 1) * (np.count_nonzero(given) - 1) / (2 * counts.sum())
        return max(0.0, mutual - chance) / entropy if entropy > 0 else 0.0

    @cached_property
    def steepness(self) -> float:
        """By how much more often labels differ from the likeliest clean class in the unsure half than in the sure half.

        On the sample, less three standard errors of the difference. Above 4,000 classes 0: the sample then has too few
        rows to tell.
        """
        rows, labels = self._summary.sample_rows, self._summary.sample_labels
        if len(rows) < 4 or rows.shape[1] > _ESTIMATED_UP_TO:
            return 0.0
        clean = early_posterior(rows, self._transition.astype(rows.dtype))
        differs = clean.argmax(axis=1) != labels
        order = np.argsort(-clean.max(axis=1), kind="stable")
        sure, unsure = (differs[half].mean() for half in np.array_split(order, 2))
        error = np.sqrt((sure * (1 - sure) + unsure * (1 - unsure)) * 2 / len(clean))
        return float(max(0.0, unsure - sure - 3 * error))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {name: np.asarray(getattr(self, name)).tolist() for name in FIGURES}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> Diagnostics:
        """Return the figures that `to_dict` has returned."""
        found = cls.__new__(cls)
        for name in FIGURES:  # what is set is not computed
            value = figures[name]
            vars(found)[name] = np.asarray(value) if isinstance(value, list) else value
        return found


def notices(
    estimator: str, fit: Fit, figures: Diagnostics, names: Sequence[str], out_of_fold: bool | None = None
) -> Iterator[Notice]:
    """Yield what a user of this estimate should know, most serious first."""
    if figures.hard and estimator != "spade":
        yield Notice(
            "hard-predictions",
            "All probabilities are 0 or 1: these are predictions, not probabilities.",
            "Pass probabilities (predict_proba); with hard predictions only spade is defined.",
        )
    yield from _about_agreement(figures)
    yield from _about_labels(figures, names)
    yield from _about_predictions(figures, names)
    yield from _about_matrix(fit, figures, names)
    if out_of_fold is False and estimator in _NEED_OUT_OF_FOLD:
        yield Notice(
            "in-sample",
            f"The classifier was trained on these very rows, and {estimator} counts labels that it learnt by heart.",
            "Use out-of-fold probabilities (cross-validation), or dual-t.",
        )
    if out_of_fold is None and figures.agreement >= IN_SAMPLE_AGREEMENT:
        yield Notice(
            "looks-in-sample",
            f"The predictions agree with the given labels in {figures.agreement:.1%} of the rows.",
            "Either the labels are nearly clean, or the classifier was trained on these very rows and has"
            " learnt their errors by heart: use out-of-fold probabilities (cross-validation).",
        )
    yield from _about_trust(figures)
    if estimator == "dual-t" and figures.double_counting > 0.5:
        yield Notice(
            "double-counting",
            "The anchors' probabilities already look like the counted label frequencies"
            f" (double counting {figures.double_counting:.2f} of 1), so dual-T counts the noise twice.",
            "Prefer clean-count here: dual-T is meant for over-confident probabilities.",
        )


def _about_trust(figures: Diagnostics) -> Iterator[Notice]:
    if figures.information < UNINFORMATIVE and _exceeds(figures.condition_number, _HARDLY_INVERTIBLE):
        yield Notice(
            "uninformative",
            f"The predictions explain {figures.information:.1%} of what the labels vary: the classifier is at chance.",
            "No matrix can be read from such probabilities: train a better classifier first.",
        )
    elif figures.steepness > STEEP:
        yield Notice(
            "noise-rises",
            "Labels differ from the likeliest class far more often where the classifier is unsure"
            f" (by {figures.steepness:.0%} at least).",
            "Either hard examples under noise that is the same for all, or noise that grows with difficulty: these data"
            " alone cannot tell. In the second case the matrix describes the average example. clean-count is good in"
            " both, joint only in the first; a random sample of some 200 checked labels would decide (dualt audit).",
        )
    if figures.chance_error > MUCH_CHANCE:
        yield Notice(
            "few-labels-for-classes",
            f"By chance alone a row of the matrix is off by about {figures.chance_error:.2f} (of at most 2):"
            f" {int(np.median(figures.support)):,} labels per row are few for {len(figures.support)} classes.",
            "Trust noise rates and the largest entries, not the rest; more labels or fewer classes would help.",
        )


def _about_labels(figures: Diagnostics, names: Sequence[str]) -> Iterator[Notice]:
    absent = np.flatnonzero(figures.label_counts == 0)
    if len(absent):
        yield Notice(
            "class-without-labels",
            f"No row is given the label {_listed(absent, names)}.",
            "Nothing can be said about such a class: leave it out, or collect labels for it.",
        )
    few = np.flatnonzero((figures.label_counts > 0) & (figures.label_counts < FEW_LABELS))
    if len(few):
        yield Notice(
            "few-labels",
            f"Fewer than {FEW_LABELS} rows are given the label {_listed(few, names)}.",
            "Read those rows with their intervals, or collect more labels.",
        )


def _about_agreement(figures: Diagnostics) -> Iterator[Notice]:
    n_samples = figures.label_counts.sum()
    chance = float(figures.label_counts / n_samples @ (figures.predicted_counts / n_samples))
    if figures.agreement < chance - 3 * np.sqrt(chance * (1 - chance) / n_samples):
        yield Notice(
            "low-agreement",
            f"The predictions agree with the given labels in {figures.agreement:.1%} of the rows, less often than"
            f" chance would ({chance:.1%}).",
            "No estimator can be right here. Check that the rows and the classes of both are in the same order, and"
            " whether labels count from 1.",
        )


def _about_predictions(figures: Diagnostics, names: Sequence[str]) -> Iterator[Notice]:
    never = np.flatnonzero(figures.predicted_counts == 0)
    if len(never):
        yield Notice(
            "class-never-predicted",
            f"No row has its largest probability in class {_listed(never, names)}.",
            "Its row cannot be counted and is taken as noise-free where the estimator counts: train the"
            " classifier longer, or balance the classes.",
        )
    unsure = np.flatnonzero((figures.anchor_confidence < LOW_ANCHOR_CONFIDENCE) & (figures.predicted_counts > 0))
    if len(unsure):
        yield Notice(
            "low-anchor-confidence",
            f"Even the surest example of class {_listed(unsure, names)} has a probability below"
            f" {LOW_ANCHOR_CONFIDENCE:.0%}.",
            "Estimators that read anchors (t, dual-t) overstate the noise there: prefer one that counts, or"
            " a better classifier.",
        )


def _about_matrix(fit: Fit, figures: Diagnostics, names: Sequence[str]) -> Iterator[Notice]:
    if _exceeds(figures.condition_number, NEAR_SINGULAR):
        yield Notice(
            "near-singular",
            f"The matrix is near singular (condition number {figures.condition_number:.1e}).",
            "Some classes leave the same labels: their true class cannot be told from these data. Merge them,"
            " or check the labels of a few examples by hand.",
        )
    swapped = np.flatnonzero(fit.transition.argmax(axis=1) != np.arange(len(names)))
    if len(swapped):
        yield Notice(
            "off-diagonal-row",
            f"Examples of class {_listed(swapped, names)} are given another label more often than their own.",
            "Check that the columns of the probabilities are in the order of the classes, and that the"
            " classifier is not at chance.",
        )


def _exceeds(condition_number: float | None, limit: float) -> bool:
    return condition_number is not None and not condition_number <= limit  # nor is NaN


def _listed(classes: NDArray[np.intp], names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(repr(names[c]) for c in classes[:limit])
    return shown if len(classes) <= limit else f"{shown} and {len(classes) - limit} more"
