"""Which rows to keep: the best of every column, and a uniform sample. Both forget nothing that matters.

Rows are known by number. Ties go to the lower number, so the result does not depend on how the rows
were cut into chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels
from dualt.validation import ROW_SUM_TOLERANCE

# No two entries of a row exceed this: what does is the largest of its row.
HALF = (1 + ROW_SUM_TOLERANCE) / 2
_LONG_ROW = 1024
_HIGHEST = 2**32 - 1


class AnchorTracker:
    """The `n_anchors` largest entries of every column of a stream of chunks.

    A column whose worst kept entry is above one half is searched among the rows that predict it: what beats that
    entry is the largest of its row. The others are looked into where the chunk's maximum beats it.
    Candidates gather in a buffer that is sorted rarely: when three times the data was read, or it is full.
    """

    def __init__(self, n_classes: int, n_anchors: int, dtype: np.dtype[Any], floor: NDArray[Any] | None = None) -> None:
        self._n_classes = n_classes
        self._n_anchors = n_anchors
        self.capacity = 8 * n_anchors * n_classes
        self._raise_floor(np.full(n_classes, -1, dtype) if floor is None else floor.astype(dtype))
        self._kept: list[tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64]]] = []
        self._buffered = 0
        self._chunks = 0
        self._next_sort = 1

    def read(self, chunk: NDArray[Any], predicted: NDArray[Any], largest: NDArray[Any], start: int) -> None:
        """Take candidates from `chunk`, given where its rows are largest and those entries.

        `start` is the number of its first row.
        """
        (rows,) = (largest > self._sure_floor.min()).nonzero()  # few, and found without looking at what they predict
        rows = rows[largest[rows] > self._sure_floor.take(predicted[rows])]
        self._append(predicted[rows].astype(np.intp), largest[rows], rows + start)
        if self.floor.min() <= HALF:
            unsure = np.isinf(self._sure_floor)
            (hot,) = (unsure & (_column_maxima(chunk) > self.floor)).nonzero()
            self._search(chunk, hot, start)
        self._chunks += 1
        if self._chunks == self._next_sort or self._buffered > self.capacity:
            self._compact()

    def _search(self, chunk: NDArray[Any], columns: NDArray[np.intp], start: int) -> None:
        """Take candidates from any row of these columns."""
        if not len(columns):
            return
        if len(columns) > self._n_classes // 4:  # comparing all columns then costs less than gathering some
            part, floor = chunk, np.full_like(self.floor, np.inf)
            floor[columns] = self.floor[columns]
            columns = np.arange(self._n_classes)
        else:
            part, floor = chunk.take(columns, axis=1), self.floor[columns]
        (found,) = (part > self._threshold(part, floor)).ravel().nonzero()
        rows, places = np.divmod(found, len(columns))
        self._append(columns[places], part.ravel()[found], rows + start)

    def keep(self, column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64]) -> None:
        """Take entries that exceed the floor of their column, in the order of their rows, as candidates."""
        self._append(column, value, row)
        if self._buffered > self.capacity:
            self._compact()

    def _append(self, column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64]) -> None:
        self._kept.append((column, value, row))
        self._buffered += len(row)

    def _threshold(self, part: NDArray[Any], floor: NDArray[Any]) -> NDArray[Any]:
        """Return what an entry must exceed: the floor or, before there is one, just below n entries of the chunk.

        The n-th largest of the maxima of disjoint blocks of rows is reached by n entries at least.
        """
        n_blocks = 8 * self._n_anchors
        if floor[0] >= 0 or len(part) < n_blocks:
            return floor
        whole = part[: len(part) // n_blocks * n_blocks]
        maxima = whole.reshape(n_blocks, -1, part.shape[1]).max(axis=1)
        nth: NDArray[Any] = np.sort(maxima, axis=0)[-self._n_anchors]
        return np.asarray(np.nextafter(nth, np.array(-1, part.dtype)))

    def _compact(self) -> None:
        self._next_sort = max(self._next_sort, 3 * self._chunks)
        if not self._buffered:
            return
        column, value, row = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        column, value, row, rank = best_per_column(column, value, row, self._n_anchors)
        full = rank == self._n_anchors - 1
        floor = self.floor.copy()
        floor[column[full]] = value[full]
        self._raise_floor(floor)
        self._kept = [(column, value, row)]
        self._buffered = 0

    def _raise_floor(self, floor: NDArray[Any]) -> None:
        """Set what a candidate must exceed in each column, and the same for those where it is above one half."""
        self.floor = floor
        self._sure_floor = np.where(floor > HALF, floor, np.array(np.inf, floor.dtype))

    def best(self) -> NDArray[np.int64]:
        """Return row numbers (n_classes, n_anchors), best first; −1 where there are fewer."""
        self._buffered = 1
        self._compact()
        ((column, value, row),) = self._kept
        column, _, row, rank = best_per_column(column, value, row, self._n_anchors)
        index = np.full((self._n_classes, self._n_anchors), -1, np.int64)
        index[column, rank] = row
        return index


def _column_maxima(chunk: NDArray[Any]) -> NDArray[Any]:
    """Return `chunk.max(axis=0)`, of short rows faster: several are folded into a long one first."""
    n_rows, n_columns = chunk.shape
    fold = 1 << max(0, (_LONG_ROW // n_columns).bit_length() - 1)
    if n_rows % fold == 0:
        chunk = chunk.reshape(-1, fold * n_columns).max(axis=0).reshape(fold, n_columns)
    return np.asarray(chunk.max(axis=0))


def best_per_column(
    column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64], n_best: int
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64], NDArray[np.intp]]:
    """Return the entries among the `n_best` largest of their column, sorted, and their rank in it.

    Equal entries must come in the order of their rows.
    """
    order = _column_order(column, value)
    column, value, row = column[order], value[order], row[order]
    first = np.searchsorted(column, column)
    rank = np.arange(len(column)) - first
    best = rank < n_best
    return column[best], value[best], row[best], rank[best]


def _column_order(column: NDArray[np.intp], value: NDArray[Any]) -> NDArray[np.intp]:
    """Sort by column, then from the largest value; equal entries stay in their order.

    The bit patterns of non-negative floats are in the order of the floats, so a column and a float32 make one
    integer, which sorts in half the time of the pair.
    """
    if value.dtype != np.float32:
        return np.lexsort((-value, column))
    bits = (value + np.float32(0)).view(np.uint32)  # adding zero makes a negative zero a positive one
    return np.argsort((column.astype(np.uint64) << np.uint64(32)) | ~bits, kind="stable")


class RowSampler:
    """A uniform sample of `size` rows: those whose number has the lowest hash, no higher than `ceiling`."""

    def __init__(self, size: int, ceiling: int | None = None) -> None:
        self.size = size
        self._kept: list[NDArray[np.int64]] = []
        self._ceiling = _HIGHEST if ceiling is None else ceiling
        self._buffered = 0

    def read(self, start: int, n_rows: int) -> None:
        """Offer the rows `start` … `start + n_rows − 1`."""
        number = _below(self._ceiling, start, n_rows)
        self._kept.append(number)
        self._buffered += len(number)
        if self._buffered > 2 * self.size:
            chosen = self.chosen()
            self._kept, self._buffered = [chosen], len(chosen)
            self._ceiling = int(priority(chosen).max())

    def chosen(self) -> NDArray[np.int64]:
        """Return the numbers of the sampled rows, ascending."""
        number = np.concatenate(self._kept)
        return number[lowest_priority(number, self.size)]


def _below(ceiling: int, start: int, n_rows: int) -> NDArray[np.int64]:
    """Return those of `n_rows` row numbers from `start` whose hash is at most `ceiling`."""
    if kernels.library:
        return kernels.sampled_rows(start, n_rows, ceiling)
    number = np.arange(start, start + n_rows)
    return np.asarray(number[priority(number) <= np.uint32(ceiling)])


def sample_ceiling(n_rows: int, size: int) -> int:
    """Return what the hash of a row is at most, almost surely, if a sample of `size` of `n_rows` rows holds it.

    Some ten standard deviations more rows than the sample needs are below it.
    """
    share = (size + 10 * size**0.5 + 10) / n_rows
    return min(int(share * (_HIGHEST + 1)), _HIGHEST)


def lowest_priority(number: NDArray[np.int64], size: int) -> NDArray[np.intp]:
    """Return the places of the `size` rows that come first by the hash of their number."""
    if len(number) <= size:
        return np.arange(len(number))
    # The number itself settles ties of the hash, which start beyond 2^32 rows.
    key = (priority(number).astype(np.uint64) << np.uint64(32)) + (number & 0xFFFFFFFF).astype(np.uint64)
    return np.flatnonzero(key <= np.partition(key, size - 1)[size - 1])


def priority(number: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash row numbers to uniform 32-bit integers (the finaliser of MurmurHash3, one to one below 2^32)."""
    mixed = number.astype(np.uint32)
    if len(number) and number.max() > _HIGHEST:
        mixed ^= ((number >> 32) * 0x9E3779B1).astype(np.uint32)
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
