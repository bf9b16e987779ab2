"""Columns of numbers and categories as one array, whatever table they come from."""

from __future__ import annotations

from contextlib import suppress
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
    columns, categorical = zip(*(_encode(part, n_known) for part in parts), strict=True)
    for name, values in zip(names, columns, strict=True):
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(f"Expected finite numbers in column {name!r}, got {values[row]} at row {row}.")
    return Columns(np.column_stack(columns), np.array(categorical))


def as_texts(column: NDArray[Any]) -> list[str]:
    """Return entries as texts; a missing one is empty."""
    missing = is_missing(column.astype(object))
    return ["" if gone else str(value) for value, gone in zip(column.tolist(), missing, strict=True)]


def _encode(column: NDArray[Any], n_known: int | None) -> tuple[NDArray[np.float64], bool]:
    """Return a column as numbers, dates as seconds, or else category codes, the most frequent first."""
    if column.ndim != 1:
        raise InputError(f"Expected one number or category per row and column, got entries of {column.shape[1:]}.")
    if column.dtype.kind in "biuf":
        return column.astype(np.float64), False
    import pandas as pd

    if column.dtype.kind == "m":
        return pd.Series(column).dt.total_seconds().to_numpy(np.float64), False
    if column.dtype.kind == "M":
        return _seconds(pd.Series(column)), False
    # A missing entry is NaN among numbers and dates, and a category of its own among categories.
    texts = pd.Series(as_texts(column), dtype=object)
    known = texts.mask(texts.str.strip().str.lower().isin(_MISSING), None)
    for parse in (pd.to_numeric, _seconds):
        with suppress(ValueError, TypeError):
            parse(known[:n_known])
            return np.asarray(parse(known, errors="coerce"), np.float64), False
    ranks = texts[:n_known].value_counts().rank(method="first", ascending=False) - 1
    return np.minimum(texts.map(ranks).to_numpy(np.float64), _MOST_CATEGORIES), True


def _seconds(dates: Any, errors: Any = "raise") -> NDArray[np.float64]:
    """Parse dates such as 2024-01-31, with or without a time, as seconds since 1970."""
    import pandas as pd

    passed = pd.to_datetime(dates, format="ISO8601", utc=True, errors=errors) - pd.Timestamp(0, tz="UTC")
    return np.asarray(passed.dt.total_seconds(), np.float64)
