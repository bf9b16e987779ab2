"""What rows are called outside Python: by the numbers of the table they came from, or by the names their index has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The page's script holds numbers as floats, which tell whole numbers apart up to here.
_LARGEST = 2**53


def row_numbers(index: Any) -> NDArray[np.int64] | None:
    """Return the row numbers that an index has kept of the table the rows were taken from; None if it has none.

    pandas numbers the rows of a table, and an index without a name keeps these numbers when rows are dropped or
    sorted. An index with a name is a column of the table: its values are ids.
    """
    if index is None or getattr(index, "name", None) is not None or index.dtype.kind not in "iu":
        return None
    if not len(index) or index.hasnans or not index.is_unique or index.min() < 0 or index.max() >= _LARGEST:
        return None
    return np.asarray(index.to_numpy(), dtype=np.int64)


def row_ids(index: Any) -> list[str] | None:
    """Return the names that an index has for the rows, where it is not one of row numbers."""
    return None if index is None or row_numbers(index) is not None else list(map(str, index))


def positions(numbers: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each of the `wanted` row numbers is among `numbers`, which differ; −1 if it is not.

    Examples
    --------
    >>> positions(np.array([7, 3, 5]), np.array([5, 7, 4]))
    array([ 2,  0, -1])
    """
    order = np.argsort(numbers, kind="stable")
    places = np.searchsorted(numbers, wanted, sorter=order).clip(max=len(numbers) - 1)
    found = order[places]
    return np.where(numbers[found] == wanted, found, -1)
