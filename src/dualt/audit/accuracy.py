"""Accuracy against the unknown truth, from noisy test labels.

Through T: if, given the true class, a model's errors have nothing to do with the label's, then
P(prediction=k, given=j) = Σ_i M[k, i]·T[i, j] with M[k, i] = P(prediction=k, Y=i): counts C = M @ T, solved for
M ≥ 0, and accuracy = Σ_i M[i, i]. A model that was trained on labels with the same noise repeats
some of their errors: then the assumption fails and the accuracy comes out too high. By an audit: no assumption; see
`prediction_powered`.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.audit.design import Weights
from dualt.audit.prediction_powered import Intervals, mean_interval, share_intervals

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[Any]

_STEPS, _CLOSE = 1000, 1e-7


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
    predicted: Codes, given: Codes, transition: Floats, *, level: float = 0.95, transition_draws: Floats | None = None
) -> Accuracy:
    """Return Σ_i M[i, i] where M ≥ 0 solves P(prediction=k, given=j) = Σ_i M[k, i]·T[i, j].

    Parameters
    ----------
    predicted, given : (n_samples,)
        Class numbers.
    transition : (n_classes, n_classes)
    transition_draws : (n_draws, n_classes, n_classes), optional
        Matrices as likely as the estimate (`TransitionEstimate`'s resamples): their spread widens the interval.

    Notes
    -----
    The standard error of sampling is that of the unconstrained solution, mean of T⁻¹[given, prediction]: each row's
    share in it is known, so it needs no bootstrap. With a singular matrix there is none: the caller refuses it.
    """
    return _through_transition(predicted, None, given, transition, level, transition_draws)


def compare_through_transition(
    first: Codes,
    second: Codes,
    given: Codes,
    transition: Floats,
    *,
    level: float = 0.95,
    transition_draws: Floats | None = None,
) -> Accuracy:
    """Return accuracy(first) − accuracy(second), paired: rows on which both agree add nothing to its variance."""
    return _through_transition(first, second, given, transition, level, transition_draws)


def accuracy_bounds(against_given: float, noise_rate: float) -> tuple[float, float]:
    """Return [a − r, a + r]: all that follows from agreement a and noise rate r without any assumption.

    Prediction and truth can differ from the given label on the same rows or on others, and labels alone do not tell.

    Examples
    --------
    >>> accuracy_bounds(0.75, 0.5)
    (0.25, 1.0)
    """
    return max(against_given - noise_rate, 0.0), min(against_given + noise_rate, 1.0)


def _through_transition(
    first: Codes, second: Codes | None, given: Codes, transition: Floats, level: float, draws: Floats | None
) -> Accuracy:
    def score(matrix: Floats) -> float:
        found = _plug_in(first, given, matrix)
        return found if second is None else found - _plug_in(second, given, matrix)

    rows = _backward(first, given, transition)
    plain = (first == given).astype(np.float64)
    if second is not None:
        rows = rows - _backward(second, given, transition)
        plain = plain - (second == given)
    variance = rows.var(ddof=1) / len(rows)
    if draws is not None:
        variance += np.var([score(matrix) for matrix in draws], ddof=1)
    least = 0.0 if second is None else -1.0
    return _normal_interval(score(transition), float(variance), float(plain.mean()), level, least)


def _backward(predicted: Codes, given: Codes, transition: Floats) -> Floats:
    """Return T⁻¹[given, predicted] of every row: its mean is unbiased for the accuracy, whatever the model."""
    return np.asarray(np.linalg.inv(transition)[given, predicted])


def _plug_in(predicted: Codes, given: Codes, transition: Floats) -> float:
    """Return the trace of M, the most likely M ≥ 0 with C = M @ T."""
    n_classes = len(transition)
    cells = np.asarray(predicted, np.intp) * n_classes + given
    counts = np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)
    return float(np.trace(solve_joint(counts / len(given), transition)))


def solve_joint(shares: Floats, transition: Floats) -> Floats:
    """Return the M ≥ 0, Σ M = Σ shares, under which `shares` = M @ T is most likely.

    Where the inverse has no negative entry it is the answer; elsewhere EM steps M ← M · ((shares / (M @ T)) @ Tᵀ) from
    the inverse clipped to a little of everything.
    """
    exact = shares @ np.linalg.inv(transition)
    result: Floats = exact.copy()
    outside = np.flatnonzero((exact < 0).any(axis=1))
    if not len(outside):
        return result
    target = shares[outside]
    totals = target.sum(axis=1, keepdims=True)
    now = np.maximum(exact[outside], 1e-3 * totals)
    now *= totals / np.where(now.sum(axis=1, keepdims=True) > 0, now.sum(axis=1, keepdims=True), 1)
    tiny = np.finfo(np.float64).tiny
    for _ in range(_STEPS):
        after = now * ((target / np.maximum(now @ transition, tiny)) @ transition.T)
        moved = np.abs(after - now).max()
        now = after
        if moved < _CLOSE:
            break
    result[outside] = now
    return result


def accuracy_by_audit(
    predicted: Codes,
    posterior_right: Floats,
    rows: NDArray[np.intp],
    true: Codes,
    weights: Weights,
    *,
    given: Codes,
    level: float = 0.95,
) -> Accuracy:
    """Return the accuracy by prediction-powered inference: no assumption on the noise or the model.

    Parameters
    ----------
    predicted, given : (n_samples,)
        Class numbers.
    posterior_right : (n_samples,)
        P(Y = predicted | x, ỹ) of every row, of the verified ones by a model that has not seen their truth. Where
        nothing better is known, plainly 1[predicted = given].
    rows, true : (n_verified,)
        Verified rows and their classes.
    weights
        How they were drawn.
    """
    truth = (predicted[rows] == true).astype(np.float64)[:, None]
    found = share_intervals(truth, posterior_right[rows, None], posterior_right.mean(keepdims=True), weights, level)
    plain = float((predicted == given).mean())
    return Accuracy(*_floats(found), plain)


def compare_by_audit(
    first: Codes,
    second: Codes,
    first_right: Floats,
    second_right: Floats,
    rows: NDArray[np.intp],
    true: Codes,
    weights: Weights,
    *,
    given: Codes,
    level: float = 0.95,
) -> Accuracy:
    """Return accuracy(first) − accuracy(second) by prediction-powered inference.

    Only rows on which the models differ can tell: it is the share where only the first is right, less the share where
    only the second is.
    """
    truth = (first[rows] == true).astype(np.float64) - (second[rows] == true)
    guess = first_right - second_right
    found = mean_interval(truth, guess[rows], float(guess.mean()), weights, level)
    return Accuracy(*_floats(found), float((first == given).mean() - (second == given).mean()))


def _floats(found: Intervals) -> tuple[float, float, float, float]:
    return float(found.estimate[0]), float(found.low[0]), float(found.high[0]), float(found.standard_error[0])


def _normal_interval(estimate: float, variance: float, plain: float, level: float, least: float) -> Accuracy:
    error = float(np.sqrt(variance))
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return Accuracy(estimate, max(estimate - half, least), min(estimate + half, 1.0), error, plain)
