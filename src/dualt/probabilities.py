"""Probabilities that are nearly right, and words for those that are wrong.

`dualt.validation` checks them; a row that fails is described here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import DualtWarning

_LOGARITHMS = "These look like log-probabilities: pass np.exp(...)."


def scale_rounded(table: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities that were rounded to two decimals with rows that sum to one again; others as they are.

    Rounded are those that all have at most two decimals and whose rows miss one by no more than rounding can explain,
    some by 0.01 or more.
    """
    if not len(table) or table.dtype.kind != "f" or not _has_two_decimals(table[:16]):
        return table
    with np.errstate(invalid="ignore", over="ignore"):
        sums = table.sum(axis=1, dtype=np.float64)
        excess = np.abs(sums - 1).max()
    if not 0.005 < excess < most_by_rounding(table.shape[1]) + 0.005 or not _has_two_decimals(table):
        return table
    return np.asarray(table / sums[:, None], dtype=table.dtype)


def most_by_rounding(n_classes: int) -> float:
    """Return by how much the sum of a row may miss one through rounding: half of 0.01 per class, from 0.05 to 0.5."""
    return min(max(0.05, 0.005 * n_classes), 0.5)


def _has_two_decimals(table: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        hundredths = np.asarray(table, np.float64) * 100
        return bool((np.abs(hundredths - np.rint(hundredths)) < 1e-4).all())


def scale_with_warning(table: NDArray[Any], stacklevel: int = 2) -> NDArray[Any]:
    """Return what `scale_rounded` returns, and warn if that is not the table itself.

    `stacklevel` is that of the caller: 2 is the function that called the caller.
    """
    scaled = scale_rounded(table)
    if scaled is not table:
        message = "The probabilities are rounded to two decimals: each row was divided by its sum."
        warnings.warn(message, DualtWarning, stacklevel=stacklevel + 1)
    return scaled


def describe_bad_rows(chunk: NDArray[Any], start: int, tolerance: float) -> str:
    """Return what is wrong with the first bad row of a chunk, whose first row is number `start`, and what to do.

    Parameters
    ----------
    chunk : (n_rows, n_classes)
        Some row is no distribution.
    start
    tolerance
        By how much a row may miss one.
    """
    bad = ~np.isfinite(chunk)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        hint = _LOGARITHMS if (chunk <= 0).all() else "Drop or recompute that row."
        return f"Expected finite probabilities, got {chunk[row, column]} at row {start + row}, column {column}. {hint}"
    with np.errstate(over="ignore"):
        sums = chunk.sum(axis=1, dtype=np.float64)
    excess = np.abs(sums - 1)
    if (chunk < 0).any():
        row, column = np.argwhere(chunk < 0)[0]
        hint = _LOGARITHMS if (chunk <= 0).all() else _of_negative(chunk, excess <= tolerance)
        return (
            f"Expected probabilities in [0, 1], got {chunk[row, column]:.6g} at row {start + row},"
            f" column {column}. {hint}"
        )
    # A sum on the brink may be over it in float32 only: then the worst row is the one.
    over = excess > tolerance
    row = int(np.argmax(over if over.any() else excess))
    hint = "These look like percentages: divide by 100." if abs(sums[row] - 100) < 1 else _of_sums(chunk, tolerance)
    return f"Expected rows that sum to 1, got {sums[row]:.6g} at row {start + row}. {hint}"


def _of_negative(chunk: NDArray[Any], sum_to_one: NDArray[np.bool_]) -> str:
    """Return what to do about negative entries: those of logits are in most rows, an odd one is between good rows."""
    others = (chunk >= 0).all(axis=1)
    odd = others.any() and sum_to_one[others].all()
    return "Drop or recompute that row." if odd else "These look like logits: pass their softmax."


def _of_sums(chunk: NDArray[Any], tolerance: float) -> str:
    """Return what to do about rows of other sums; a column that has values above one may be there by mistake."""
    highest = chunk.max(axis=0)
    above = highest > 1 + tolerance
    if not above.any() or above.all():
        return "Divide each row by its sum, or pass the softmax of logits."
    column = int(np.argmax(above))
    return (
        f"Column {column} has values up to {highest[column]:.6g} and looks like no probability: leave it out. If it is"
        " a class, divide each row by its sum, or pass the softmax of logits."
    )
