"""Intervals from verified rows that hold whatever the bias of the predictions.

Two estimators use predictions for the rows that nobody has verified:

- the difference estimator of prediction-powered inference (PPI++), for predicted probabilities:
  λ · (mean prediction over all rows) + weighted mean over the verified rows of (truth − λ · prediction), where λ
  minimises the variance;
- post-stratification, for predictions with a few values: Σ_h F_h · (weighted mean of the truth where the prediction has
  value h), where F_h is the share of that value over all rows.

One rule makes the intervals: the values that a score test with a t quantile does not reject. For one share that is
Wilson's interval, with the number of rows that would give the same variance by plain counting. All data are a finite
population: only the rows that are not verified are uncertain.

References
----------
Angelopoulos, Duchi, Zrnic, "PPI++: efficient prediction-powered inference", 2023. Zrnic, Candès,
"Cross-prediction-powered inference", 2024. Särndal, Swensson, Wretman, "Model assisted survey sampling", 1992.
Miettinen, Nurminen, "Comparative analysis of two rates", 1985 (score intervals with restricted maximum likelihood).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.audit.design import Floats, Weights
from dualt.labels import Codes

# Few wrong labels say little about the variance of the residuals: the gain from predictions is shrunk towards none, as
# if this many more wrong labels had been found that the predictions say nothing about.
_DOUBT = 1.0
_TINY, _ROUNDING = np.finfo(np.float64).tiny, 1e-9
# Truth of the verified rows, their predictions, and the mean prediction over all rows.
Target: TypeAlias = tuple[Floats, Floats, Floats]


class Intervals(NamedTuple):
    """Estimates with their intervals, one or many."""

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats


class Verified(NamedTuple):
    """The verified rows, their predictions, and the predictions for all rows.

    given, true : (n_verified,)
    posterior : (n_verified, n_classes)
        P(Y=i | x, ỹ) by a model that did not see the row's true class.
    joint : (n_classes, n_classes)
        Mean over all rows of P(Y=i | x, ỹ)·1[ỹ=j]; the verified rows enter by `posterior`.
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


def class_rate_intervals(verified: Verified, weights: Weights) -> Intervals:
    """Return P(ỹ ≠ i | Y = i) for every class i."""
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
    return Intervals(*map(np.stack, zip(*rows, strict=True)))


def share_intervals(target: Target, weights: Weights, level: float = 0.95) -> Intervals:
    """Return the mean over all rows of indicators that are known for the verified rows.

    The target is (truth, predictions), (n_verified, n_targets) each, and the mean prediction over all rows.
    """
    ones = np.ones_like(target[0])
    return ratio_intervals(target, (ones, ones, np.ones_like(target[2])), weights, level)


def ratio_intervals(part: Target, whole: Target, weights: Weights, level: float = 0.95) -> Intervals:
    """Return share = Σ part / Σ whole over all rows, by the difference estimator; `part` is a part of `whole`.

    The ratio is linearised: its error is that of the mean of part − share·whole, divided by the mean of `whole`.
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
    n_class = whole[0].sum(axis=0)
    spread = _quantile(n_class, weights, level) ** 2 / _worth(share, variance, part[0], whole[0], weights)
    # Wilson's interval: {s : (share − s)² ≤ spread · s(1 − s)}.
    centre, half = share + spread / 2, np.sqrt(spread * share * (1 - share) + spread**2 / 4)
    low, high = np.clip((centre - half) / (1 + spread), 0, share), np.clip((centre + half) / (1 + spread), share, 1)
    found = part[0].sum(axis=0)
    missed = np.minimum(_missed(weights, level) / np.maximum(_kish(whole[0], weights), 1), 1)
    low = np.where(found < n_class, low, np.minimum(low, 1 - missed))
    high = np.where(found > 0, high, np.maximum(high, missed))
    # What no verified row has shown may not exist at all.
    low, high = np.where(found > 0, low, 0.0), np.where(found < n_class, high, 1.0)
    return Intervals(share, low, high, np.sqrt(variance))


def post_stratified(
    truth: Floats, cells: NDArray[np.intp], shares: Floats, weights: Weights, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Return estimate, low, high and standard error of Σ_h F_h · (mean truth in cell h), by a score interval.

    Parameters
    ----------
    truth : (n_verified,)
        Values in 0..1.
    cells : (n_verified,)
        The cell of each verified row; −1 for a row in none, where the value is known to be 0.
    shares : (n_cells,)
        F_h, the share of each cell over all rows.
    weights
        How the verified rows were drawn.
    """
    member = (cells[:, None] == np.flatnonzero(shares)).astype(np.float64)
    shares = shares[shares > 0]
    if not member.any(axis=0).all():  # nothing is known about a cell: count without cells
        member, shares = member.sum(axis=1, keepdims=True), shares.sum(keepdims=True)
    part, total = member * truth[:, None], weights.weight @ member
    mean = _bounded(weights.weight @ part, total)
    variance = _variance(part - mean * member, weights) / np.maximum(total, _TINY) ** 2
    size = _worth(mean, variance, part, member, weights, prior=0)
    quantile = float(_quantile(member.sum() - len(shares) + 1, weights, level))
    low, high = score_limits(mean, size, shares, quantile)
    whole, missed = float(shares.sum()), float(min(_missed(weights, level) / member.sum(), 1.0))
    low = min(low, (1 - missed) * whole) if part.sum() == member.sum() else low
    high = max(high, missed * whole) if part.sum() == 0 else high
    return float(shares @ mean), low, high, float(np.sqrt(shares**2 @ variance))


def score_limits(mean: Floats, size: Floats, shares: Floats, quantile: float) -> tuple[float, float]:
    """Return the smallest and the largest θ with (Σ F·mean − θ)² ≤ quantile² · Σ F²·x(1 − x)/size.

    x are the shares in the cells that are likeliest where Σ F·x = θ. With Lagrange's multiplier μ they solve
    size · (mean − x) = μ·F·x·(1 − x), and θ falls as μ grows: one bisection over μ for each limit. With one cell that
    is Wilson's interval.
    """
    estimate, limits = float(shares @ mean), []
    for sign in (1, -1):
        inside, outside, limit = 0.0, 1 - 1e-12, estimate
        for _ in range(60):
            middle = (inside + outside) / 2
            x = _restricted(mean, sign * middle / (1 - middle) * shares * size.sum() / size)
            theta = float(shares @ x)
            if (estimate - theta) ** 2 <= quantile**2 * (shares**2 @ (x * (1 - x) / size)):
                inside, limit = middle, theta
            else:
                outside = middle
        limits.append(limit)
    return limits[0], limits[1]


def _restricted(mean: Floats, c: Floats) -> Floats:
    """Return the root x in 0..1 of c·x² − (1 + c)·x + mean = 0."""
    root = np.sqrt(np.maximum((1 + c) ** 2 - 4 * c * mean, 0))
    # Two forms of the same root, each without cancellation on its side.
    x = np.where(c > -0.5, 2 * mean / np.maximum(1 + c + root, _TINY), (1 + c - root) / np.where(c > -0.5, 1, 2 * c))
    return np.clip(x, 0, 1)


def _worth(
    share: Floats, variance: Floats, part: Floats, whole: Floats, weights: Weights, prior: float = 0.5
) -> Floats:
    """Return how many rows, counted at random, would give the same variance of each share.

    That is (rows of the class) / gain, where gain = variance / variance of plain counting, shrunk by `_DOUBT`. Where
    predictions enter, a prior of half a label of each kind keeps the variance of plain counting from vanishing.
    """
    unseen = _unseen(weights)
    counted = _kish(whole, weights)
    cautious = (counted * share + prior) / np.maximum(counted + 2 * prior, _TINY)
    plain = unseen * cautious * (1 - cautious) / np.maximum(counted, 1)
    rarer = np.minimum(_kish(part, weights), _kish(whole - part, weights))
    gain = (rarer * variance / np.maximum(plain, _TINY) + _DOUBT) / (rarer + _DOUBT)
    size = counted / np.maximum(gain * unseen, np.finfo(np.float64).eps)
    return np.asarray(np.where(size > 0, size, 1))


def _quantile(counted: Floats, weights: Weights, level: float) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.maximum(counted - len(np.unique(weights.strata)), 1), (1 + level) / 2))


def _missed(weights: Weights, level: float) -> float:
    """Return the number of rows K, scaled to the sample, of which none may be drawn: (1 − m/N)^K = (1 − level)/2."""
    unseen = _unseen(weights)
    return (1 - unseen) * np.log((1 - level) / 2) / np.log(unseen) if unseen > _ROUNDING else 0.0


def _kish(indicator: Floats, weights: Weights) -> Floats:
    """Return (Σ w)²/Σ w² over the rows that have the indicator (Kish): their number if all weigh the same."""
    total, squares = weights.weight @ indicator, weights.weight**2 @ indicator
    return np.asarray(np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1), 0))


def _difference(target: Target, tuning: Floats, weights: Weights) -> Floats:
    """Return λ · mean prediction + weighted mean of (truth − λ · prediction)."""
    truth, predicted, mean = target
    return np.asarray(tuning * mean + weights.weight @ (truth - tuning * predicted))


def _bounded(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.clip(part / np.where(whole > 0, whole, 1), 0, 1))


def _variance(residual: Floats, weights: Weights) -> Floats:
    """Return Σ_h m_h/(m_h−1) Σ_k (1 − π_k)·w_k²·(r_k − r̄_h)²; with one stratum that of a Hájek mean."""
    return np.asarray((_centred(residual, weights) ** 2).sum(axis=0))


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
