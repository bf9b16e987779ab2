"""Calibration on the given labels: one power for all probabilities (temperature), and class shares."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.rng import stream

_LEAST_POWER, _MOST_POWER, _HALVINGS = 1 / 16, 4.0, 9
# This share of every row is spread evenly over all classes, because a predicted zero is not certain.
TAIL = 0.01

# Mean probabilities this far from the shares of the labels, beyond chance, are those of a classifier that was fitted
# with class weights or on other data.
_FAR_FROM_SHARES = 0.03
_MATCHED_ROWS, _MATCHINGS, _REACHED, _LEAST_FACTOR, _LEAST_MEAN = 20_000, 200, 1e-4, 1e-4, 1e-6


def likeliest_power(probs: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the power a that maximises the likelihood of the given labels under p^a, normalised.

    Below 1 for an over-confident classifier, above 1 for an under-confident one.
    """
    logs = np.log(probs + probs.dtype.type(TAIL / probs.shape[1]))
    logs -= logs.max(axis=1, keepdims=True)
    own, ones = float(logs[np.arange(len(labels)), labels].mean()), np.ones(logs.shape[1], logs.dtype)
    low, high = _LEAST_POWER, _MOST_POWER
    for _ in range(_HALVINGS):  # the slope of the likelihood falls with the power
        power = float(np.sqrt(low * high))
        weights = np.exp(logs.dtype.type(power) * logs)
        totals = weights @ ones
        weights *= logs
        expected = float((weights @ ones / totals).mean())
        low, high = (power, high) if own > expected else (low, power)
    return float(np.sqrt(low * high))


def apply_power(probs: NDArray[Any], power: float, tail: float = TAIL) -> NDArray[Any]:
    """Return (p + tail / C)^power, with rows that sum to one."""
    if power == 1 and not tail:
        return probs
    raised = probs + probs.dtype.type(tail / probs.shape[1])
    with np.errstate(divide="ignore"):  # a zero stays one
        np.log(raised, out=raised)
    raised *= raised.dtype.type(power)
    np.exp(raised, out=raised)
    raised /= (raised @ np.ones(raised.shape[1], raised.dtype))[:, None]
    return np.asarray(raised)


def share_distance(probs: NDArray[Any], label_counts: NDArray[Any]) -> float:
    """Return ½ Σ|mean probability − share of the label|: near zero for a classifier fitted on these labels."""
    return float(np.abs(probs.mean(axis=0, dtype=np.float64) - label_counts / label_counts.sum()).sum() / 2)


def has_other_shares(distance: float, probs: NDArray[Any]) -> bool:
    """Return whether a `share_distance` is more than chance explains."""
    return bool(distance > _FAR_FROM_SHARES + np.sqrt(probs.shape[1] / len(probs)) / 2)


def share_factors(probs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the factor of each class by which the mean probabilities become the shares of the labels.

    Ones where they are near already, and where no factors bring them near.
    """
    if len(probs) > _MATCHED_ROWS:
        chosen = stream(0, "rows that tell factors").choice(len(probs), _MATCHED_ROWS, replace=False)
        probs, labels = probs[chosen], labels[chosen]
    counts = np.bincount(labels, minlength=probs.shape[1])
    shares, ones = counts / counts.sum(), np.ones(len(counts))
    if not has_other_shares(share_distance(probs, counts), probs):
        return ones
    factors = ones.copy()
    for _ in range(_MATCHINGS):
        means = scale_classes(probs, factors).mean(axis=0)
        if np.abs(means - shares).sum() / 2 < _REACHED:
            break
        factors *= np.where(means > _LEAST_MEAN, shares / np.maximum(means, _LEAST_MEAN), 1)
        factors = np.maximum(factors / factors.max(), _LEAST_FACTOR)
    return ones if has_other_shares(share_distance(scale_classes(probs, factors), counts), probs) else factors


def scale_classes(probs: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities with every class multiplied by its factor, and rows that sum to one again."""
    if (factors == 1).all():
        return probs
    found = probs * factors
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))
