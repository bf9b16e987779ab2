"""The rows with the largest entries of every column, found in one pass.

Rows are known by number. Ties go to the lower number, so the result does not depend on how the rows
were cut into chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class AnchorTracker:
    """The `n_anchors` largest entries of every column of a stream of chunks.

    Entries that exceed `floor`, the worst entry kept of their column, gather in a buffer. It is sorted when it holds
    `capacity` of them, which raises the floor.
    """

    def __init__(self, n_classes: int, n_anchors: int, dtype: np.dtype[Any], floor: NDArray[Any] | None = None) -> None:
        self.capacity = 8 * n_anchors * n_classes
        self.floor = np.full(n_classes, -1, dtype) if floor is None else floor.astype(dtype)
        self._n_anchors = n_anchors
        self._kept: list[tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64]]] = []
        self._buffered = 0

    def read(self, chunk: NDArray[Any], start: int) -> None:
        """Take candidates from a chunk, whose first row has the number `start`."""
        rows, columns = (chunk > self.floor).nonzero()
        self.keep(columns, chunk[rows, columns], rows + start)

    def keep(self, column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64]) -> None:
        """Take entries that exceed the floor of their column, in the order of their rows, as candidates."""
        self._kept.append((column, value, row))
        self._buffered += len(row)
        if self._buffered > self.capacity:
            self._compact()

    def _compact(self) -> NDArray[np.intp]:
        """Keep the best of each column only, sorted, and return their ranks."""
        column, value, row = (np.concatenate(arrays) for arrays in zip(*self._kept, strict=True))
        # Equal entries stay in the order of their rows; small integers are sorted in linear time.
        order = np.lexsort((-value, column.astype(np.min_scalar_type(len(self.floor)))))
        column, value, row = column[order], value[order], row[order]
        sizes = np.bincount(column, minlength=len(self.floor))
        rank = np.arange(len(column)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        best = rank < self._n_anchors
        column, value, row, rank = column[best], value[best], row[best], rank[best]
        last = rank == self._n_anchors - 1
        self.floor = self.floor.copy()
        self.floor[column[last]] = value[last]
        self._kept, self._buffered = [(column, value, row)], 0
        return rank

    def best(self) -> NDArray[np.int64]:
        """Return row numbers (n_classes, n_anchors), best first; −1 where there are fewer."""
        rank = self._compact()
        ((column, _, row),) = self._kept
        index = np.full((len(self.floor), self._n_anchors), -1, np.int64)
        index[column, rank] = row
        return index
