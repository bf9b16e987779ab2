"""When to trust an estimate: figures, and notices in plain words that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
# Estimators that take the rows' labels for news.
_NEED_OUT_OF_FOLD = ("confident-joint", "top-count", "clean-count", "joint")


@dataclass(frozen=True)
class Notice:
    """One thing worth knowing about an estimate: what was seen, and what to do."""

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


@dataclass(frozen=True)
class Diagnostics:
    """Figures that tell how far an estimate can be trusted.

    Attributes
    ----------
    condition_number : float
        Of the matrix; errors of the posterior are amplified by up to this much when it is inverted.
    label_counts, predicted_counts : (n_classes,)
        How often each class is given as a label, and predicted.
    support : (n_classes,)
        Number of labels that each row of the matrix rests on.
    anchor_confidence : (n_classes,)
        Largest probability that any example has of each class.
    agreement : float
        Share of examples whose prediction is the given label.
    double_counting : float
        How much the anchors' posteriors already hold the noise that T♠ counts: 0 if they are
        certain (dual-T is right), 1 if they equal the counts (dual-T then returns T @ T).
    chance_error : float
        Expected Σ|T − T̂| of a row by sampling alone, from the labels that it rests on.
    information : float
        Share of the given labels' entropy that the prediction explains: 0 for a classifier at chance.
    steepness : float
        By how much more often labels differ from the likeliest clean class in the unsure half of the
        examples than in the sure half.
    """

    condition_number: float
    label_counts: NDArray[np.int64]
    predicted_counts: NDArray[np.int64]
    support: NDArray[np.int64]
    anchor_confidence: NDArray[np.float64]
    agreement: float
    double_counting: float
    chance_error: float
    information: float
    steepness: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}


def diagnose(fit: Fit, summary: PosteriorSummary) -> Diagnostics:
    """Compute the figures for an estimate."""
    t_club = summary.anchor_rows[:, 0].astype(np.float64)
    return Diagnostics(
        condition_number=float(np.linalg.cond(fit.transition)),
        label_counts=summary.label_counts,
        predicted_counts=summary.predicted_counts,
        support=fit.support,
        anchor_confidence=np.diagonal(t_club).copy(),
        agreement=summary.agreement,
        double_counting=_double_counting(t_club, summary),
        chance_error=_chance_error(fit),
        information=_information(summary.counts),
        steepness=_steepness(fit, summary),
    )


def _chance_error(fit: Fit) -> float:
    """Return the mean over rows of Σ_j √(2/π · T(1−T) / support): the mean deviation of each share, added up."""
    spread = np.sqrt(2 / np.pi * fit.transition * (1 - fit.transition)).sum(axis=1)
    return float(np.mean(spread / np.sqrt(np.maximum(fit.support, 1))))


def _information(counts: NDArray[np.int64]) -> float:
    """Return I(prediction; given label) / H(given label), less the (C−1)² / 2n that chance alone gives."""
    joint = counts / counts.sum()
    predicted, given = joint.sum(axis=1), joint.sum(axis=0)
    entropy = -float(given[given > 0] @ np.log(given[given > 0]))
    rows, columns = np.nonzero(joint)
    cells = joint[rows, columns]
    mutual = float(cells @ np.log(cells / (predicted[rows] * given[columns])))
    chance = (np.count_nonzero(predicted) - 1) * (np.count_nonzero(given) - 1) / (2 * counts.sum())
    return max(0.0, mutual - chance) / entropy if entropy > 0 else 0.0


def _steepness(fit: Fit, summary: PosteriorSummary) -> float:
    """Return the difference of the two halves' rates on the sample, less three standard errors of it."""
    clean = early_posterior(summary.sample_rows, fit.transition.astype(summary.sample_rows.dtype))
    if len(clean) < 4:
        return 0.0
    differs = clean.argmax(axis=1) != summary.sample_labels
    order = np.argsort(-clean.max(axis=1), kind="stable")
    sure, unsure = (differs[half].mean() for half in np.array_split(order, 2))
    error = np.sqrt((sure * (1 - sure) + unsure * (1 - unsure)) * 2 / len(clean))
    return float(max(0.0, unsure - sure - 3 * error))


def _double_counting(t_club: NDArray[np.float64], summary: PosteriorSummary) -> float:
    """Return 1 − |T♣ − T♠| / |T♠ − I| over the predicted classes, within 0 and 1; 0 if T♠ shows hardly any noise."""
    counts = summary.counts
    predicted = counts.sum(axis=1) > 0
    t_spade = counts[predicted] / counts[predicted].sum(axis=1, keepdims=True)
    noise = np.abs(t_spade - np.eye(len(counts))[predicted]).sum()
    if noise < 0.1 * predicted.sum():
        return 0.0
    return float(np.clip(1 - np.abs(t_club[predicted] - t_spade).sum() / noise, 0, 1))


def notices(
    estimator: str, fit: Fit, figures: Diagnostics, names: Sequence[str], out_of_fold: bool | None = None
) -> Iterator[Notice]:
    """Yield what a user of this estimate should know, most serious first."""
    yield from _about_labels(figures, names)
    yield from _about_predictions(figures, names)
    yield from _about_matrix(fit, figures, names)
    if out_of_fold is False and estimator in _NEED_OUT_OF_FOLD:
        yield Notice(
            "in-sample",
            f"The classifier was trained on these very rows, and {estimator} counts labels that it has learnt by heart.",
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
    if figures.information < UNINFORMATIVE and not figures.condition_number <= _HARDLY_INVERTIBLE:
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
            f" {int(np.median(figures.support)):,} labels a row are few for {len(figures.support)} classes.",
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
    if not figures.condition_number <= NEAR_SINGULAR:
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


def _listed(classes: NDArray[np.intp], names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(repr(names[c]) for c in classes[:limit])
    return shown if len(classes) <= limit else f"{shown} and {len(classes) - limit} more"
