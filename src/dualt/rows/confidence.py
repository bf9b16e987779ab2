"""How far probabilities say what they know: the power of them that fits the labels best, and the classes' shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.rng import stream
from dualt.rows.summary import PosteriorSummary

# So many rows tell the power, of many classes as many as have so many entries, but no fewer than the last.
_MOST_ROWS, _ENTRIES, _FEWEST_ROWS = 4_096, 1 << 20, 512
# Its limits; what is less probable than the last counts as that.
_LEAST, _MOST, _LEAST_PROBABILITY = 1 / 16, 4.0, 1e-6
_HALVINGS = 8
# A classifier may say so many times less than it knows: the surest are then sure indeed.
_CAUTION = 1.5
# A classifier whose log odds should be less than half of what they are: its sureness says little. Between the other
# two it is not known whether they are only those of a network that was stopped early, or too sure.
FAR_TOO_SURE, _TOO_SURE, _MAYBE_TOO_SURE = 0.5, 0.8, 0.9

# Mean probabilities are not of these labels where they are this far from the labels' shares, beyond chance.
_FAR_FROM_SHARES = 0.03
# So many rows tell the factors of classes, in so many steps, unless the shares are reached before. No class weighs less
# than the last beside another: what would need it are predictions of 0 and 1, which have no weights to take back.
_MATCHED_ROWS, _MATCHINGS, _REACHED, _LEAST_FACTOR = 20_000, 200, 1e-4, 1e-4


def calibration_of_sample(summary: PosteriorSummary) -> float:
    """Return the `calibration` of some rows of the sample."""
    few = summary.thinned(min(_MOST_ROWS, max(_FEWEST_ROWS, _ENTRIES // summary.n_classes)))
    return calibration(few.sample_rows, few.sample_labels)


def calibration(probs: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the power that makes probabilities fit the labels of their rows best: temperature scaling.

    Below 1 for a classifier that is surer than it should be; above 1 for one that agrees with the labels more often
    than it says, as forests do; 1 where chance explains the difference, and for predictions of 0 and 1, which have no
    power but themselves. Above 1 at most so much that it says how often it agrees: where labels are often taken for one
    other, the likelihood alone asks for more.
    """
    if probs.max(axis=1).min() == 1:
        return 1.0
    logs = np.log(np.maximum(probs, _LEAST_PROBABILITY))
    logs -= logs.max(axis=1, keepdims=True)
    of_labels = logs[np.arange(len(labels)), labels]
    agreement, ones = float((of_labels == 0).mean()), np.ones(logs.shape[1], logs.dtype)

    def gains(power: float) -> tuple[NDArray[Any], float]:
        """How the log-likelihood of each label grows with the power, and by how much agreement exceeds sureness."""
        weights = np.exp(power * logs)
        totals = weights @ ones  # sums of short rows are faster so
        return of_labels - np.einsum("ij,ij->i", weights, logs) / totals, agreement - float((1 / totals).mean())

    first, exceeds = gains(1.0)
    chance = 3 * first.std() / np.sqrt(len(labels))
    if abs(first.mean()) <= chance or (first.mean() > 0 and exceeds <= 0):
        return 1.0
    low, high = (1.0, _MOST) if first.mean() > 0 else (_LEAST, 1.0)
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        gained, exceeds = gains(middle)
        more = gained.mean() > 0 and (middle < 1 or exceeds > 0)
        low, high = (middle, high) if more else (low, middle)
    return float(np.sqrt(low * high))


def power_to_read(fitting: float) -> float:
    """Return the power at which a classifier of this calibration should be read.

    Where it says far less than it knows, its doubt would pass for errors of its own; where it is far too sure, its
    errors for wrong labels. Only what goes beyond a limit is taken back: to soften further would excuse the wrong
    labels of hard examples.
    """
    return max(1.0, fitting / _CAUTION) * min(1.0, fitting / FAR_TOO_SURE)


def too_sure(fitting: float) -> float:
    """Return how far a classifier of this calibration is surer than it should be: 0 not at all, 1 clearly."""
    return min(1.0, max(0.0, (_MAYBE_TOO_SURE - fitting) / (_MAYBE_TOO_SURE - _TOO_SURE)))


def distance_of_shares(probs: NDArray[Any], label_counts: NDArray[Any]) -> float:
    """Return ½ Σ|mean probability − share of the label|: next to nothing for a classifier of these labels.

    One that was fitted with class weights, or to other examples, speaks of other shares.
    """
    return float(np.abs(probs.mean(axis=0, dtype=np.float64) - label_counts / label_counts.sum()).sum() / 2)


def are_other_shares(distance: float, probs: NDArray[Any], least: float = _FAR_FROM_SHARES) -> bool:
    """Tell whether a `distance_of_shares` exceeds `least` by more than chance explains."""
    return bool(distance > least + np.sqrt(probs.shape[1] / len(probs)) / 2)


def share_factors(probs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return what to multiply each class by, so that the means are the shares of the labels.

    Ones where they are near, and where no factors would bring them near.
    """
    if len(probs) > _MATCHED_ROWS:
        chosen = stream(0, "rows that tell factors").choice(len(probs), _MATCHED_ROWS, replace=False)
        probs, labels = probs[chosen], labels[chosen]
    counts = np.bincount(labels, minlength=probs.shape[1])
    shares, ones = counts / counts.sum(), np.ones(len(counts))
    if not are_other_shares(distance_of_shares(probs, counts), probs):
        return ones
    factors = ones.copy()
    for _ in range(_MATCHINGS):
        means = scaled(probs, factors).mean(axis=0)
        if np.abs(means - shares).sum() / 2 < _REACHED:
            break
        factors *= np.where(means > _LEAST_PROBABILITY, shares / np.maximum(means, _LEAST_PROBABILITY), 1)
        factors = np.maximum(factors / factors.max(), _LEAST_FACTOR)
    return ones if are_other_shares(distance_of_shares(scaled(probs, factors), counts), probs) else factors


def scaled(probs: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities with every class multiplied by its factor, and rows that sum to one again."""
    if (factors == 1).all():
        return probs
    found = probs * factors
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))


def raised(probs: NDArray[Any], power: float) -> NDArray[Any]:
    """Return the power of every probability, with rows that sum to one again."""
    if power == 1:
        return probs
    powers = np.ascontiguousarray(probs) ** power  # however they lie in memory, sums are rounded alike
    powers /= (powers @ np.ones(powers.shape[1], powers.dtype))[:, None]
    return np.asarray(powers)
