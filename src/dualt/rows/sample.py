"""A uniform sample of rows, chosen by a hash of their numbers: it does not depend on how the rows were cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualt import kernels

_HIGHEST = 2**32 - 1
_ROWS_AT_ONCE = 1 << 18


def sample_rows(start: int, n_rows: int, size: int) -> NDArray[np.int64]:
    """Return which of the rows `start` … `start + n_rows − 1` to sample: the `size` with the lowest hash, ascending."""
    # Below the guess are some ten standard deviations more rows than needed, which leaves few to be sorted.
    guess = min(int((size + 10 * size**0.5 + 10) / n_rows * (_HIGHEST + 1)), _HIGHEST)
    number = _below(guess, start, n_rows)
    if len(number) < min(size, n_rows):
        number = _below(_HIGHEST, start, n_rows)
    return number[lowest_priority(number, size)]


def _below(ceiling: int, start: int, n_rows: int) -> NDArray[np.int64]:
    """Return those of `n_rows` row numbers from `start` whose hash is at most `ceiling`."""
    found = []
    for low in range(start, start + n_rows, _ROWS_AT_ONCE):
        high = min(low + _ROWS_AT_ONCE, start + n_rows)
        if kernels.library:
            found.append(kernels.sampled_rows(low, high - low, ceiling))
        else:
            number = np.arange(low, high)
            found.append(number[priority(number) <= np.uint32(ceiling)])
    return np.concatenate(found)


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
