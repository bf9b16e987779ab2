"""Arithmetic on chunks of rows: float types, largest entries, and counts of pairs of classes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the native float type in which rows of `dtype` are read: float32 if it holds them, else float64."""
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)


def surest(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the column of each row's largest entry, the first of equals, and that entry."""
    best = rows.argmax(axis=1)
    return best, entries_at(rows, best)


def entries_at(rows: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any]:
    """Return the entry of each row in the column of this number; twice as fast as indexing with two arrays."""
    return rows.ravel().take(np.arange(0, rows.size, rows.shape[1]) + columns)


def add_counts(counts: NDArray[Any], keys: NDArray[np.intp], weights: NDArray[Any] | None = None) -> None:
    """Add one, or `weights`, to `counts` (flat) at each of `keys`, in time that depends on the smaller of the two."""
    if len(counts) <= 4 * len(keys):
        counts += np.bincount(keys, weights, len(counts))
    else:
        np.add.at(counts, keys, 1 if weights is None else weights)


def count_pairs(pairs: Iterable[NDArray[np.intp]], n_classes: int) -> NDArray[np.int64]:
    """Return counts (n_classes, n_classes) of pairs of classes, each given as row · n_classes + column."""
    counts = np.zeros(n_classes * n_classes, np.int64)
    for keys in pairs:
        add_counts(counts, keys)
    return counts.reshape(n_classes, n_classes)


def normalize_counts(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return counts divided by their row's sum; an empty row becomes the unit vector of its class.

    The unit vector is the paper's sufficient condition, intermediate class = noisy label.
    """
    totals = counts.sum(axis=1, keepdims=True)
    rows: NDArray[np.float64] = counts / np.where(totals > 0, totals, 1)
    empty = np.flatnonzero(totals == 0)
    rows[empty, empty] = 1
    return rows
