"""Intervals that hold whatever the bias of the predictions: prediction-powered inference (PPI++).

    estimate = λ · (mean prediction over all rows) + weighted mean over the verified rows of (truth − λ · prediction)

The predictions may be wrong in any way: what they get wrong is measured on the verified rows. λ minimises the
variance, so that useless predictions (λ = 0) leave what the verified rows alone tell. The data are a finite
population, and all its predictions are known: only the residuals of the rows not verified are uncertain.

References
----------
Angelopoulos, Duchi, Zrnic, "PPI++: efficient prediction-powered inference", 2023. Zrnic, Candès,
"Cross-prediction-powered inference", 2024. Särndal, Swensson, Wretman, "Model assisted survey sampling", 1992
(the difference estimator).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from dualt.audit.design import Floats, Weights
from dualt.labels import Codes

# Few wrong labels tell little of the residuals' variance: the predictions' gain counts as if this many more
# wrong labels had been found that they say nothing of.
_DOUBT = 1.0
_TINY, _ROUNDING = np.finfo(np.float64).tiny, 1e-9


@dataclass(frozen=True, eq=False)
class Intervals:
    """Shares with their intervals, one or many.

    Attributes
    ----------
    estimate, low, high, standard_error
    tuning
        λ: how much the predictions are used.
    """

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    tuning: Floats


class Verified(NamedTuple):
    """The verified rows, and what was predicted of them and of all rows.

    given, true : (n_verified,)
    posterior : (n_verified, n_classes)
        P(Y=i | x, ỹ) by a model that did not see the row's truth.
    joint : (n_classes, n_classes)
        Mean over all rows of P(Y=i | x, ỹ)·1[ỹ=j]; the verified rows enter by `posterior`.
    """

    given: Codes
    true: Codes
    posterior: Floats
    joint: Floats


def rate_interval(verified: Verified, weights: Weights, level: float = 0.95) -> Intervals:
    """Return the share of wrong labels, P(ỹ ≠ Y)."""
    rows = np.arange(len(verified.true))
    wrong = (verified.given != verified.true).astype(np.float64)[:, None]
    predicted = 1 - verified.posterior[rows, verified.given][:, None]
    total = np.array([1 - np.trace(verified.joint)])
    return share_intervals(wrong, predicted, total, weights, level)


def class_rate_intervals(verified: Verified, weights: Weights) -> Intervals:
    """Return P(ỹ ≠ i | Y = i) of every class i: `TransitionEstimate.noise_rates`."""
    n_classes = len(verified.joint)
    is_class = np.eye(n_classes)[verified.true]
    is_other = 1 - np.eye(n_classes)[verified.given]
    of_class = verified.joint.sum(axis=1)
    part = is_class * is_other, verified.posterior * is_other, of_class - np.diagonal(verified.joint)
    return ratio_intervals(part, (is_class, verified.posterior, of_class), weights)


def transition_intervals(verified: Verified, weights: Weights, level: float = 0.95) -> Intervals:
    """Return T[i, j] = P(ỹ=j | Y=i), (n_classes, n_classes)."""
    n_classes = len(verified.joint)
    is_given = np.eye(n_classes)[verified.given]
    rows, ones = [], np.ones((1, n_classes))
    for label, of_class in enumerate(verified.joint):
        is_class = (verified.true == label).astype(np.float64)[:, None]
        predicted = verified.posterior[:, label, None]
        part = is_class * is_given, predicted * is_given, of_class
        whole = is_class * ones, predicted * ones, np.full(n_classes, of_class.sum())
        rows.append(ratio_intervals(part, whole, weights, level))
    return Intervals(*(np.stack([getattr(row, name) for row in rows]) for name in Intervals.__dataclass_fields__))


def share_intervals(truth: Floats, predicted: Floats, mean: Floats, weights: Weights, level: float = 0.95) -> Intervals:
    """Return the mean over all rows of indicators that are known for the verified rows.

    Parameters
    ----------
    truth, predicted : (n_verified, n_targets)
    mean : (n_targets,)
        Mean prediction over all rows.
    weights
        How the verified rows were drawn.
    """
    ones = np.ones_like(truth)
    return ratio_intervals((truth, predicted, mean), (ones, ones, np.ones_like(mean)), weights, level)


def mean_interval(truth: Floats, predicted: Floats, mean: float, weights: Weights, level: float = 0.95) -> Intervals:
    """Return the mean over all rows of values in −1..1, such as differences of two indicators: a t interval.

    One 1 and one −1 more than were seen keep its variance from vanishing.

    Parameters
    ----------
    truth, predicted : (n_verified,)
    mean
        Mean prediction over all rows.
    """
    from scipy.special import stdtrit

    target = truth[:, None], predicted[:, None], np.array([mean])
    tuning = _tuning(target[0], target[1], weights)
    estimate = np.clip(_difference(target, tuning, weights), -1, 1)
    doubt = 2 * _DOUBT * _unseen(weights) * float(weights.weight @ weights.weight) / len(truth)
    error = np.sqrt(_variance(target[0] - tuning * target[1], weights) + doubt)
    half = stdtrit(max(len(truth) - weights.n_strata, 1), (1 + level) / 2) * error
    return Intervals(estimate, np.maximum(estimate - half, -1), np.minimum(estimate + half, 1), error, tuning)


# (truth of the verified rows, what was predicted of them, mean of what was predicted of all rows)
Target: TypeAlias = tuple[Floats, Floats, Floats]


def ratio_intervals(part: Target, whole: Target, weights: Weights, level: float = 0.95) -> Intervals:
    """Return share = Σ part / Σ whole over all rows, `part` a part of the indicator `whole`.

    Each of them is (truth, predicted, mean of predicted over all rows). The ratio is linearised: its error is that of
    the mean of part − share·whole, divided by the mean of `whole`.
    """
    share = _bounded(part[2], whole[2])
    for _ in range(3):
        residual, predicted = part[0] - share * whole[0], part[1] - share * whole[1]
        tuning = _tuning(residual, predicted, weights)
        amount = _difference(whole, tuning, weights)
        share = _bounded(_difference(part, tuning, weights), amount)
    residual = (part[0] - share * whole[0]) - tuning * (part[1] - share * whole[1])
    amount = np.where(amount > 0, amount, whole[2])
    variance = _variance(residual, weights) / np.maximum(amount, _TINY) ** 2
    return _wilson(share, variance, tuning, (part[0], whole[0]), weights, level)


def _difference(target: Target, tuning: Floats, weights: Weights) -> Floats:
    """Return λ · mean prediction + weighted mean of (truth − λ · prediction)."""
    truth, predicted, mean = target
    return np.asarray(tuning * mean + weights.weight @ (truth - tuning * predicted))


def _bounded(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.clip(part / np.where(whole > 0, whole, 1), 0, 1))


def _centred(values: Floats, weights: Weights) -> Floats:
    """Return values less the weighted mean of their stratum."""
    _, strata = np.unique(weights.strata, return_inverse=True)
    sums = np.zeros((strata.max() + 1, values.shape[1]))
    np.add.at(sums, strata, weights.weight[:, None] * values)
    return np.asarray(values - (sums / np.bincount(strata, weights.weight)[:, None])[strata])


def _variance_weights(weights: Weights) -> Floats:
    """Return m_h/(m_h − 1) · (1 − π_k) · w_k²: what each verified row adds to a variance."""
    _, strata, counts = np.unique(weights.strata, return_inverse=True, return_counts=True)
    correction = counts / np.maximum(counts - 1, 1)
    return np.asarray(correction[strata] * (1 - weights.probability) * weights.weight**2)


def _variance(residual: Floats, weights: Weights) -> Floats:
    """Return Σ_h m_h/(m_h−1) Σ_k (1 − π_k)·w_k²·(r_k − r̄_h)², of a stratified sample or (one stratum) a Hájek mean."""
    return np.asarray(_variance_weights(weights) @ _centred(residual, weights) ** 2)


def _unseen(weights: Weights) -> float:
    """Return the finite-population correction, 1 − m/N."""
    return 1 - float(weights.weight @ weights.probability)


def _tuning(truth: Floats, predicted: Floats, weights: Weights) -> Floats:
    """Return the λ in 0..1 that minimises the variance of the mean of truth − λ · predicted."""
    scale = _variance_weights(weights)[:, None]
    centred = _centred(predicted, weights)
    together = (scale * centred * _centred(truth, weights)).sum(axis=0)
    alone = (scale * centred**2).sum(axis=0)
    return np.asarray(np.clip(together / np.where(alone > 0, alone, 1), 0, 1))


def _wilson(
    share: Floats, variance: Floats, tuning: Floats, seen: tuple[Floats, Floats], weights: Weights, level: float
) -> Intervals:
    """Return {s : (share − s)² ≤ t² · s(1 − s)/n}, n the number of labels counted at random that would tell as much.

    Wilson's interval: near 0 and 1, where the estimated variance is as uncertain as the estimate, it stays honest.
    n = (rows of the class) / gain, where gain = variance / variance of plain counting. What no verified row has shown
    may not exist at all: then the interval reaches 0, and likewise 1. It may also be among the rows that are not
    verified, however few they are: of K such rows none is drawn with probability (1 − m/N)^K.
    """
    from scipy.special import stdtrit

    part, whole = seen
    unseen = _unseen(weights)
    counted = _effective_count(whole, weights)
    found, all_rows = part.sum(axis=0), whole.sum(axis=0)
    # Half a label of each kind keeps the variance of plain counting from vanishing.
    cautious = (counted * share + 0.5) / (counted + 1)
    plain = unseen * cautious * (1 - cautious) / np.maximum(counted, 1)
    rarer = np.minimum(_effective_count(part, weights), _effective_count(whole - part, weights))
    gain = (rarer * variance / np.maximum(plain, _TINY) + _DOUBT) / (rarer + _DOUBT)
    size = counted / np.maximum(gain * unseen, np.finfo(np.float64).eps)
    quantile = stdtrit(np.maximum(all_rows - weights.n_strata, 1), (1 + level) / 2)
    spread = quantile**2 / np.where(size > 0, size, 1)
    centre = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    # Share of the rows that may have what none of the verified ones has; of a census, rounding leaves next to nothing.
    left = (1 - unseen) * np.log((1 - level) / 2) / np.log(unseen) if unseen > _ROUNDING else 0.0
    missed = np.minimum(left / np.maximum(counted, 1), 1)
    low, high = np.clip(centre - half, 0, share), np.clip(centre + half, share, 1)
    low = np.where(found < all_rows, low, np.minimum(low, 1 - missed))
    high = np.where(found > 0, high, np.maximum(high, missed))
    low, high = np.where(found > 0, low, 0.0), np.where(found < all_rows, high, 1.0)
    return Intervals(share, low, high, np.sqrt(variance), tuning)


def _effective_count(indicator: Floats, weights: Weights) -> Floats:
    """Return (Σ w)²/Σ w² over the rows that have the indicator (Kish): their number if all weigh the same."""
    total, squares = weights.weight @ indicator, weights.weight**2 @ indicator
    return np.asarray(np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1), 0))
