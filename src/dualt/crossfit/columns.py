"""Columns of numbers and of categories as one array, whatever table they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.label_arrays import is_missing
from dualt.validation import is_frame

# Boosted trees tell no more categories apart; rarer ones share the last code.
_MOST_CATEGORIES = 254
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


class Columns(NamedTuple):
    """Numbers, NaN where one is missing, and codes of categories: (n_rows, n_columns); and which are categories."""

    values: NDArray[np.float64]
    categorical: NDArray[np.bool_]


def columns_of(table: Any) -> Columns:
    """Return the columns of a data frame, an Arrow table or a 2-D array; texts are numbers if they all are."""
    if is_frame(table) or hasattr(table, "column_names"):
        names = list(getattr(table, "column_names", None) or table.columns)
        parts = [np.asarray(table[name]) for name in names]
    else:
        array = np.asarray(table)
        names, parts = list(range(array.shape[1])), list(array.T)
    return encode_columns(names, parts)


def encode_columns(names: Sequence[Any], parts: Sequence[Any], decimal: str = ".") -> Columns:
    """Return columns, each of one kind, as one array; `decimal` is the sign before decimals in texts."""
    if not parts:
        raise InputError("Expected at least one column to learn from, got none.")
    encoded = [_encoded(np.asarray(part), decimal) for part in parts]
    for name, (values, _) in zip(names, encoded, strict=True):
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(f"Expected finite numbers in column {name!r}, got {values[row]} at row {row}.")
    return Columns(
        np.column_stack([values for values, _ in encoded]), np.array([is_category for _, is_category in encoded])
    )


def _encoded(column: NDArray[Any], decimal: str) -> tuple[NDArray[np.float64], bool]:
    if column.ndim != 1:
        raise InputError(
            f"Expected one number or category per row and column, got entries of shape {column.shape[1:]}."
        )
    if column.dtype.kind in "biuf":
        return column.astype(np.float64), False
    if column.dtype.kind in "Mm":
        moments = column.astype("datetime64[s]" if column.dtype.kind == "M" else "timedelta64[s]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64)), False
    missing = is_missing(column.astype(object))
    texts = [str(value) for value in column.tolist()]
    numbers = _numbers(texts, missing, decimal)
    return (_codes(texts, missing), True) if numbers is None else (numbers, False)


def _numbers(texts: list[str], missing: NDArray[np.bool_], decimal: str) -> NDArray[np.float64] | None:
    """Return texts as numbers, NaN where one is missing; None if some are no numbers or all are missing."""
    found = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if missing[row] or text.strip().lower() in _MISSING:
            continue
        try:
            found[row] = float(text.replace(decimal, ".") if decimal != "." else text)
        except ValueError:
            return None
    return found


def _codes(texts: list[str], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the codes of categories: the more frequent, the lower; a missing one is a category of its own."""
    names, codes, counts = np.unique(
        np.array(["" if gone else text for text, gone in zip(texts, missing, strict=True)], dtype=object).astype(str),
        return_inverse=True, return_counts=True,
    )  # fmt: skip
    rank = np.empty(len(names), np.intp)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(names))
    return np.minimum(rank[codes], _MOST_CATEGORIES).astype(np.float64)
