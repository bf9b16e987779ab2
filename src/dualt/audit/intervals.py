"""Intervals from verified rows that hold whatever the bias of the predictions.

The estimate is the difference estimator of prediction-powered inference (PPI++), λ · (mean prediction over all rows) +
mean over the verified rows of (truth − λ · prediction), with the λ of least variance. For one binary
prediction, such as whether a model agrees with the given label, that is post-stratification.

The interval is Wilson's, with as many rows as counting would need for the same variance; counting itself (λ = 0) where
that is narrower. Both ends then move towards the exact ones (Clopper and Pearson's with as many rows, as Korn and
Graubard take for surveys), as far as the interval stays no wider than that of counting. All data are a finite
population: only the rows that are not verified are uncertain.

References
----------
Angelopoulos, Duchi, Zrnic, "PPI++: efficient prediction-powered inference", 2023. Zrnic, Candès,
"Cross-prediction-powered inference", 2024. Särndal, Swensson, Wretman, "Model assisted survey sampling", 1992. Korn,
Graubard, "Confidence intervals for proportions with small expected number of positive counts", 1998.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaincinv, ndtri

from dualt.audit.design import Floats
from dualt.labels import Codes
from dualt.results.claims import wilson

_TINY, _ROUNDING = np.finfo(np.float64).tiny, 1e-9
# Least z² / n in Wilson's interval, reached where nearly all rows are verified: below it, betaincinv fails.
_LEAST_SPREAD = 1e-15
# Truth of the verified rows, their predictions, and the mean prediction over all rows.
Target: TypeAlias = tuple[Floats, Floats, Floats]


class Intervals(NamedTuple):
    """Estimates with their intervals."""

    estimate: Floats
    low: Floats
    high: Floats


class Verified(NamedTuple):
    """Given and true classes of the verified rows, their predictions, and the predictions for all `n_samples` rows.

    `posterior` is P(Y=i | x, ỹ) by a model that did not see the row's true class, `joint` the mean over all rows of
    P(Y=i | x, ỹ)·1[ỹ=j], which the verified rows enter by `posterior`.
    """

    given: Codes
    true: Codes
    posterior: Floats
    joint: Floats
    n_samples: int


def rate_interval(verified: Verified, level: float = 0.95) -> Intervals:
    """Return the share of wrong labels, P(ỹ ≠ Y)."""
    wrong = (verified.given != verified.true).astype(np.float64)[:, None]
    predicted = 1 - verified.posterior[np.arange(len(wrong)), verified.given][:, None]
    return share_intervals((wrong, predicted, np.array([1 - np.trace(verified.joint)])), verified.n_samples, level)


def transition_intervals(verified: Verified, level: float = 0.95) -> Intervals:
    """Return T[i, j] = P(ỹ=j | Y=i), (n_classes, n_classes)."""
    n_classes = len(verified.joint)
    is_given = np.eye(n_classes)[verified.given]
    rows, ones = [], np.ones((1, n_classes))
    for label, of_class in enumerate(verified.joint):
        is_class = (verified.true == label).astype(np.float64)[:, None]
        predicted = verified.posterior[:, label, None]
        part = is_class * is_given, predicted * is_given, of_class
        whole = is_class * ones, predicted * ones, np.full(n_classes, of_class.sum())
        rows.append(ratio_intervals(part, whole, verified.n_samples, level))
    return Intervals(*map(np.stack, zip(*rows, strict=True)))


def share_intervals(target: Target, n_samples: int, level: float = 0.95) -> Intervals:
    """Return the mean over all rows of indicators, (n_verified, n_targets), that are known for the verified rows."""
    ones = np.ones_like(target[0])
    return ratio_intervals(target, (ones, ones, np.ones_like(target[2])), n_samples, level)


def ratio_intervals(part: Target, whole: Target, n_samples: int, level: float = 0.95) -> Intervals:
    """Return share = Σ part / Σ whole over all rows, by the difference estimator; `part` is a part of `whole`.

    The ratio is linearised: its error is that of the mean of part − share·whole, divided by the mean of `whole`.
    """
    n_verified = len(part[0])
    unseen = 1 - n_verified / n_samples  # the finite-population correction
    share = _ratio(part[2], whole[2])
    for _ in range(3):
        tuning = _tuning(part[0] - share * whole[0], part[1] - share * whole[1])
        share, variance = _estimated(part, whole, tuning, unseen)
    plain, plain_variance = _estimated(part, whole, np.zeros_like(share), unseen)
    shares, variances = np.stack((plain, share)), np.stack((plain_variance, variance))
    counted, found = whole[0].sum(axis=0), part[0].sum(axis=0)
    square = float(ndtri((1 + level) / 2)) ** 2
    # Few wrong labels say little about a variance: its ratio to that of a simple random sample is shrunk towards one,
    # as if z² more had been found that the predictions say nothing about.
    simple = unseen * plain * (1 - plain) / np.maximum(counted, 1) * (n_verified / max(n_verified - 1, 1))
    rarer = np.minimum(found, counted - found)
    gain = (rarer * variances / np.maximum(simple, _TINY) + square) / (rarer + square)
    spread = np.maximum(square * gain * unseen / np.where(counted > 0, counted, 1), _LEAST_SPREAD)
    low, high = wilson(shares, spread)
    widths = high - low
    best = widths.argmin(axis=0)[None]
    shares, spread, low, high = (np.take_along_axis(each, best, axis=0)[0] for each in (shares, spread, low, high))
    # Clopper and Pearson's exact interval of a share among so many rows, which need not be whole numbers.
    yes, no = (np.maximum(each * square / spread, _TINY) for each in (shares, 1 - shares))
    exact_low, exact_high = betaincinv(yes, no + 1, (1 - level) / 2), betaincinv(yes + 1, no, (1 + level) / 2)
    below, above = np.maximum(low - exact_low, 0), np.maximum(exact_high - high, 0)
    reach = np.minimum((widths[0] - (high - low)) / np.maximum(below + above, _TINY), 1)
    low, high = low - reach * below, high + reach * above
    # What no verified row has shown may be among the rest, a share of K rows with (1 − m/N)^K = 1 − level; the other
    # end is closed.
    n_missed = (1 - unseen) * np.log(1 - level) / np.log(unseen) if unseen > _ROUNDING else 0.0
    missed = np.minimum(n_missed / np.maximum(counted, 1), 1)
    low = np.where(found == 0, 0.0, np.where(found < counted, low, np.minimum(low, 1 - missed)))
    high = np.where(found == counted, 1.0, np.where(found > 0, high, np.maximum(high, missed)))
    return Intervals(shares, low, high)


def _tuning(truth: Floats, predicted: Floats) -> Floats:
    """Return the λ in 0..1 that minimises the variance of the mean of truth − λ · predicted."""
    own = predicted - predicted.mean(axis=0)
    alone = (own**2).sum(axis=0)
    return np.asarray(np.clip((own * truth).sum(axis=0) / np.where(alone > 0, alone, 1), 0, 1))


def _estimated(part: Target, whole: Target, tuning: Floats, unseen: float) -> tuple[Floats, Floats]:
    """Return the share by the difference estimator with this λ, and its variance."""
    amount = _difference(whole, tuning)
    share = _ratio(_difference(part, tuning), amount)
    residual = (part[0] - share * whole[0]) - tuning * (part[1] - share * whole[1])
    amount = np.maximum(np.where(amount > 0, amount, whole[2]), _TINY)
    n_verified = len(residual)
    squares = ((residual - residual.mean(axis=0)) ** 2).sum(axis=0)
    return share, squares * unseen / (n_verified * max(n_verified - 1, 1)) / amount**2


def _difference(target: Target, tuning: Floats) -> Floats:
    """Return λ · mean prediction + mean of (truth − λ · prediction) over the verified rows."""
    truth, predicted, mean = target
    return np.asarray(tuning * mean + (truth - tuning * predicted).mean(axis=0))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.clip(part / np.where(whole > 0, whole, 1), 0, 1))
