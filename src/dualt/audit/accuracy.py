"""Accuracy against the unknown truth, from noisy test labels.

Through T: if, given the true class, a model's errors have nothing to do with the label's, then
P(prediction=k, given=j) = Σ_i M[k, i]·T[i, j] with M[k, i] = P(prediction=k, Y=i), so that M = C @ T⁻¹ for the shares C
that were counted, and accuracy = Σ_i M[i, i]. M is not kept from being negative: of many classes, what chance takes
from one cell would be lost to the others. A model that was trained on labels with the same noise repeats some of their
errors: then the assumption fails and the accuracy comes out too high. By an audit: no assumption; see
`prediction_powered`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dualt.audit.design import Floats, Ints, Weights
from dualt.audit.prediction_powered import mean_interval, share_intervals
from dualt.labels import Codes


@dataclass(frozen=True, eq=False)
class Accuracy:
    """An accuracy (or a difference of two) against the truth, with its interval.

    Attributes
    ----------
    estimate, low, high, standard_error : float
    against_given : float
        The same against the given labels, as they are.
    """

    estimate: float
    low: float
    high: float
    standard_error: float
    against_given: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return dict(vars(self))


def accuracy_through_transition(
    predicted: Codes,
    given: Codes,
    transition: Floats,
    *,
    rival: Codes | None = None,
    level: float = 0.95,
    transition_draws: Sequence[Floats] = (),
) -> Accuracy:
    """Return Σ_i M[i, i] where M solves P(prediction=k, given=j) = Σ_i M[k, i]·T[i, j], between 0 and 1.

    Parameters
    ----------
    predicted, given : (n_samples,)
        Class numbers.
    transition : (n_classes, n_classes)
    rival : (n_samples,), optional
        A second model's classes: the lead over it is returned instead. Rows on which both agree add no variance to it.
    transition_draws : (n_classes, n_classes) each
        Matrices as likely as the estimate: their spread widens the interval.

    Notes
    -----
    The accuracy is the mean of T⁻¹[given, prediction], unbiased whatever the model. Each row's share in it is known, so
    that its standard error needs no bootstrap. With a singular matrix there is none: the caller refuses it.
    """
    least = 0.0 if rival is None else -1.0

    def shares(matrix: Floats) -> Floats:
        inverse = np.linalg.inv(matrix)
        return np.asarray(inverse[given, predicted] - (0 if rival is None else inverse[given, rival]))

    rows = shares(transition)
    variance = rows.var(ddof=1) / len(rows)
    if len(transition_draws) > 1:
        variance += np.var([np.clip(shares(matrix).mean(), least, 1) for matrix in transition_draws], ddof=1)
    estimate, error = float(np.clip(rows.mean(), least, 1)), float(np.sqrt(variance))
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    plain = float(_lead(predicted, rival, given).mean())
    return Accuracy(estimate, max(estimate - half, least), min(estimate + half, 1.0), error, plain)


def accuracy_bounds(against_given: float, noise_rate: float) -> tuple[float, float]:
    """Return [a − r, a + r]: all that follows from agreement a and noise rate r without any assumption.

    Prediction and truth can differ from the given label on the same rows or on others, and labels alone do not tell.

    Examples
    --------
    >>> accuracy_bounds(0.75, 0.5)
    (0.25, 1.0)
    """
    return max(against_given - noise_rate, 0.0), min(against_given + noise_rate, 1.0)


def _lead(predicted: Codes, rival: Codes | None, target: Codes) -> Floats:
    """Return where the prediction is right, less where its rival is."""
    right = (predicted == target).astype(np.float64)
    return np.asarray(right if rival is None else right - (rival == target))


def accuracy_by_audit(
    predicted: Codes,
    given: Codes,
    rows: Ints,
    true: Codes,
    weights: Weights,
    *,
    rival: Codes | None = None,
    level: float = 0.95,
) -> Accuracy:
    """Return the accuracy by prediction-powered inference: no assumption on the noise or the model.

    What stands in for the truth of the rows that nobody has verified is their given label.

    Parameters
    ----------
    predicted, given : (n_samples,)
        Class numbers.
    rows, true : (n_verified,)
        Verified rows and their classes.
    weights
        How they were drawn.
    rival : (n_samples,), optional
        A second model's classes: the lead over it is returned instead. Only rows on which the two differ can tell.
    """
    guess = _lead(predicted, rival, given)
    truth = _lead(predicted[rows], None if rival is None else rival[rows], true)
    plain = float(guess.mean())
    if rival is None:
        found = share_intervals(truth[:, None], guess[rows, None], guess.mean(keepdims=True), weights, level)
    else:
        found = mean_interval(truth, guess[rows], plain, weights, level)
    names = ("estimate", "low", "high", "standard_error")
    return Accuracy(**{name: float(getattr(found, name)[0]) for name in names}, against_given=plain)
