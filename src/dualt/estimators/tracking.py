"""Which rows to keep: the best of every column, and a uniform sample. Both forget nothing that matters.

Rows are known by number. Ties go to the lower number, so the result does not depend on how the rows
were cut into chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class AnchorTracker:
    """The `n_anchors` largest entries of every column of a stream of chunks.

    A chunk's columns are looked into only where their maximum beats the worst entry that is kept.
    Candidates gather in a buffer that is sorted rarely: after the data has doubled, or when it is full.
    """

    def __init__(self, n_classes: int, n_anchors: int, dtype: np.dtype[Any]) -> None:
        self._n_classes = n_classes
        self._n_anchors = n_anchors
        self._floor = np.full(n_classes, -1, dtype)
        self._kept: list[tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64]]] = []
        self._buffered = 0
        self._chunks = 0

    def read(self, chunk: NDArray[Any], maxima: NDArray[Any], start: int) -> None:
        """Take candidates from `chunk`, whose columns have these maxima and whose first row has number `start`."""
        (hot,) = (maxima > self._floor).nonzero()
        if len(hot):
            if len(hot) > self._n_classes // 8:  # comparing all columns then costs less than gathering some
                part, hot = chunk, np.arange(self._n_classes)
            else:
                part = chunk.take(hot, axis=1)
            (found,) = (part > self._threshold(part, self._floor[hot])).ravel().nonzero()
            rows, places = np.divmod(found, len(hot))
            self._kept.append((hot[places], part.ravel()[found], rows + start))
            self._buffered += len(rows)
        self._chunks += 1
        doubled = self._chunks & (self._chunks - 1) == 0
        if doubled or self._buffered > 8 * self._n_anchors * self._n_classes:
            self._compact()

    def _threshold(self, part: NDArray[Any], floor: NDArray[Any]) -> NDArray[Any]:
        """Return what an entry must exceed: the floor, or just below the chunk's own n-th largest entry."""
        if len(part) <= self._n_anchors or floor[0] >= 0:
            return floor
        nth: NDArray[Any] = np.partition(part, len(part) - self._n_anchors, axis=0)[-self._n_anchors]
        return np.asarray(np.nextafter(nth, np.array(-1, part.dtype)))

    def _compact(self) -> None:
        if not self._buffered:
            return
        column, value, row = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        column, value, row, rank = best_per_column(column, value, row, self._n_anchors)
        full = rank == self._n_anchors - 1
        self._floor[column[full]] = value[full]
        self._kept = [(column, value, row)]
        self._buffered = 0

    def best(self) -> NDArray[np.int64]:
        """Return row numbers (n_classes, n_anchors), best first; −1 where there are fewer."""
        self._buffered = 1
        self._compact()
        ((column, value, row),) = self._kept
        column, _, row, rank = best_per_column(column, value, row, self._n_anchors)
        index = np.full((self._n_classes, self._n_anchors), -1, np.int64)
        index[column, rank] = row
        return index


def best_per_column(
    column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64], n_best: int
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64], NDArray[np.intp]]:
    """Return the entries among the `n_best` largest of their column, sorted, and their rank in it.

    Equal entries must come in the order of their rows.
    """
    order = np.lexsort((-value, column))  # stable: equal values stay in the order of their rows
    column, value, row = column[order], value[order], row[order]
    first = np.searchsorted(column, column)
    rank = np.arange(len(column)) - first
    best = rank < n_best
    return column[best], value[best], row[best], rank[best]


class RowSampler:
    """A uniform sample of `size` rows: those whose number has the lowest hash."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: list[NDArray[np.int64]] = []
        self._ceiling = np.uint32(np.iinfo(np.uint32).max)
        self._buffered = 0

    def read(self, start: int, n_rows: int) -> None:
        """Offer the rows `start` … `start + n_rows − 1`."""
        number = np.arange(start, start + n_rows)
        number = number[priority(number) <= self._ceiling]
        self._kept.append(number)
        self._buffered += len(number)
        if self._buffered > 2 * self.size:
            chosen = self.chosen()
            self._kept, self._buffered = [chosen], len(chosen)
            self._ceiling = priority(chosen).max()

    def chosen(self) -> NDArray[np.int64]:
        """Return the numbers of the sampled rows, ascending."""
        number = np.concatenate(self._kept)
        return number[lowest_priority(number, self.size)]


def lowest_priority(number: NDArray[np.int64], size: int) -> NDArray[np.intp]:
    """Return the places of the `size` rows that come first by the hash of their number."""
    if len(number) <= size:
        return np.arange(len(number))
    # The number itself settles ties of the hash, which start beyond 2^32 rows.
    key = (priority(number).astype(np.uint64) << np.uint64(32)) + (number & 0xFFFFFFFF).astype(np.uint64)
    return np.flatnonzero(key <= np.partition(key, size - 1)[size - 1])


def priority(number: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash row numbers to uniform 32-bit integers (the finaliser of MurmurHash3, one to one below 2^32)."""
    mixed = (number ^ (number >> 32) * 0x9E3779B1).astype(np.uint32)
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
