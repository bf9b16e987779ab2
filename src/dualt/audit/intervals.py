"""Intervals from verified rows that hold whatever the bias of the predictions.

- Shares and rates, with predicted probabilities for all rows: the difference estimator of prediction-powered inference
  (PPI++), λ · (mean prediction over all rows) + weighted mean over the verified rows of (truth − λ · prediction), with
  the λ of least variance.
- Accuracies, with cells of known size (whether prediction and given label agree): post-stratification, Σ_h F_h · (mean
  truth in cell h).

Both have Wilson's interval, with the number of rows that plain counting would need for the same variance. All data are
a finite population: only the rows that are not verified are uncertain.

References
----------
Angelopoulos, Duchi, Zrnic, "PPI++: efficient prediction-powered inference", 2023. Zrnic, Candès,
"Cross-prediction-powered inference", 2024. Särndal, Swensson, Wretman, "Model assisted survey sampling", 1992.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

from dualt.audit.design import Floats, Ints, Weights
from dualt.labels import Codes

# Few wrong labels say little about the variance of the residuals: the gain from predictions is shrunk towards none, as
# if this many more wrong labels had been found that the predictions say nothing about.
_DOUBT = 1.0
_TINY, _ROUNDING = np.finfo(np.float64).tiny, 1e-9
# Truth of the verified rows, their predictions, and the mean prediction over all rows.
Target: TypeAlias = tuple[Floats, Floats, Floats]


class Intervals(NamedTuple):
    """Estimates with their intervals."""

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats


class Verified(NamedTuple):
    """Given and true classes of the verified rows, their predictions, and the predictions for all rows.

    `posterior` is P(Y=i | x, ỹ) by a model that did not see the row's true class, `joint` the mean over all rows of
    P(Y=i | x, ỹ)·1[ỹ=j], which the verified rows enter by `posterior`.
    """

    given: Codes
    true: Codes
    posterior: Floats
    joint: Floats


def rate_interval(verified: Verified, weights: Weights, level: float = 0.95) -> Intervals:
    """Return the share of wrong labels, P(ỹ ≠ Y)."""
    wrong = (verified.given != verified.true).astype(np.float64)[:, None]
    predicted = 1 - verified.posterior[np.arange(len(wrong)), verified.given][:, None]
    return share_intervals((wrong, predicted, np.array([1 - np.trace(verified.joint)])), weights, level)


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
    return Intervals(*map(np.stack, zip(*rows, strict=True)))


def share_intervals(target: Target, weights: Weights, level: float = 0.95) -> Intervals:
    """Return the mean over all rows of indicators, (n_verified, n_targets), that are known for the verified rows."""
    ones = np.ones_like(target[0])
    return ratio_intervals(target, (ones, ones, np.ones_like(target[2])), weights, level)


def ratio_intervals(part: Target, whole: Target, weights: Weights, level: float = 0.95) -> Intervals:
    """Return share = Σ part / Σ whole over all rows, by the difference estimator; `part` is a part of `whole`.

    The ratio is linearised: its error is that of the mean of part − share·whole, divided by the mean of `whole`.
    """
    share = _ratio(part[2], whole[2])
    for _ in range(3):
        residual, predicted = part[0] - share * whole[0], part[1] - share * whole[1]
        tuning = _tuning(residual, predicted, weights)
        amount = _difference(whole, tuning, weights)
        share = _ratio(_difference(part, tuning, weights), amount)
    residual = (part[0] - share * whole[0]) - tuning * (part[1] - share * whole[1])
    amount = np.maximum(np.where(amount > 0, amount, whole[2]), _TINY)
    variance = (_centred(residual, weights) ** 2).sum(axis=0) / amount**2
    # Gain: this variance / that of plain counting, which half a label of each kind keeps from vanishing.
    unseen, counted = _unseen(weights), _kish(whole[0], weights)
    cautious = (counted * share + 0.5) / (counted + 1)
    plain = unseen * cautious * (1 - cautious) / np.maximum(counted, 1)
    rarer = np.minimum(_kish(part[0], weights), _kish(whole[0] - part[0], weights))
    gain = (rarer * variance / np.maximum(plain, _TINY) + _DOUBT) / (rarer + _DOUBT)
    n_class, found = whole[0].sum(axis=0), part[0].sum(axis=0)
    quantile = stdtrit(np.maximum(n_class - len(np.unique(weights.strata)), 1), (1 + level) / 2)
    spread = quantile**2 * np.maximum(gain * unseen, np.finfo(np.float64).eps) / np.where(counted > 0, counted, 1)
    low, high = _wilson(share, spread)
    missed = _missed(counted, weights, (1 - level) / 2)
    # What no verified row has shown may not exist at all.
    low = np.where(found == 0, 0.0, np.where(found < n_class, low, np.minimum(low, 1 - missed)))
    high = np.where(found == n_class, 1.0, np.where(found > 0, high, np.maximum(high, missed)))
    return Intervals(share, low, high, np.sqrt(variance))


def post_stratified(
    truth: Floats, cells: Ints, shares: Floats, weights: Weights, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Return estimate, low, high and standard error of Σ_h F_h · (mean truth in cell h).

    `truth` has values in 0..1, `cells` the cell of each verified row (−1 for rows that do not count), and `shares` F_h,
    the share of each cell among all rows that count. The interval is Wilson's, with as many rows as plain counting
    would need for the same variance, and at least the verified ones: it is no wider than that of counting them.
    """
    member = (cells[:, None] == np.flatnonzero(shares)).astype(np.float64)
    shares, unseen, square = shares[shares > 0], _unseen(weights), float(ndtri((1 + level) / 2)) ** 2
    by_cell, counted = _kish(member, weights), float(_kish(member.sum(axis=1), weights))
    total = weights.weight @ member
    mean, mean_square = (_ratio(values * weights.weight @ member, total) for values in (truth, truth**2))
    estimate = float(np.average(mean, weights=shares * (by_cell > 0)))
    # Few rows say little about the variance in a cell: z² successes and as many failures are added, by its share. With
    # z²/2, as in Wilson's centre, 1 of 28 settings covered in less than 94 % (bench/audit_coverage.py).
    added = square * shares
    cautious, size = (by_cell * mean + added) / (by_cell + 2 * added), by_cell + 2 * added
    variance = ((by_cell * mean_square + added) / size - cautious**2) @ (shares**2 / size)
    share = (counted * (mean @ total) / total.sum() + square) / (counted + 2 * square)
    gain = min(float(variance / (share * (1 - share)) * (counted + 2 * square)), 1.0)
    low, high = map(float, _wilson(np.float64(estimate), square * gain * unseen / counted))
    # What no verified row has shown may be among the rest; the other end is closed.
    missed = float(_missed(member.sum(), weights, 1 - level))
    low = min(low, 1 - missed) if estimate > 1 - _ROUNDING else low
    high = max(high, missed) if estimate < _ROUNDING else high
    return estimate, low, high, float(np.sqrt(unseen * variance))


def _wilson(share: Floats, spread: Floats | float) -> tuple[Floats, Floats]:
    """Return Wilson's interval, {s : (share − s)² ≤ spread · s(1 − s)}."""
    centre, half = share + spread / 2, np.sqrt(spread * share * (1 - share) + spread**2 / 4)
    return np.clip((centre - half) / (1 + spread), 0, share), np.clip((centre + half) / (1 + spread), share, 1)


def _missed(counted: Floats, weights: Weights, tail: float) -> Floats:
    """Return the share of rows of which none may be among those counted: (1 − m/N)^K = tail."""
    unseen = _unseen(weights)
    n_missed = (1 - unseen) * np.log(tail) / np.log(unseen) if unseen > _ROUNDING else 0.0
    return np.asarray(np.minimum(n_missed / np.maximum(counted, 1), 1))


def _kish(indicator: Floats, weights: Weights) -> Floats:
    """Return (Σ w)²/Σ w² over the rows that have the indicator (Kish): their number if all weigh the same."""
    total, squares = weights.weight @ indicator, weights.weight**2 @ indicator
    return np.asarray(total**2 / np.where(squares > 0, squares, 1))


def _difference(target: Target, tuning: Floats, weights: Weights) -> Floats:
    """Return λ · mean prediction + weighted mean of (truth − λ · prediction)."""
    truth, predicted, mean = target
    return np.asarray(tuning * mean + weights.weight @ (truth - tuning * predicted))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.clip(part / np.where(whole > 0, whole, 1), 0, 1))


def _centred(values: Floats, weights: Weights) -> Floats:
    """Return √(m_h/(m_h − 1) · (1 − π_k)) · w_k · (v_k − weighted mean of v in stratum h): its squares add up."""
    _, strata, counts = np.unique(weights.strata, return_inverse=True, return_counts=True)
    member = np.eye(len(counts))[strata] * weights.weight[:, None]
    means = (member.T @ values / member.sum(axis=0)[:, None])[strata]
    scale = np.sqrt((counts / np.maximum(counts - 1, 1))[strata] * (1 - weights.probability)) * weights.weight
    return np.asarray(scale[:, None] * (values - means))


def _tuning(truth: Floats, predicted: Floats, weights: Weights) -> Floats:
    """Return the λ in 0..1 that minimises the variance of the mean of truth − λ · predicted."""
    own = _centred(predicted, weights)
    alone = (own**2).sum(axis=0)
    return np.asarray(np.clip((own * _centred(truth, weights)).sum(axis=0) / np.where(alone > 0, alone, 1), 0, 1))


def _unseen(weights: Weights) -> float:
    """Return the finite-population correction, 1 − m/N."""
    return 1 - float(weights.weight @ weights.probability)
