"""Rows of probabilities in the float type in which they are worked with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels

# Shifted into place, the bits of a half are those of a float whose exponent is too small by this factor.
_HALF_SHIFT, _HALF_SCALE = 13, np.float32(2.0**112)


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the native float type in which rows of `dtype` are read: float32 if it holds them, else float64."""
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)


def as_rows(probs: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return `probs` contiguous and of type `dtype`, without copying them if they are."""
    if probs.dtype == np.float16 and dtype == np.float32:
        return _from_half(probs)
    return np.ascontiguousarray(probs, dtype=dtype)


def surest(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return where each row is largest, the first of equals, and that entry; none is negative."""
    best = kernels.argmax_rows(rows) if kernels.library and rows.flags.c_contiguous else rows.argmax(axis=1)
    return best, rows[np.arange(len(best)), best]


def _from_half(probs: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return `probs.astype(np.float32)`, several times faster where they are probabilities.

    A sign, an infinity or NaN becomes a number far above one, which tells to go the slow way.
    """
    probs = np.ascontiguousarray(probs)
    if kernels.library:
        found = kernels.floats_of_halves(probs)
        return probs.astype(np.float32) if found is None else found
    bits = probs.view(np.uint16)
    rows = np.left_shift(bits, _HALF_SHIFT, dtype=np.uint32).view(np.float32)
    rows *= _HALF_SCALE
    return rows if rows.max(initial=0) <= 2 else probs.astype(np.float32)
