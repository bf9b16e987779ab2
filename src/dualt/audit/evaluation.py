"""How good a model is on test labels that are themselves noisy: what follows, what an audit shows, what T would say.

An audit measures the accuracy against the truth and assumes nothing. Without one only bounds follow: agreement with
the given labels, plus or minus the noise rate. The figure through T assumes that, within a true class, the model's
errors have nothing to do with the label's; a model that was trained on labels of the same kind repeats some of their
errors, and then that figure is too high. It is given beside the bounds, never instead of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.audit.accuracy import Accuracy, accuracy_bounds, accuracy_by_audit, accuracy_through_transition
from dualt.audit.verified_labels import Audit, as_audit, check_rows
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.inversion import NEAR_SINGULAR
from dualt.label_arrays import as_label_array
from dualt.labels import Codes, LabelCoder, labels_digest, shorten, whole_values
from dualt.probabilities import scale_rounded
from dualt.results.estimate import TransitionEstimate
from dualt.rows.floats import as_rows, surest, working_dtype
from dualt.transition import clean_prior
from dualt.validation import (
    align_labels,
    as_array,
    as_probability_table,
    check_fraction,
    check_n_classes,
    check_probability_chunk,
    check_transition,
)

ASSUMPTION = (
    "within a true class, the model's errors have nothing to do with the label's. A model that was trained on labels"
    " of the same kind repeats some of their errors, and the figure is then too high"
)


@dataclass(frozen=True, eq=False)
class NoisyAccuracy:
    """An accuracy against the unknown truth, or the difference of two.

    Attributes
    ----------
    n_samples, n_verified : int
    level : float
        Confidence of the intervals.
    agreement : float
        Accuracy against the given labels; of two models, the difference.
    bounds : (low, high), optional
        All that follows without an audit or an assumption; needs a transition, which tells the noise rate.
    audited : Accuracy, optional
        Measured on the verified rows, without any assumption.
    through_transition : Accuracy, optional
        What T would say under `ASSUMPTION`; None if T cannot be undone, or if one row is all there is.
    difference : NoisyAccuracy, optional
        Of the first model less the second, if there are two.
    """

    n_samples: int
    n_verified: int
    level: float
    agreement: float
    bounds: tuple[float, float] | None
    audited: Accuracy | None
    through_transition: Accuracy | None
    difference: NoisyAccuracy | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """What can be claimed: the interval of the audit, else the bounds."""
        return self.bounds if self.audited is None else (self.audited.low, self.audited.high)

    @property
    def better(self) -> str | None:
        """Which of two models is better, "first" or "second"; None if that cannot be told."""
        interval = None if self.difference is None else self.difference.interval
        if interval is None or interval[0] <= 0 <= interval[1]:
            return None
        return "first" if interval[0] > 0 else "second"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists."""
        through = self.through_transition
        return {
            "n_samples": self.n_samples,
            "n_verified": self.n_verified,
            "level": self.level,
            "agreement": self.agreement,
            "interval": self.interval and list(self.interval),
            "bounds": self.bounds and list(self.bounds),
            "audited": self.audited and self.audited.to_dict(),
            "through_transition": through and {**through.to_dict(), "assumes": ASSUMPTION},
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
        Predicted classes, or probabilities, of which the largest counts. Columns with names are matched with the
        classes by them, and rows with an index with those of the labels.
    noisy_labels : (n_samples,)
        Given labels.
    transition
        A matrix or an estimate of these labels' noise: gives the bounds, and the figure that holds under an assumption.
    verified
        (row numbers, true labels) of a random sample of these rows that a person has checked, or an `Audit`: gives an
        interval without any assumption.
    against
        Predictions of a second model, to tell which is better.
    class_names
        In the order of the columns of predictions and, if that tells no names, of the matrix's rows; by default those
        of the estimate, else those of the columns of probabilities, else those of the labels, sorted.
    level

    Examples
    --------
    >>> import dualt
    >>> found = dualt.noisy_accuracy([0, 0, 1, 1], [0, 0, 1, 0], [[0.9, 0.1], [0.1, 0.9]])
    >>> found.agreement, found.bounds
    (0.75, (0.65, 0.85))
    """
    check_fraction(level, "level")
    if transition is None and verified is None:
        raise InputError("Expected a transition or verified labels to judge noisy labels by, got neither.")
    known = transition.class_names if isinstance(transition, TransitionEstimate) else None
    names = known if class_names is None else class_names
    models = [predictions] if against is None else [predictions, against]
    matrix = None if transition is None else check_transition(transition)
    given, codes, coder = _encode(noisy_labels, models, names, None if matrix is None else len(matrix))
    checked = None
    if verified is not None:
        audit, true = check_rows(as_audit(verified), len(given), coder, lambda: labels_digest(noisy_labels), given.take)
        checked = audit.rows, true, audit.weights(len(given))
    if known is not None and known != coder.names and {*known} == {*coder.names}:
        order = np.array([known.index(name) for name in coder.names])  # the classes as the estimate numbers them
        given, codes = order[given], [order[model] for model in codes]
        checked = checked and (checked[0], order[checked[1]], checked[2])
    rate = None if matrix is None else _largest_rate(transition, matrix, given)
    if matrix is not None and (len(given) < 2 or np.linalg.cond(matrix) > NEAR_SINGULAR):
        matrix = None  # it cannot be undone, or one row tells no spread
    draws = _draws(transition) if matrix is not None else []

    def judged(model: Codes, rival: Codes | None = None) -> NoisyAccuracy:
        agreement = float((model == given).mean())
        if rival is None:
            bounds = None if rate is None else accuracy_bounds(agreement, rate)
        else:
            agreement -= float((rival == given).mean())
            # A wrong label can hide one point for each model, and only rows on which they differ count at all.
            differ = float((model != rival).mean())
            bounds = None if rate is None else (max(agreement - 2 * rate, -differ), min(agreement + 2 * rate, differ))
        audited = checked and accuracy_by_audit(model, given, *checked, rival=rival, level=level)
        through = None
        if matrix is not None:
            through = accuracy_through_transition(
                model, given, matrix, rival=rival, level=level, transition_draws=draws
            )
        n_verified = 0 if checked is None else len(checked[0])
        return NoisyAccuracy(len(given), n_verified, level, agreement, bounds, audited, through)

    first = judged(codes[0])
    return first if against is None else replace(first, difference=judged(codes[0], codes[1]))


_DRAWS = 50


def _draws(transition: Any) -> list[NDArray[np.float64]]:
    """Return matrices as likely as an estimate that still has its data, those that can be undone; else none."""
    if not isinstance(transition, TransitionEstimate):
        return []
    rng = np.random.default_rng(0)
    try:
        drawn = [transition.fit.resample(rng) for _ in range(_DRAWS)]
    except InputError:  # an estimate from a file
        return []
    return [matrix for matrix in drawn if np.linalg.cond(matrix) <= NEAR_SINGULAR]


def _largest_rate(transition: Any, matrix: NDArray[np.float64], given: Codes) -> float:
    """Return the largest noise rate that a matrix, or the estimate that it comes from, leaves open."""
    counts = np.bincount(given, minlength=len(matrix))
    if isinstance(transition, TransitionEstimate):
        if np.array_equal(counts, transition.diagnostics.label_counts):  # of these labels, whose rate it knows
            return transition.noise_rate_range[1]
        return max(_rate(matrix, counts), transition.noise_rate_range[1])
    return _rate(matrix, counts)


def _rate(matrix: NDArray[np.float64], counts: NDArray[Any]) -> float:
    return float(clean_prior(matrix, counts) @ (1 - np.diagonal(matrix)))


class _Likeliest(NamedTuple):
    """What a table of probabilities predicts: the number of a column for every row."""

    places: Codes
    n_columns: int
    names: tuple[str, ...] | None

    def encode(self, coder: LabelCoder) -> Codes:
        """Return the classes of these columns, by their names unless they or the classes are only numbered."""
        if self.n_columns != coder.n_classes:
            raise ProbabilitiesError(
                f"Expected probabilities of {coder.n_classes} classes, one column each, got {self.n_columns} columns."
            )
        if self.names is None or self.names == coder.names:
            return self.places
        if {*self.names} == {*coder.names}:
            return np.array([coder.names.index(name) for name in self.names])[self.places]
        if tuple(map(str, range(self.n_columns))) in (self.names, coder.names):
            return self.places
        odd = ", ".join(map(repr, sorted({*self.names} ^ {*coder.names})[:4]))
        raise ProbabilitiesError(
            f"Expected columns of probabilities that are named as the classes, got others: {odd} are not in both."
            " Rename them, or pass .to_numpy() if they are in the order of the classes."
        )


def _read(model: Any, noisy_labels: Any) -> NDArray[Any] | _Likeliest:
    """Return predicted classes as labels, or the likeliest columns of probabilities, in the order of the labels."""
    try:
        model = align_labels(noisy_labels, model)
    except InputError:
        raise InputError(
            "Expected predictions with the index of the labels, got another index: they may be of other rows. Pass"
            " predictions.loc[labels.index], or predictions.to_numpy() if they are in the same order."
        ) from None
    shape = as_array(model, "predictions as classes or probabilities", InputError).shape
    if len(shape) != 2 or shape[1] == 1:
        return as_label_array(model)
    table, names = as_probability_table(model)
    rows = as_rows(scale_rounded(table), working_dtype(table.dtype))
    check_probability_chunk(rows, 0)
    return _Likeliest(surest(rows)[0], table.shape[1], names)


def _encode(
    noisy_labels: Any, models: list[Any], names: Sequence[Any] | None, n_classes: int | None
) -> tuple[Codes, list[Codes], LabelCoder]:
    """Return given labels and predictions as codes, and what reads them."""
    labels, read = as_label_array(noisy_labels), [_read(model, noisy_labels) for model in models]
    tables = [model for model in read if isinstance(model, _Likeliest)]
    flat = [array for array in (labels, *read) if not isinstance(array, _Likeliest) and array.ndim == 1]
    for model in read:
        n_predicted = len(model.places if isinstance(model, _Likeliest) else model)
        if n_predicted != len(labels):
            raise LabelsError(f"Expected one prediction per label, got {n_predicted:,} and {len(labels):,}.")
        if not isinstance(model, _Likeliest) and {"U"} == {model.dtype.kind, labels.dtype.kind}:
            _check_same_classes(model, labels)
    if names is None:
        names = next((table.names for table in tables if table.names is not None), None)
    widths = [table.n_columns for table in tables] + ([labels.shape[1]] if labels.ndim == 2 else [])
    known, example = n_classes or next(iter(widths), None), labels
    if names is not None:
        known = known or len(names)
    elif any(array.dtype.kind == "U" for array in flat):
        example = np.unique(np.concatenate([array.astype(str) for array in flat]))
        known = known or len(example)
    else:
        numbers = np.unique(np.concatenate([whole_values(array) for array in flat]))
        known = known or 1 + int(numbers.max(initial=0))
        if numbers.min(initial=0) < 0:  # such as -1, 0 and 1, which are no column numbers
            names, known = numbers.tolist(), len(numbers)
    coder = LabelCoder.for_labels(example, check_n_classes(max(known, 2)), names)
    codes = [model.encode(coder) if isinstance(model, _Likeliest) else coder.encode(model) for model in read]
    return coder.encode(labels), codes, coder


def _check_same_classes(predicted: NDArray[Any], labels: NDArray[Any]) -> None:
    """Refuse predictions in other words than the labels: none would be right."""
    told, given = np.unique(predicted), np.unique(labels)
    if not np.isin(told, given).any():
        raise LabelsError(
            f"Expected predictions among the classes of the labels ({shorten(given.tolist())}), got other names only"
            f" ({shorten(told.tolist())}). Are they spelt alike?"
        )
