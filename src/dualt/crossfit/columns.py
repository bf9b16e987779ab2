"""Columns of numbers and categories as one array, whatever table they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.labels import is_missing
from dualt.validation import is_frame

# Boosted trees distinguish at most this many categories; rarer ones share the last code.
_MOST_CATEGORIES = 254
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})


class Columns(NamedTuple):
    """Numbers (NaN where missing) and category codes: (n_rows, n_columns); and which columns are categories."""

    values: NDArray[np.float64]
    categorical: NDArray[np.bool_]


def columns_of(table: Any, n_known: int | None = None) -> Columns:
    """Return the columns of a data frame, an Arrow table or a 2-D array; texts may be numbers or dates.

    The first `n_known` rows (by default all) decide which columns of texts are numbers, dates or categories, and which
    categories there are; what does not fit in other rows is missing.
    """
    if is_frame(table) or hasattr(table, "column_names"):
        names = list(getattr(table, "column_names", None) or table.columns)
        parts = [np.asarray(table[name]) for name in names]
    else:
        array = np.asarray(table)
        names, parts = list(range(array.shape[1])), list(array.T)
    if not parts:
        raise InputError("Expected at least one column to learn from, got none.")
    columns, categorical = zip(*(_encoded(np.asarray(part), n_known) for part in parts), strict=True)
    for name, values in zip(names, columns, strict=True):
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(f"Expected finite numbers in column {name!r}, got {values[row]} at row {row}.")
    return Columns(np.column_stack(columns), np.array(categorical))


def as_texts(column: NDArray[Any]) -> list[str]:
    """Return entries as texts; a missing one is empty."""
    missing = is_missing(column.astype(object))
    return ["" if gone else str(value) for value, gone in zip(column.tolist(), missing, strict=True)]


def _encoded(column: NDArray[Any], n_known: int | None) -> tuple[NDArray[np.float64], bool]:
    if column.ndim != 1:
        raise InputError(
            f"Expected one number or category per row and column, got entries of shape {column.shape[1:]}."
        )
    if column.dtype.kind in "biuf":
        return column.astype(np.float64), False
    if column.dtype.kind in "Mm":
        moments = column.astype("datetime64[s]" if column.dtype.kind == "M" else "timedelta64[s]")
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64)), False
    texts = as_texts(column)
    for parse in (float, _seconds):
        known = _numbers(texts[:n_known], parse)
        if known is not None:
            others = [_numbers([text], parse) for text in texts[len(known) :]]
            return np.array([*known, *(np.nan if one is None else one[0] for one in others)]), False
    return _codes(texts, n_known), True


def _numbers(texts: list[str], number: Callable[[str], float]) -> NDArray[np.float64] | None:
    """Parse texts as numbers, NaN where one is missing; None if any is not a number."""
    try:
        return np.array([np.nan if text.strip().lower() in _MISSING else number(text) for text in texts])
    except ValueError:
        return None


def _seconds(text: str) -> float:
    """Parse a date such as 2024-01-31, with or without a time, as seconds since 1970."""
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _codes(texts: list[str], n_known: int | None) -> NDArray[np.float64]:
    """Return category codes, the most frequent first; an empty cell is a category of its own."""
    counts = Counter(sorted(texts[:n_known]))
    ranks = {name: min(rank, _MOST_CATEGORIES) for rank, (name, _) in enumerate(counts.most_common())}
    return np.array([ranks.get(text, np.nan) for text in texts], np.float64)
