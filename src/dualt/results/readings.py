"""What the same data can mean: the least and the most noise that fit them, and how far the matrix may decide.

Two readings fit probabilities and labels equally well. Either the noise is the same for all examples of a class, and
labels that contradict an unsure prediction are the classifier's errors; or the noise grows with difficulty, and they
are wrong labels. A noise rate is therefore a range, unless verified labels have decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dualt.results.estimate import TransitionEstimate

Floats = NDArray[np.float64]

_TOO_WIDE = 0.3
SELDOM_SURE = "the classifier is seldom sure of a class, and its own errors cannot be told from wrong labels"
CANNOT_TELL = "probabilities cannot tell more, and errors that the classifier repeats do not show"
TOO_FAR_APART = "these data fit too many noise rates"
AT_CHANCE = "the classifier agrees with the labels no more often than always giving the most frequent label would"
# Estimators that may know better than the classifier: by the true labels, or by features of the examples.
_BY_OTHER_MEANS = ("oracle", "hoc")


@dataclass(frozen=True)
class Readings:
    """The least and the most noise that fit the data, per class.

    Attributes
    ----------
    least, most : (n_classes,)
        Noise rates of the two readings.
    least_support, most_support : (n_classes,)
        Number of labels that each of them rests on.
    seldom_sure : bool
        Whether the classifier is too weak to tell its errors from wrong labels.
    trust : float
        How far the structure of the matrix may decide which labels are wrong, from 0 (the probabilities alone
        decide) to 1 (Bayes' rule through the matrix does).
    surest : (int, int)
        How many of the surest few contradict their label, of how many, where the least noise may have other reasons, as
        classes that overlap, or a classifier that is seldom or far too sure: the range then starts at what these few
        show. (0, 0) where it starts at the least noise.
    power : float
        At which the probabilities were read: above 1 for a classifier that says far less than it knows, below 1 for one
        that is far too sure. See `dualt.rows.confidence`.
    """

    least: Floats
    most: Floats
    least_support: NDArray[np.int64]
    most_support: NDArray[np.int64]
    seldom_sure: bool
    trust: float
    surest: tuple[int, int] = (0, 0)
    power: float = 1.0

    @property
    def other_reasons(self) -> bool:
        """Whether the least noise may have other reasons than wrong labels."""
        return self.surest[1] > 0

    def class_ranges(self, level: float) -> tuple[Floats, Floats]:
        """Return (low, high), each (n_classes,): the readings with their sampling error."""
        z = NormalDist().inv_cdf(0.5 + level / 2)
        low = self.least - z * np.sqrt(_variance(self.least, self.least_support))
        high = self.most + z * np.sqrt(_variance(self.most, self.most_support))
        told = (self.least > 0) & (not self.other_reasons)  # the surest few are too few for each class
        return np.where(told, np.maximum(low, 0), 0), np.minimum(high, 1)

    def range(self, prior: Floats, level: float) -> tuple[float, float]:
        """Return (low, high) for the share of wrong labels among examples whose classes have the shares `prior`."""
        z = NormalDist().inv_cdf(0.5 + level / 2)
        low = prior @ self.least - z * np.sqrt(prior**2 @ _variance(self.least, self.least_support))
        high = prior @ self.most + z * np.sqrt(prior**2 @ _variance(self.most, self.most_support))
        if self.other_reasons:
            wrong, rows = self.surest
            low = min(low, wrong / rows - z * np.sqrt(_variance(np.float64(wrong / rows), np.int64(rows))))
        return max(0.0, float(low)), min(1.0, float(high))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}


def _variance(rates: Floats, support: NDArray[np.int64]) -> Floats:
    """Return the variance of a share of `support` labels, kept above zero as if one more had been wrong."""
    rows = np.maximum(support, 1)
    return np.asarray((rates * (1 - rates) + 1 / rows) / rows)


def undecided(estimate: TransitionEstimate) -> str | None:
    """Return why no noise rate should be claimed from these data alone; None if one, or a range, may be."""
    readings = estimate.fit.readings
    if readings is not None and readings.seldom_sure:
        return SELDOM_SURE
    if _at_chance(estimate):
        return AT_CHANCE
    if readings is None:
        return None
    low, high = estimate.noise_rate_range
    # From zero on, or what only the surest few show, it is a limit, which claims no rate.
    return TOO_FAR_APART if low > 0 and not readings.other_reasons and high - low > _TOO_WIDE else None


def _at_chance(estimate: TransitionEstimate) -> bool:
    """Tell whether the estimate rests on a classifier that tells nothing of the labels."""
    if not estimate.diagnostics.at_chance or estimate.estimator in _BY_OTHER_MEANS:
        return False
    return estimate.audit is None


def nothing_sure(estimate: TransitionEstimate) -> bool:
    """Tell whether even the surest examples show no wrong labels: none may be wrong, or errors that are repeated."""
    readings = estimate.fit.readings
    if readings is None or not readings.least.any():
        return readings is not None
    return readings.other_reasons and estimate.noise_rate_range[0] == 0


def told_as_range(estimate: TransitionEstimate) -> bool:
    """Tell whether one rate would claim too much.

    It would where the readings differ by more than sampling does, where all labels may be right, and where the
    classifier is at chance.
    """
    if _at_chance(estimate):
        return True
    readings = estimate.fit.readings
    if readings is None:
        return False
    low, high = estimate.noise_rate_range
    apart = float(estimate.clean_prior @ (readings.most - readings.least))
    return low == 0 or apart > (high - low) - apart


def rate_range(estimate: TransitionEstimate, level: float) -> tuple[float, float]:
    """Return (low, high) for the noise rate: over the readings if the estimator tells them, else of sampling alone."""
    if estimate.fit.readings is None:
        return estimate.noise_rate_interval(level)
    low, high = estimate.fit.readings.range(estimate.clean_prior, level)
    return min(low, estimate.noise_rate), min(max(high, estimate.noise_rate), 1.0)  # which rounding may exceed


def rates_range(estimate: TransitionEstimate, level: float) -> tuple[Floats, Floats]:
    """Return (low, high), each (n_classes,): the same for the noise rate of every class."""
    if estimate.fit.readings is None:
        return estimate.noise_rates_interval(level)
    low, high = estimate.fit.readings.class_ranges(level)
    return np.minimum(low, estimate.noise_rates), np.maximum(high, estimate.noise_rates)


def finding(estimate: TransitionEstimate, level: float = 0.95) -> str:
    """Return the finding in a sentence: one rate if sampling is all that is unsure of it, a range, or that none is."""
    if not told_as_range(estimate):
        return f"{estimate.noise_rate:.1%} of the labels are wrong"
    if undecided(estimate) is not None:
        return "No noise rate can be claimed"
    words = between(*rate_range(estimate, level))
    verb = "show as wrong" if nothing_sure(estimate) else "are wrong"
    return f"{words[0].upper()}{words[1:]} labels {verb}"


def basis(estimate: TransitionEstimate, level: float = 0.95) -> str:
    """Return what stands behind the finding: an interval, the best guess, or why there is none."""
    if not told_as_range(estimate):
        low, high = rate_range(estimate, level)
        return f"{level:.0%} interval {low:.1%} to {high:.1%}"
    reason = undecided(estimate)
    if reason == AT_CHANCE:
        return reason  # nor can a range be told
    if reason is not None:
        return f"{reason}: {between(*rate_range(estimate, level))} may be wrong"
    if nothing_sure(estimate):
        return f"best guess {estimate.noise_rate:.1%}; {CANNOT_TELL}: check a sample (dualt audit)"
    return f"best guess {estimate.noise_rate:.1%}; any rate between fits these data, and a checked sample would decide"


def between(low: float, high: float) -> str:
    """Return a range of shares as counts of a hundred.

    Examples
    --------
    >>> between(0.301, 0.43), between(0.0, 0.19), between(0.002, 0.004)
    ('between 30 and 43 in 100', 'at most 19 in 100', 'at most 1 in 100')
    """
    # Of per cents with one decimal, as they are shown elsewhere: 32.04 is 32.0 there, and 100 * 0.29 is below 29.
    first, last = int(np.floor(round(100 * low, 1))), max(1, int(np.ceil(round(100 * high, 1))))
    return f"between {first} and {last} in 100" if first else f"at most {last} in 100"
