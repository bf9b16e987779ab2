"""When to trust an estimate: notices in plain words that say what was seen and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualt.results.diagnostics import UNINFORMATIVE, Diagnostics
from dualt.results.fit import Fit
from dualt.rows.confidence import FAR_TOO_SURE
from dualt.transition import NEAR_SINGULAR

FEW_LABELS = 30
LOW_ANCHOR_CONFIDENCE = 0.4
IN_SAMPLE_AGREEMENT = 0.98
# A row moved this much by chance alone (mean Σ|T − T̂|, between 0 and 2) says little.
MUCH_CHANCE = 0.35
# Half of Σ|mean probability − share of the label|, which is next to nothing for a classifier of these labels.
OTHER_SHARES = 0.1
# How much more often the unsure half of the examples must disagree with its labels than the sure half.
STEEP = 0.2
_HARDLY_INVERTIBLE = 30.0
# Estimators that take the rows' labels for news: the classifier must not know them.
_COUNT_LABELS = ("confident-joint", "clean-count", "joint")


@dataclass(frozen=True)
class Notice:
    """One thing worth knowing about an estimate: what was seen, and what to do."""

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


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
    if out_of_fold is False and estimator in _COUNT_LABELS:
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
    if figures.calibration < FAR_TOO_SURE and estimator in _COUNT_LABELS:
        yield Notice(
            "far-too-sure",
            "The classifier is far surer of its predictions than their agreement with the labels bears out"
            f" ({figures.agreement:.1%} of the rows).",
            "Either it knows better and the labels are wrong, or its own errors pass for wrong labels, and the noise"
            " rate is too high. See what remains when it is calibrated (scikit-learn's CalibratedClassifierCV) or"
            " trained for less long, or check a random sample (dualt audit).",
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
            f" the examples that count for a class, {int(np.median(figures.support)):,} in the median, are few for"
            f" {len(figures.support)} classes.",
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
            "Nothing, or next to nothing, was counted for such a class; without verified labels, its row of the matrix"
            " is a guess. Train the classifier longer, or collect more labels of it.",
        )
    if figures.share_distance > OTHER_SHARES:
        yield Notice(
            "other-shares",
            "On average the probabilities speak of classes in other shares than the labels have"
            f" (they differ by {figures.share_distance:.0%}).",
            "Was the classifier fitted with class weights, to resampled rows or to other data? Wrong labels are found"
            " by the probability of the given label: use a classifier that was fitted to these labels as they are."
            " RobustClassifier takes such weights into account.",
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
