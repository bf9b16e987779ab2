"""Rows of probabilities in the float type in which they are worked with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the native float type in which rows of `dtype` are read: float32 if it holds them, else float64."""
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)


def as_rows(probs: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return `probs` contiguous and of type `dtype`, without copying them if they are."""
    return np.ascontiguousarray(probs, dtype=dtype)


def surest(
    rows: NDArray[Any], *, floor: NDArray[Any] | None = None, without: NDArray[Any] | None = None
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return where each row is largest, the first of equals, and that entry; none is negative.

    Among the entries that reach the `floor` of their column, and `without` one column of each row. Where there is none,
    the place is −1.
    """
    if floor is None and without is None:
        best = rows.argmax(axis=1)
        return best, entries_at(rows, best)
    left = rows.copy() if floor is None else np.where(rows >= floor, rows, -1)
    if without is not None:
        left[np.arange(len(rows)), without] = -1
    best = left.argmax(axis=1)
    return np.where(entries_at(left, best) < 0, -1, best), entries_at(rows, best)


def entries_at(rows: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any]:
    """Return the entry of each row that is in the column of this number; twice as fast as indexing with two arrays."""
    return rows.ravel().take(np.arange(0, rows.size, rows.shape[1]) + columns)


def rows_at(table: NDArray[Any], numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Return the rows of these numbers: short ones several times as fast as by indexing, without a copy of all."""
    return np.asarray(table).take(numbers, axis=0) if table.flags.c_contiguous else np.asarray(table[numbers])
