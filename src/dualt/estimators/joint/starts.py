"""Where `joint` may start: matrices counted in several ways, since the objective has more than one valley."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import match_rows
from dualt.labels import Codes
from dualt.results.fit import Matrix
from dualt.rows.counts import normalize_counts

# A start whose thinnest row rests on fewer labels than this is left out.
_LEAST_LABELS = 50
_TOP_SHARES = (0.5, 0.05)
_CLUSTER_SHARES = (0.5, 0.2)
_ROUNDS = 10
_PRIOR_LABELS = 0.5
_FLOOR = 1e-6


def starting_points(probs: NDArray[Any], labels: Codes, first: Matrix) -> Iterator[Matrix]:
    """Yield `first`, then counts among confident examples, then clusters grown from each of them."""
    yield first
    counted = [top_counts(probs, labels, share) for share in _TOP_SHARES]
    for counts in counted:
        if _is_supported(counts):
            yield match_rows(normalize_counts(counts))[0]
    for seed in (first, *map(normalize_counts, counted)):
        for share in _CLUSTER_SHARES:
            counts, clusters = cluster_counts(probs, labels, seed, share)
            if _is_supported(counts):
                yield match_rows(clusters)[0]


def _is_supported(counts: NDArray[np.int64]) -> bool:
    return bool(counts.sum(axis=1).min() >= _LEAST_LABELS)


def top_counts(probs: NDArray[Any], labels: Codes, share: float) -> NDArray[np.int64]:
    """Count the given labels among the `share` of each predicted class with the highest probability of it."""
    predicted = probs.argmax(axis=1)
    return _count_best(predicted, probs[np.arange(len(probs)), predicted], labels, share, probs.shape[1])


def cluster_counts(
    probs: NDArray[Any], labels: Codes, transition: Matrix, share: float
) -> tuple[NDArray[np.int64], Matrix]:
    """Run k-means on p by KL(p ‖ T_k): T_k from the labels of the `share` of cluster k with the widest margin."""
    before = np.zeros(transition.shape, np.int64)
    for _ in range(_ROUNDS):
        scores = probs @ np.log(np.maximum(transition, _FLOOR)).T.astype(probs.dtype)
        top_two = np.partition(scores, -2, axis=1)[:, -2:]
        margins = top_two[:, 1] - top_two[:, 0]
        counts = _count_best(scores.argmax(axis=1), margins, labels, share, len(transition))
        transition = normalize_counts(counts + _PRIOR_LABELS * transition)
        if np.array_equal(counts, before) or not _is_supported(counts):
            break
        before = counts
    return counts, transition


def _count_best(
    groups: NDArray[np.intp], scores: NDArray[Any], labels: Codes, share: float, n_classes: int
) -> NDArray[np.int64]:
    """Count (group, label) over the `share` of each group with the highest scores."""
    order = np.lexsort((-scores, groups))
    groups, labels = groups[order], labels[order]
    sizes = np.bincount(groups, minlength=n_classes)
    rank = np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[groups]
    kept = rank < np.ceil(share * sizes)[groups]
    keys = groups[kept] * n_classes + labels[kept]
    return np.bincount(keys, minlength=n_classes**2).reshape(n_classes, n_classes)
