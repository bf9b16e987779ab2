"""How good a model is on test labels that are themselves noisy: what follows, what an audit shows, what T would say.

An audit measures the accuracy against the truth and assumes nothing. Without one only bounds follow: agreement with
the given labels, plus or minus the noise rate. The figure through T assumes that, within a true class, the model's
errors have nothing to do with the label's; a model that was trained on labels of the same kind repeats some of their
errors, and then that figure is too high. It is given beside the bounds, never instead of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit.accuracy import Accuracy, accuracy_bounds, accuracy_by_audit, accuracy_through_transition
from dualt.audit.design import Weights
from dualt.audit.verified_labels import (
    Audit,
    as_audit,
    check_digest,
    check_enough,
    check_given,
    check_rows,
)
from dualt.errors import InputError, LabelsError
from dualt.inversion import NEAR_SINGULAR
from dualt.labels import Codes, LabelCoder, as_label_array, labels_digest
from dualt.results.estimate import TransitionEstimate
from dualt.transition import clean_prior
from dualt.validation import check_fraction, check_transition

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
        What T would say under `ASSUMPTION`.
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
        Predicted classes, or probabilities, of which the largest counts.
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
        In the order of the matrix's rows.
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
    given, codes, coder = _encode(noisy_labels, models, names, _n_classes(transition))
    matrix, rate = _noise(transition, given, coder.n_classes)
    checked = None if verified is None else _verified(as_audit(verified), as_label_array(noisy_labels), given, coder)
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


_Checked = tuple[NDArray[np.intp], Codes, Weights]
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


def _n_classes(transition: Any) -> int | None:
    return None if transition is None else len(np.asarray(transition))


def _noise(transition: Any, given: Codes, n_classes: int) -> tuple[NDArray[np.float64] | None, float | None]:
    """Return the matrix, unless it cannot be undone, and the largest noise rate that it leaves open."""
    if transition is None:
        return None, None
    matrix = check_transition(np.asarray(transition), n_classes)
    prior = clean_prior(matrix, np.bincount(given, minlength=n_classes))
    rate = float(prior @ (1 - np.diagonal(matrix)))
    if isinstance(transition, TransitionEstimate):
        rate = max(rate, transition.noise_rate_range[1])
    return (matrix if np.linalg.cond(matrix) <= NEAR_SINGULAR else None), rate


def _encode(
    noisy_labels: Any, models: list[Any], names: Sequence[Any] | None, n_classes: int | None
) -> tuple[Codes, list[Codes], LabelCoder]:
    """Return given labels and predictions as codes, and what reads them."""
    labels = as_label_array(noisy_labels)
    arrays = [np.asarray(model) if np.ndim(model) == 2 else as_label_array(model) for model in models]
    for array in arrays:
        if len(array) != len(labels):
            raise LabelsError(f"Expected one prediction per label, got {len(array):,} and {len(labels):,}.")
    known = n_classes or next((array.shape[1] for array in (labels, *arrays) if array.ndim == 2), None)
    flat = [array for array in (labels, *arrays) if array.ndim == 1]
    if names is None and any(array.dtype.kind == "U" for array in flat):
        names = sorted({str(value) for array in flat for value in np.unique(array)})
    known = known or (len(names) if names is not None else 1 + max(int(array.max()) for array in flat))
    coder = LabelCoder.for_labels(labels, max(known, 2), names)
    codes = [array.argmax(axis=1) if array.ndim == 2 else coder.encode(array) for array in arrays]
    return coder.encode(labels), codes, coder


def _verified(audit: Audit, labels: NDArray[Any], given: Codes, coder: LabelCoder) -> _Checked:
    """Return rows, true classes and weights of an audit of these labels."""
    audit, true = check_rows(audit, len(given), coder)
    if audit.labels_digest is not None:
        check_digest(audit.labels_digest, labels_digest(labels), len(given))
    if audit.given is not None:
        check_given(coder, audit.given, given[audit.rows], audit.rows)
    check_enough(len(audit))
    return audit.rows, true, audit.weights(len(given))
