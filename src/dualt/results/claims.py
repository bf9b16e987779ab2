"""Claims about the share of wrong labels, and whether the classifier is good enough for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import shorten
from dualt.results.diagnostics import information
from dualt.transition import NEAR_SINGULAR

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate

# Estimators that do not rest on the classifier: on true labels, the features of the examples, or several votes.
_VOTES = "votes"
_BY_OTHER_MEANS = ("oracle", "hoc", _VOTES)
_COUNT_LABELS = ("spade", "confident-joint", "clean-count", "views", "selective", "joint")
# Standard errors by which the agreement with the labels must differ from that of chance, and the share of the labels'
# entropy that the predictions must explain otherwise.
_SURE, _UNINFORMATIVE = 3.0, 0.02
# Below this rate a decimal is printed; below the other the rate is not.
_FEW, _HARDLY_ANY = 0.02, 0.005
_FEW_LABELS, _IN_SAMPLE_AGREEMENT = 30, 0.98
# Half of Σ|mean probability − share of the label|, near zero for a classifier fitted on these labels.
_OTHER_SHARES = 0.1
_HARD = "all probabilities are 0 or 1, as predictions are"


def headline(estimate: TransitionEstimate, level: float = 0.95) -> str:
    """Return the finding: about how many labels look wrong, at least and, after an audit, at most."""
    rate, (low, high) = estimate.noise_rate, estimate.noise_rate_interval(level)
    labels, look, are, few = "the labels", "look", "are", "Fewer"
    if estimate.estimator == _VOTES and estimate.fit.rate_interval is not None:  # not the matrix of one annotator
        labels, look, are, few = "the consensus", "looks", "is", "Less"
    if high < 1:
        interval = "" if low == high else f" ({level:.0%} interval {percent(low)} to {percent(high)})"
        return f"{percent(rate)} of {labels} {are} wrong{interval}."
    unit = 0.001 if rate < _FEW else 0.01  # a lower end is rounded down
    least = unit * (low // unit)
    if estimate.doubt is not None:
        surely = f" At least {percent(least)} of {labels} {look} wrong." if least and labels == "the consensus" else ""
        return f"No noise rate can be claimed: {estimate.doubt}.{surely}"
    about = f"About {percent(rate)} of {labels} {look} wrong"
    if estimate.fit.rate_interval is None:
        return f"{about} by {estimate.estimator}."
    if rate < _HARDLY_ANY and not least:
        return f"{few} than {percent(_HARDLY_ANY)} of {labels} {look} wrong."
    if least or estimate.estimator == _VOTES:
        return f"{about} (at least {percent(least)})."
    cause = "the models' errors" if estimate.fit.determined else "overlapping classes"
    likeliest = f"No noise is claimed: overlapping classes can explain these labels (likeliest rate {percent(rate)})."
    likeliest += " If an expert could always tell the class, pass --determined (in Python determined=True)."
    return likeliest if estimate.fit.determined is False else f"{about} (at least 0 %: {cause} may explain them)."


def footnote(estimate: TransitionEstimate) -> str:
    """Return what the headline does not cover."""
    if estimate.noise_rate_interval(0.95)[1] < 1:
        return "The interval was measured on checked labels, and holds whatever the classifier gets wrong."
    if estimate.estimator == _VOTES:
        return "Errors that the annotators share do not show. Check 100 to be sure: dualt audit."
    return "Errors that the classifier repeats do not show. Check 100 to be sure: dualt audit."


def wilson(share: Any, spread: Any) -> tuple[Any, Any]:
    """Return Wilson's interval of a share, {s : (share − s)² ≤ spread · s(1 − s)}; the spread is z² / n with n rows."""
    centre, half = share + spread / 2, np.sqrt(spread * share * (1 - share) + spread**2 / 4)
    return np.clip((centre - half) / (1 + spread), 0, share), np.clip((centre + half) / (1 + spread), share, 1)


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

    It is not if it gives predictions instead of probabilities, if it agrees with the labels no more often than always
    giving the most frequent one would and explains next to nothing of them, or if fewer labels contradict it than the
    matrix takes to be wrong; but several models may contradict a label that their mean agrees with. `unseen`,
    probabilities and class numbers of other rows, is what to judge it by where those of the estimate are in sample.
    """
    if estimate.audit is not None:
        return None
    if estimate.estimator in _BY_OTHER_MEANS:
        return estimate.fit.doubt
    if estimate.estimator != "spade" and (estimate.rows_summary.sample_rows.max(axis=1) == 1).all():
        return _HARD
    counts = estimate.rows_summary.counts
    if unseen is not None:
        pairs = unseen[0].argmax(axis=1) * len(counts) + unseen[1]
        counts = np.bincount(pairs, minlength=counts.size).reshape(counts.shape)
    n_rows = counts.sum()
    predicted, given = counts.sum(axis=1) / n_rows, counts.sum(axis=0) / n_rows
    agreement, constant = float(np.trace(counts) / n_rows), float(given.max())
    by_chance = constant + _SURE * np.sqrt(constant * (1 - constant) / n_rows)
    if agreement <= by_chance and (agreement < given @ predicted or information(counts) < _UNINFORMATIVE):
        return (
            f"the classifier agrees with {percent(agreement)} of the labels, and always giving the most frequent one"
            f" would agree with {percent(constant)}"
        )
    error = np.sqrt((agreement * (1 - agreement) + 1 / n_rows) / n_rows)
    if estimate.estimator != "views" and estimate.noise_rate > 1 - agreement + _SURE * error:
        return (
            f"by the matrix of {estimate.estimator}, {percent(estimate.noise_rate)} of the labels are wrong, but the"
            f" classifier contradicts only {percent(1 - agreement)} of them"
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


# What was seen and what to do, most serious first; `classes` are those concerned.
_NOTICES = {
    "hard-predictions": (
        "{doubt}.",
        "Pass probabilities (predict_proba); with hard predictions only spade is defined.",
    ),
    "low-agreement": (
        "The predictions agree with {agreement:.1%} of the given labels, less often than by chance ({chance:.1%}).",
        "Check that rows and classes of both are in the same order, and whether labels count from 1.",
    ),
    "weak-classifier": (
        "{doubt}.",
        "Train a better classifier before you use the matrix, and check what is flagged by hand.",
    ),
    "few-labels": (
        f"Fewer than {_FEW_LABELS} examples have the label {{classes}}.",
        "Their rows of the matrix are uncertain. Collect more labels, or leave out classes that have none.",
    ),
    "class-never-predicted": (
        "No row has its largest probability in class {classes}.",
        "Its row of the matrix is a guess. Use a better classifier, or collect more labels of the class.",
    ),
    "off-diagonal-row": (
        "Examples of class {classes} are given another label more often than their own.",
        "Look at these examples: too few or too mixed to learn? With your own probabilities, check their columns.",
    ),
    "other-shares": (
        "On average the probabilities have other class shares than the labels (they differ by {share_distance:.0%}).",
        "Use a classifier fitted to these labels as they are, without class weights or resampling.",
    ),
    "near-singular": (
        "The matrix is near singular (condition number {condition:.1e}): some classes leave the same labels.",
        "Their true class cannot be recovered. Merge them, or check the labels of a few examples by hand.",
    ),
    "in-sample": (
        "The classifier was trained on these very rows, and {estimator} counts labels that it has memorised.",
        "Use out-of-fold probabilities (cross-validation), or dual-t.",
    ),
    "looks-in-sample": (
        "The predictions agree with {agreement:.1%} of the given labels: nearly clean, or memorised in training.",
        "If the classifier was trained on these very rows, use out-of-fold probabilities (cross-validation).",
    ),
}


def notices(estimate: TransitionEstimate) -> tuple[Notice, ...]:
    """Return what a user of this estimate should know, most serious first."""
    figures, names, estimator = estimate.diagnostics, estimate.class_names, estimate.estimator
    labels, predicted, agreement = figures.label_counts, figures.predicted_counts, figures.agreement
    chance = float(labels / labels.sum() @ (predicted / labels.sum()))
    below_chance = agreement < chance - _SURE * np.sqrt(chance * (1 - chance) / labels.sum())
    condition = 1.0 if figures.condition_number is None else figures.condition_number
    doubt = estimate.doubt or ""
    concerned = {
        "few-labels": labels < _FEW_LABELS,
        "class-never-predicted": predicted == 0,
        "off-diagonal-row": estimate.transition.argmax(axis=1) != np.arange(len(names)),
    }
    applies = {code: bool(classes.any()) for code, classes in concerned.items()} | {
        "hard-predictions": doubt == _HARD,
        "low-agreement": below_chance,
        "weak-classifier": doubt not in ("", _HARD) and not below_chance and estimator != "votes",
        "other-shares": figures.share_distance > _OTHER_SHARES,
        "near-singular": not condition <= NEAR_SINGULAR,  # NaN is too
        "in-sample": estimate.out_of_fold is False and estimator in _COUNT_LABELS,
        "looks-in-sample": estimate.out_of_fold is None and agreement >= _IN_SAMPLE_AGREEMENT,
    }
    values: dict[str, Any] = {"agreement": agreement, "chance": chance, "estimator": estimator, "condition": condition}
    values |= {"share_distance": figures.share_distance, "doubt": f"{doubt[:1].upper()}{doubt[1:]}"}
    found = []
    for code, (message, advice) in _NOTICES.items():
        if applies[code]:
            values["classes"] = shorten([names[place] for place in np.flatnonzero(concerned.get(code, ()))])
            found.append(Notice(code, message.format(**values), advice.format(**values)))
    return tuple(found)
