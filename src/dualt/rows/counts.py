"""Counts of pairs of classes: added up, and turned into rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def add_counts(counts: NDArray[np.int64], keys: NDArray[np.intp]) -> None:
    """Add one to `counts` (flat) at each of `keys`, in time that depends on the smaller of the two."""
    if len(counts) <= 4 * len(keys):
        counts += np.bincount(keys, minlength=len(counts))
    else:
        np.add.at(counts, keys, 1)


def count_pairs(pairs: Iterable[NDArray[np.intp]], n_classes: int, n_layers: int = 1) -> NDArray[np.int64]:
    """Return counts (n_classes, n_classes) of pairs of classes, each given as row · n_classes + column.

    Of several layers, (n_layers, n_classes, n_classes): a pair of a later layer counts n_classes² on for each.
    """
    counts = np.zeros(n_layers * n_classes * n_classes, np.int64)
    for keys in pairs:
        add_counts(counts, keys)
    return counts.reshape((n_layers, n_classes, n_classes)[n_layers == 1 :])


def normalize_counts(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return counts divided by their row's sum; an empty row becomes the unit vector of its class.

    The unit vector is the paper's sufficient condition, intermediate class = noisy label.
    """
    totals = counts.sum(axis=1, keepdims=True)
    rows: NDArray[np.float64] = counts / np.where(totals > 0, totals, 1)
    empty = np.flatnonzero(totals == 0)
    rows[empty, empty] = 1
    return rows
