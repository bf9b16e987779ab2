"""Accuracy of a model against the unknown truth, from noisy test labels.

- By an audit: measured on verified rows, without any assumption; the given labels make the interval narrower.
- By bounds: agreement with the given labels ± the share of wrong labels, which a transition matrix bounds.

The mean of T⁻¹[given, predicted] is the accuracy only if, within a true class, the model's errors are independent of
the label's. A model that was trained on labels with the same noise repeats some of their errors, so it is not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.audit.design import Floats, Ints
from dualt.audit.intervals import ratio_intervals, share_intervals
from dualt.audit.verified import Audit, as_audit, check_rows
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.labels import Codes, LabelCoder, as_label_array, shorten, whole_values
from dualt.results.estimate import TransitionEstimate
from dualt.rows.chunks import surest, working_dtype
from dualt.transition import NEAR_SINGULAR, clean_prior, matrix_for
from dualt.validation import (
    align_labels,
    as_array,
    as_probability_table,
    check_fraction,
    check_n_classes,
    check_probability_chunk,
    check_transition,
)


class Accuracy(NamedTuple):
    """An accuracy (or a difference of two) against the truth, with its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class NoisyAccuracy:
    """An accuracy against the unknown truth, or the difference of two.

    Attributes
    ----------
    n_samples, n_verified, level
    agreement : float
        Accuracy against the given labels; for two models, the difference.
    bounds : (low, high), optional
        What follows from the share of wrong labels alone, at the level; None if nothing bounds that share.
    audited : Accuracy, optional
        Measured on the verified rows, without any assumption.
    difference : NoisyAccuracy, optional
        First model minus second, if there are two.
    """

    n_samples: int
    n_verified: int
    level: float
    agreement: float
    bounds: tuple[float, float] | None
    audited: Accuracy | None
    difference: NoisyAccuracy | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """What can be claimed: the interval of the audit, else the bounds."""
        return self.bounds if self.audited is None else (self.audited.low, self.audited.high)

    @property
    def better(self) -> str | None:
        """Which of two models is better, "first" or "second"; None if the interval contains 0."""
        interval = None if self.difference is None else self.difference.interval
        if interval is None or interval[0] <= 0 <= interval[1]:
            return None
        return "first" if interval[0] > 0 else "second"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists."""
        return {
            "n_samples": self.n_samples,
            "n_verified": self.n_verified,
            "level": self.level,
            "agreement": self.agreement,
            "interval": self.interval and list(self.interval),
            "bounds": self.bounds and list(self.bounds),
            "audited": self.audited and self.audited._asdict(),
            **({} if self.difference is None else {"difference": self.difference.to_dict(), "better": self.better}),
        }


def noisy_accuracy(
    predictions: Any,
    noisy_labels: Any,
    transition: Any = None,
    *,
    verified: Audit | tuple[Any, Any] | None = None,
    against: Any = None,
    class_names: Sequence[Any] | None = None,
    level: float = 0.95,
) -> NoisyAccuracy:
    """Return the accuracy of predictions against the unknown truth, from noisy test labels.

    Parameters
    ----------
    predictions : (n_samples,) or (n_samples, n_classes)
        Predicted classes, or probabilities. Named columns are matched with the classes, and an index with the labels'.
    noisy_labels : (n_samples,)
    transition
        A matrix, taken to be the true one, or an estimate: gives the bounds.
    verified
        (row positions, true labels) of a random sample that a person has checked, or an `Audit`: gives an interval
        without any assumption. Positions are those of `noisy_labels`.
    against
        Predictions of a second model, to compare.
    class_names
        In the order of the columns of predictions and, if it has no names, of the matrix's rows; by default those
        of the estimate, else those of the columns of probabilities, else those of the labels, sorted.

    Examples
    --------
    >>> import dualt
    >>> found = dualt.noisy_accuracy([0, 0, 1, 1] * 100, [0, 0, 1, 0] * 100, [[0.9, 0.1], [0.1, 0.9]])
    >>> found.agreement, [round(limit, 2) for limit in found.bounds]
    (0.75, [0.61, 0.89])
    """
    check_fraction(level, "level")
    if transition is None and verified is None:
        raise InputError("Expected a transition or verified labels to judge noisy labels by, got neither.")
    estimate = transition if isinstance(transition, TransitionEstimate) else None
    matrix = None if transition is None else check_transition(transition)
    models = [predictions] if against is None else [predictions, against]
    names = estimate.class_names if class_names is None and estimate is not None else class_names
    given, codes, coder = _encode(noisy_labels, models, names, None if matrix is None else len(matrix))
    checked = None
    if verified is not None:
        audit, true = check_rows(as_audit(verified), len(given), coder, given.take)
        checked = audit.rows, true
    rate = None if matrix is None else largest_rate(matrix_for(coder.names, transition), given, level)
    if rate is not None and estimate is not None:
        highest, counts = estimate.noise_rate_interval(level)[1], np.bincount(given, minlength=coder.n_classes)
        if sorted(counts) != sorted(estimate.diagnostics.label_counts):
            highest = max(highest, rate)  # other labels with the same noise
        rate = None if highest >= 1 else highest

    def judged(model: Codes, rival: Codes | None = None) -> NoisyAccuracy:
        agreement, bounds = float(_lead(model, rival, given).mean()), None
        if rate is not None:
            # A wrong label can hide one point for each model, and only rows on which they differ count.
            reach, most = (rate, 1.0) if rival is None else (2 * rate, float((model != rival).mean()))
            bounds = max(agreement - reach, 0.0 if rival is None else -most), min(agreement + reach, most)
        audited = checked and accuracy_by_audit(model, given, *checked, rival, level)
        n_verified = 0 if checked is None else len(checked[0])
        return NoisyAccuracy(len(given), n_verified, level, agreement, bounds, audited)

    first = judged(codes[0])
    return first if against is None else replace(first, difference=judged(codes[0], codes[1]))


def accuracy_by_audit(
    predicted: Codes, given: Codes, rows: Ints, true: Codes, rival: Codes | None = None, level: float = 0.95
) -> Accuracy:
    """Return the accuracy by verified rows, with the help of the agreement with the given labels.

    With a `rival`, a second model's classes, the lead over it is returned instead.
    """
    lead = _lead(predicted, rival, given)
    truth = _lead(predicted[rows], None if rival is None else rival[rows], true)
    if rival is None:
        found = share_intervals((truth[:, None], lead[rows, None], lead.mean(keepdims=True)), len(given), level)
        return Accuracy(*(float(value[0]) for value in found))
    # Where both models agree the lead is known to be 0; elsewhere, −1 to 1 becomes 0 to 1 for the interval.
    differ = (predicted != rival).astype(np.float64)
    reach, differs = float(differ.mean()), differ[rows, None]
    if not differs.any():
        return Accuracy(0.0, -reach, reach)
    lead = differ * (1 + lead) / 2
    part = differs * (1 + truth[:, None]) / 2, lead[rows, None], lead.mean(keepdims=True)
    found = ratio_intervals(part, (differs, differs, differ.mean(keepdims=True)), len(given), level)
    return Accuracy(*((2 * float(value[0]) - 1) * reach for value in found))


def largest_rate(matrix: Floats, given: Codes, level: float = 0.95) -> float:
    """Return an upper bound for the share of these labels that are wrong, if they were drawn through the matrix.

    With T·h = 1 − diag T, each row's 1[wrong] − h[given] has mean 0 whatever its true class, so the share of wrong
    labels differs from the mean of h[given] only by chance. Bernstein's inequality bounds that at any sample size, with
    probability (1 + level)/2. For a near singular matrix, the noise of the worst class stands for all.
    """
    n_samples, wrong = len(given), 1 - np.diagonal(matrix)
    expected = np.full(len(matrix), wrong.max())
    if np.linalg.cond(matrix) <= NEAR_SINGULAR:
        expected = np.linalg.solve(matrix, wrong)
    prior = clean_prior(matrix, np.bincount(given, minlength=len(matrix)))
    residual = 1 - np.eye(len(matrix)) - expected[None]
    variance = float(prior @ (matrix * residual**2).sum(axis=1))
    log_odds = -np.log((1 - level) / 2)
    step = residual[matrix > 0].max() * log_odds / (3 * n_samples)
    chance = step + np.sqrt(step**2 + 2 * variance * log_odds / n_samples)
    return float(np.clip(expected[given].mean() + chance, 0, 1))


def _lead(predicted: Codes, rival: Codes | None, target: Codes) -> Floats:
    """Return 1 where the prediction is right, minus 1 where its rival is."""
    right = (predicted == target).astype(np.float64)
    return np.asarray(right if rival is None else right - (rival == target))


def _encode(
    noisy_labels: Any, models: list[Any], names: Sequence[Any] | None, n_classes: int | None
) -> tuple[Codes, list[Codes], LabelCoder]:
    """Return given labels and predictions as codes, and their coder."""
    labels, read = as_label_array(noisy_labels), [_read(model, noisy_labels) for model in models]
    for predicted, columns in read:
        if len(predicted) != len(labels):
            raise LabelsError(f"Expected one prediction per label, got {len(predicted):,} and {len(labels):,}.")
        textual = columns is None and predicted.dtype.kind == labels.dtype.kind == "U"
        if textual and not np.isin(predicted, labels).any():
            raise LabelsError(
                f"Expected predictions among the classes of the labels ({shorten(np.unique(labels).tolist())}), got"
                f" other names only ({shorten(np.unique(predicted).tolist())}). Are they spelt alike?"
            )
    tables = [columns for _, columns in read if columns is not None]
    if names is None:
        names = next((columns for columns in tables if columns != _numbered(len(columns))), None)
    flat = [each for each in (labels, *(each for each, columns in read if columns is None)) if each.ndim == 1]
    found, n_found = labels, 0 if names is None else len(names)
    if names is None and any(each.dtype.kind == "U" for each in flat):
        found = np.unique(np.concatenate([each.astype(str) for each in flat]))
        n_found = len(found)
    elif names is None:
        found = np.unique(np.concatenate([whole_values(each) for each in flat] or [labels[:0, 0]]))
        n_found = 1 + int(found.max(initial=0))
        if found.min(initial=0) < 0:  # such as -1, 0 and 1, which are no column numbers
            names, n_found = found.tolist(), len(found)
    width = n_classes or next(map(len, tables), labels.shape[1] if labels.ndim == 2 else n_found)
    coder = LabelCoder.for_labels(found, check_n_classes(max(width, 2)), names)
    codes = []
    for predicted, columns in read:
        if columns is not None and len(columns) != coder.n_classes:
            wanted = f"{coder.n_classes} classes, one column each"
            raise ProbabilitiesError(f"Expected probabilities of {wanted}, got {len(columns)} columns.")
        by_place = columns is not None and _numbered(coder.n_classes) in (columns, coder.names)
        named = predicted if columns is None or by_place else np.array(columns)[predicted]
        codes.append(predicted if by_place else coder.encode(named))
    return coder.encode(labels), codes, coder


def _read(model: Any, noisy_labels: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return predicted classes as labels, or the likeliest columns of probabilities and the names of all columns."""
    model = align_labels(noisy_labels, model, "predictions")
    shape = as_array(model, "predictions as classes or probabilities", InputError).shape
    if len(shape) != 2 or shape[1] == 1:
        return as_label_array(model), None
    table, names = as_probability_table(model)
    rows = np.ascontiguousarray(table, working_dtype(table.dtype))
    check_probability_chunk(rows, 0)
    return surest(rows)[0], names or _numbered(table.shape[1])


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(map(str, range(n_columns)))
