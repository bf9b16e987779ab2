"""The confident joint: count examples that reach the mean confidence of a class."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import count_fit
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rows.chunks import normalize_counts, surest
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import CONFIDENCE_UNIT


def confident_joint(posterior: NoisyPosterior) -> Fit:
    """T̂ = the confident joint J[given, true], calibrated to the label counts, read by its true class.

    An example is taken to be of the class k with the largest p_k among those with p_k ≥ t_k, where
    t_k is the mean p_k over the examples given label k. Examples that reach no threshold are not counted.

    References
    ----------
    Northcutt, Jiang, Chuang. Confident Learning: Estimating Uncertainty in Dataset Labels. JAIR 2021.
    """
    counts, label_counts = count_confident(posterior), posterior.summary.label_counts
    calibrated = count_fit(counts, partial(calibrated_joint, label_counts=label_counts))
    return replace(calibrated, support=counts.sum(axis=0))


def count_confident(posterior: NoisyPosterior) -> NDArray[np.int64]:
    """Return J[given, true], with at least one on its diagonal."""
    summary = posterior.summary
    with np.errstate(invalid="ignore"):  # a class without labels has no mean, and no example reaches it
        means = summary.confidence_sums * CONFIDENCE_UNIT / summary.label_counts
    # Rounded down, so that a class's only example reaches its own mean.
    thresholds = np.nan_to_num(np.maximum(means - CONFIDENCE_UNIT, means / 2), nan=np.inf).astype(posterior.dtype)
    return with_diagonal(posterior.count(partial(confident_pairs, thresholds)))


def with_diagonal(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts, changed in place, with at least one on the diagonal."""
    np.fill_diagonal(counts, np.maximum(np.diagonal(counts), 1))
    return counts


def confident_pairs(thresholds: NDArray[Any], probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
    """Return given · n_classes + true of the rows that reach a threshold, which is of their float type."""
    true, confidence = surest(np.where(probs >= thresholds, probs, -1))
    confident = np.flatnonzero(confidence >= 0)
    return np.asarray(labels[confident] * len(thresholds) + true[confident])


def calibrated_joint(counts: NDArray[np.int64], label_counts: NDArray[np.int64]) -> Matrix:
    """Return T of counts[given, true] whose rows are scaled to the number of labels."""
    joint = normalize_counts(counts) * label_counts[:, None]
    return normalize_counts(joint.T)
