"""Selective classification: count labels among the highest scores of a class that hold its label most often."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import count_fit
from dualt.labels import Codes
from dualt.results.fit import Fit
from dualt.rows.posterior import NoisyPosterior

_FEWEST = 30


def selective(posterior: NoisyPosterior) -> Fit:
    """T̂[j, :] = labels among the k examples of highest p_j among which label j has the largest share.

    k is at least a tenth of a mean class and at least 30, since the share among few is largest by chance.

    References
    ----------
    de Juan, Mazuelas, Zhu, Scott. Estimation of the Label-Noise Transition Matrix with Performance Guarantees via
    Selective Classification. NeurIPS 2026.
    """
    fewest = min(max(_FEWEST, posterior.n_samples // (10 * posterior.n_classes)), posterior.n_samples)
    return count_fit(posterior.count(partial(_accepted_pairs, _limits(posterior, fewest))))


def _limits(posterior: NoisyPosterior, fewest: int) -> NDArray[np.float64]:
    """Return the score from which each class accepts, from the summary's sample."""
    rows, labels = posterior.summary.sample_rows, posterior.summary.sample_labels
    fewest = max(1, round(fewest * len(rows) / posterior.n_samples))
    limits = np.empty(posterior.n_classes)
    for label in range(posterior.n_classes):
        order = np.argsort(-rows[:, label], kind="stable")
        shares = np.cumsum(labels[order] == label) / np.arange(1, len(rows) + 1)
        accepted = fewest + int(np.argmax(shares[fewest - 1 :]))
        limits[label] = rows[order[accepted - 1], label]
    return limits


def _accepted_pairs(limits: NDArray[np.float64], probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
    rows, classes = np.nonzero(probs >= limits.astype(probs.dtype))
    return np.asarray(classes * len(limits) + labels[rows])
