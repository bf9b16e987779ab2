"""The confident joint: count examples that clear the mean confidence of a class."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import resample_counts
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.counts import count_pairs, normalize_counts
from dualt.rows.floats import surest
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary


def confident_joint(posterior: NoisyPosterior) -> Fit:
    """T̂ = the confident joint J[given, true], calibrated to the label counts, read by its true class.

    An example is taken to be of the class k with the largest p_k among those with p_k ≥ t_k, where
    t_k is the mean p_k over the examples given label k. Examples that clear no threshold are not counted.

    References
    ----------
    Northcutt, Jiang, Chuang. Confident Learning: Estimating Uncertainty in Dataset Labels. JAIR 2021.
    """
    counts = count_confident(posterior)
    label_counts = posterior.summary.label_counts
    return Fit(
        transition=_calibrated(counts, label_counts),
        support=counts.sum(axis=0),
        resample=partial(_resample, counts, label_counts),
    )


def confident_joint_of_sample(summary: PosteriorSummary) -> Matrix:
    """Return the same matrix, counted over the sample alone: enough to start from, and no pass over the data."""
    pairs = _confident_pairs(_thresholds(summary), summary.sample_rows, summary.sample_labels)
    return _calibrated(_with_diagonal(count_pairs([pairs], summary.n_classes)), summary.label_counts)


def count_confident(posterior: NoisyPosterior) -> NDArray[np.int64]:
    """Return J[given, true] with at least one on its diagonal."""
    return _with_diagonal(posterior.count(partial(_confident_pairs, _thresholds(posterior.summary))))


def _thresholds(summary: PosteriorSummary) -> NDArray[np.float64]:
    """Return t_k. A class without labels has no mean, and nothing clears an infinite threshold."""
    return np.nan_to_num(summary.mean_self_confidence, nan=np.inf)


def _confident_pairs(thresholds: NDArray[np.float64], probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
    true, _ = surest(probs, floor=thresholds.astype(probs.dtype))
    confident = np.flatnonzero(true >= 0)
    return np.asarray(labels[confident] * len(thresholds) + true[confident])


def _with_diagonal(joint: NDArray[np.int64]) -> NDArray[np.int64]:
    np.fill_diagonal(joint, np.maximum(np.diagonal(joint), 1))
    return joint


def _resample(counts: NDArray[np.int64], label_counts: NDArray[np.int64], rng: np.random.Generator) -> Matrix:
    return _calibrated(resample_counts(counts, rng), label_counts)


def _calibrated(counts: NDArray[np.int64], label_counts: NDArray[np.int64]) -> Matrix:
    joint = normalize_counts(counts) * label_counts[:, None]
    return normalize_counts(joint.T)
