"""What may be said of the share of wrong labels, and whether the classifier is good enough to say it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.results.diagnostics import information
from dualt.transition import NEAR_SINGULAR

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate

# Estimators that do not rest on the classifier: on true labels, the features of the examples, or several votes.
_BY_OTHER_MEANS = ("oracle", "hoc", "votes")
# Standard errors by which the agreement with the labels must differ from that of chance, and the share of the labels'
# entropy that the predictions must explain otherwise.
_SURE, _UNINFORMATIVE = 3.0, 0.02
# Below this rate a decimal is printed.
_FEW = 0.02
_FEW_LABELS, _LOW_ANCHOR_CONFIDENCE, _IN_SAMPLE_AGREEMENT = 30, 0.4, 0.98
# Classes that a notice names.
_LISTED = 5
# A row moved this much by chance alone (mean Σ|T − T̂|, between 0 and 2) says little.
_MUCH_CHANCE = 0.35
# Half of Σ|mean probability − share of the label|, near zero for a classifier fitted on these labels.
_OTHER_SHARES = 0.1
_COUNT_LABELS = ("confident-joint", "clean-count", "joint")
REPEATED = "Errors that the classifier repeats do not show."
CHECK = "Check 100 to be sure: dualt audit"


def headline(estimate: TransitionEstimate, level: float = 0.95) -> str:
    """Return the finding in one sentence: a rate and what is claimed at least, or that the labels may all be right.

    An upper end is given only where one can be claimed: after an audit.
    """
    rate, (low, high) = estimate.noise_rate, estimate.noise_rate_interval(level)
    if high < 1:
        interval = "" if low == high else f" ({level:.0%} interval {percent(low)} to {percent(high)})"
        return f"{percent(rate)} of the labels are wrong{interval}."
    if estimate.doubt is not None:
        return f"No noise rate can be claimed: {estimate.doubt}."
    if estimate.fit.rate_interval is None:
        return f"About {percent(rate)} of the labels look wrong by {estimate.estimator}."
    # A small lower end is no claim: it is printed in whole per cent, in tenths where few labels look wrong.
    unit = 0.001 if rate < _FEW else 0.01
    if low >= unit:
        return f"About {percent(rate)} of the labels look wrong (at least {percent(unit * (low // unit))})."
    cause = "the models' own errors" if estimate.fit.determined else "classes that overlap"
    about = f"; about {percent(rate)} look wrong, no more than {cause} may explain" if rate >= 0.005 else ""
    return f"The labels may all be right{about}."


def footnote(estimate: TransitionEstimate) -> str:
    """Return what the headline does not cover."""
    if estimate.audit is not None:
        return "The interval was measured on checked labels, and holds whatever the classifier gets wrong."
    return f"{REPEATED} {CHECK}."


def percent(share: float) -> str:
    """Return a share in per cent: whole numbers, with one decimal below 2 %.

    Examples
    --------
    >>> percent(0.1372), percent(0.0072), percent(0.0), percent(1.0)
    ('14 %', '0.7 %', '0 %', '100 %')
    """
    return f"{100 * share:.1f} %" if 0 < share < _FEW else f"{100 * share:.0f} %"


def doubt(estimate: TransitionEstimate, unseen: tuple[NDArray[Any], NDArray[Any]] | None = None) -> str | None:
    """Return why the classifier is not good enough for a matrix or a rate; None if it is.

    It is not if it agrees with the labels no more often than always giving the most frequent one would and explains
    next to nothing of them, or if fewer labels contradict it than the matrix takes to be wrong.

    Parameters
    ----------
    estimate
    unseen : (probabilities, labels), optional
        Rows to judge the classifier by, where those of the estimate are in sample; labels as class numbers.
    """
    if estimate.audit is not None or estimate.estimator in _BY_OTHER_MEANS:
        return None
    counts = estimate.rows_summary.counts
    if unseen is not None:
        pairs = unseen[0].argmax(axis=1) * len(counts) + unseen[1]
        counts = np.bincount(pairs, minlength=counts.size).reshape(counts.shape)
    n_rows = counts.sum()
    agreement, constant = float(np.trace(counts) / n_rows), float(counts.sum(axis=0).max() / n_rows)
    by_chance = constant + _SURE * np.sqrt(constant * (1 - constant) / n_rows)
    independent = float(counts.sum(axis=0) / n_rows @ (counts.sum(axis=1) / n_rows))
    if agreement <= by_chance and (agreement < independent or information(counts) < _UNINFORMATIVE):
        return (
            f"the classifier agrees with {percent(agreement)} of the labels, and the most frequent label alone would"
            f" with {percent(constant)}"
        )
    error = np.sqrt((agreement * (1 - agreement) + 1 / n_rows) / n_rows)
    if estimate.noise_rate > 1 - agreement + _SURE * error:
        return (
            f"{estimate.estimator} takes {percent(estimate.noise_rate)} of the labels to be wrong, but the classifier"
            f" contradicts only {percent(1 - agreement)} of them"
        )
    return None


@dataclass(frozen=True)
class Notice:
    """One thing worth knowing about an estimate: what was seen, and what to do."""

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message} {self.advice}"


def notices(estimate: TransitionEstimate) -> Iterator[Notice]:
    """Yield what a user of this estimate should know, most serious first."""
    figures, names, estimator = estimate.diagnostics, estimate.class_names, estimate.estimator
    if figures.hard and estimator != "spade":
        yield Notice(
            "hard-predictions",
            "All probabilities are 0 or 1: these are predictions, not probabilities.",
            "Pass probabilities (predict_proba); with hard predictions only spade is defined.",
        )
    n_samples = figures.label_counts.sum()
    chance = float(figures.label_counts / n_samples @ (figures.predicted_counts / n_samples))
    if figures.agreement < chance - _SURE * np.sqrt(chance * (1 - chance) / n_samples):
        yield Notice(
            "low-agreement",
            f"The predictions agree with the given labels in {figures.agreement:.1%} of the rows, less often than"
            f" chance would ({chance:.1%}).",
            "No estimator can be right here. Check that the rows and the classes of both are in the same order, and"
            " whether labels count from 1.",
        )
    elif estimate.doubt is not None:
        yield Notice(
            "weak-classifier",
            f"{estimate.doubt[0].upper()}{estimate.doubt[1:]}.",
            "Do not use the matrix: train a better classifier first.",
        )
    yield from _about_classes(estimate)
    condition = figures.condition_number
    if condition is not None and not condition <= NEAR_SINGULAR:  # nor is NaN
        yield Notice(
            "near-singular",
            f"The matrix is near singular (condition number {condition:.1e}).",
            "Some classes leave the same labels, and their true class cannot be recovered. Merge them, or check the"
            " labels of a few examples by hand.",
        )
    if estimate.out_of_fold is False and estimator in _COUNT_LABELS:
        yield Notice(
            "in-sample",
            f"The classifier was trained on these very rows, and {estimator} counts labels that it has memorised.",
            "Use out-of-fold probabilities (cross-validation), or dual-t.",
        )
    if estimate.out_of_fold is None and figures.agreement >= _IN_SAMPLE_AGREEMENT:
        yield Notice(
            "looks-in-sample",
            f"The predictions agree with the given labels in {figures.agreement:.1%} of the rows.",
            "Either the labels are nearly clean, or the classifier was trained on these very rows and has memorised"
            " their errors: use out-of-fold probabilities (cross-validation).",
        )
    if figures.chance_error > _MUCH_CHANCE:
        yield Notice(
            "few-labels-for-classes",
            f"By chance alone a row of the matrix is off by about {figures.chance_error:.2f} (of at most 2):"
            f" {int(np.median(figures.support)):,} examples per class (median) are few for {len(names)} classes.",
            "Trust noise rates and the largest entries, not the rest; more labels or fewer classes would help.",
        )
    if estimator == "dual-t" and figures.double_counting > 0.5:
        yield Notice(
            "double-counting",
            "The anchors' probabilities already look like the counted label frequencies"
            f" (double counting {figures.double_counting:.2f} of 1), so dual-T counts the noise twice.",
            "Prefer clean-count here: dual-T is meant for over-confident probabilities.",
        )


def _about_classes(estimate: TransitionEstimate) -> Iterator[Notice]:
    figures, names, estimator = estimate.diagnostics, estimate.class_names, estimate.estimator
    labels, predicted = figures.label_counts, figures.predicted_counts
    low_anchors = (figures.anchor_confidence < _LOW_ANCHOR_CONFIDENCE) & (predicted > 0)
    for code, concerned, message, advice in (
        (
            "class-without-labels", labels == 0, "No row is given the label {}.",
            "Nothing can be said about such a class: leave it out, or collect labels for it.",
        ),
        (
            "few-labels", (labels > 0) & (labels < _FEW_LABELS),
            f"Fewer than {_FEW_LABELS} rows are given the label {{}}.",
            "Read those rows with their intervals, or collect more labels.",
        ),
        (
            "class-never-predicted", predicted == 0, "No row has its largest probability in class {}.",
            "Its row of the matrix is a guess. Train the classifier longer, or collect more labels of the class.",
        ),
        (
            "low-anchor-confidence", low_anchors & (estimator in ("t", "dual-t")),
            f"Even the surest example of class {{}} has a probability below {_LOW_ANCHOR_CONFIDENCE:.0%}.",
            f"{estimator} reads anchors, and overstates the noise there: prefer an estimator that counts.",
        ),
        (
            "off-diagonal-row", estimate.transition.argmax(axis=1) != np.arange(len(names)),
            "Examples of class {} are given another label more often than their own.",
            "Are the columns of the probabilities in the order of the classes? Is the classifier better than chance?",
        ),
    ):  # fmt: skip
        classes = np.flatnonzero(concerned)
        if len(classes):
            listed = ", ".join(repr(names[place]) for place in classes[:_LISTED])
            more = f" and {len(classes) - _LISTED} more" if len(classes) > _LISTED else ""
            yield Notice(code, message.format(f"{listed}{more}"), advice)
    if figures.share_distance > _OTHER_SHARES:
        yield Notice(
            "other-shares",
            "On average the probabilities have other class shares than the labels"
            f" (they differ by {figures.share_distance:.0%}).",
            "Was the classifier fitted with class weights, to resampled rows or to other data? Use one that was fitted"
            " to these labels as they are. RobustClassifier takes such weights into account.",
        )
