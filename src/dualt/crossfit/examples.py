"""Data to learn from as texts, columns and pixels, whatever they come in."""

import logging
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, UnknownNameError
from dualt.labels import is_missing
from dualt.validation import as_array, is_frame

Kind: TypeAlias = Literal["text", "table", "images", "embedding"]
# From this many columns on, numbers are taken for an embedding: trees are slow there, and no better.
_EMBEDDING = 100
# Boosted trees distinguish at most this many categories; rarer ones share the last code.
_MOST_CATEGORIES = 254
# Rows that decide what a column is, words from which on a category is a text, and rows below which any column may
# differ in every row.
_HEAD, _WORDS_OF_TEXT, _LEAST_IDS = 1000, 3, 20
_NAMED_AS_ID = re.compile(r"(?:^|[\W_])(?i:id|uuid|guid|index)$|[a-z]I[dD]$")
# Thai, Lao, Burmese, Khmer, kana and Chinese characters: in scripts without blanks, two count as a word.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = rf"[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+"
# Marks between thousands, and the sign before decimals: 1,234.5 or 1.234,5.
_NUMBER = r"\s*[-+]?([0-9]*|[0-9]{{1,3}}([{0}][0-9]{{3}})+)([{1}][0-9]+)?\s*"
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
_log = logging.getLogger(__name__)


class Columns(NamedTuple):
    """Numbers (NaN where missing) and category codes: (n_rows, n_columns); and which columns are categories."""

    values: NDArray[np.float64]
    categorical: NDArray[np.bool_]


class Examples(NamedTuple):
    """`data` as a user's model gets them, the columns of texts, and the others.

    Features are fitted on the first `n_known` rows; new rows may follow.
    """

    kind: Kind
    data: Any
    texts: Sequence[list[str]]
    columns: Columns | None
    n_known: int

    def duplicates(self) -> NDArray[np.intp] | None:
        """Return a number per row, the same for rows with the same content; None where repetition means nothing.

        Texts are the same if they have the same words, whatever their order, case, numbers and punctuation. Where most
        rows repeat others, they are combinations of categories, not copies.
        """
        keys: list[Any]
        if self.kind == "text":
            whole = [" ".join(parts).casefold() for parts in zip(*self.texts, strict=True)]
            # Texts without words have nothing in common.
            keys = [" ".join(sorted({*re.findall(r"[^\W\d_]+", text)})) or row for row, text in enumerate(whole)]
            if self.columns is not None:
                keys = [(key, values.tobytes()) for key, values in zip(keys, self.columns.values, strict=True)]
        elif self.kind == "images":
            keys = [np.asarray(image).tobytes() for image in self.data]
        elif self.columns is not None:
            keys = [row.tobytes() for row in self.columns.values.astype(np.float32)]
        else:
            return None
        numbers: dict[Any, int] = {}
        found = [numbers.setdefault(key, len(numbers)) for key in keys]
        return None if 2 * len(numbers) < len(keys) else np.array(found, np.intp)


def read_examples(
    data: Any, kind: str | None = None, text: str | Sequence[str] | None = None, n_known: int | None = None
) -> Examples:
    """Return data with their kind, which is guessed where it is not given; see `cross_fit`."""
    if kind not in (None, *get_args(Kind)):
        raise UnknownNameError("kind of data", str(kind), get_args(Kind))
    if text is not None:
        return _read_text_columns(data, [text] if isinstance(text, str) else list(text), n_known)
    is_table = is_frame(data) or hasattr(data, "column_names")
    if not is_table and not getattr(data, "shape", ()):
        data = as_array(data, "texts, a table or images", InputError)
    n_dims = 2 if is_table else len(data.shape)
    found = kind or {1: "text", 2: "table", 3: "images", 4: "images"}.get(n_dims)
    if found is None or n_dims == 0:
        raise InputError(f"Expected texts, a table or images, got an array of {n_dims} dimensions.")
    n_known = n_known or data.shape[0]
    if found == "text":
        texts = _texts(data)
        return Examples("text", texts, [texts], None, n_known)
    columns = None if found == "images" or hasattr(data, "tocsr") else columns_of(data, n_known)
    if kind is None and columns is not None and columns.values.shape[1] >= _EMBEDDING:
        complete = not columns.categorical.any() and not np.isnan(columns.values[:n_known]).any()
        if complete if is_table else np.asarray(data).dtype.kind == "f":
            found = "embedding"
    return Examples(found, data, [], columns, n_known)  # type: ignore[arg-type]


def _read_text_columns(data: Any, names: list[str], n_known: int | None) -> Examples:
    if not is_frame(data):
        raise InputError(f"Expected a data frame with the columns {names}, got {type(data).__name__}.")
    there = list(data.columns)
    for name in names:
        if name not in there:
            raise UnknownNameError("column of texts", str(name), [str(other) for other in there])
    others = [name for name in there if name not in names]
    columns = columns_of(data[others], n_known) if others else None
    return Examples("text", data, [_texts(np.asarray(data[name])) for name in names], columns, n_known or len(data))


def _texts(data: Any) -> list[str]:
    column = as_array(data, "texts", InputError)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or column.dtype.kind not in "OUST":
        raise InputError(
            f"Expected texts, one per row, got dtype {column.dtype} and shape {column.shape}."
            " Numbers are a table: pass them as shape (n_samples, n_columns)."
        )
    return _as_texts(column)


def _as_texts(column: NDArray[Any]) -> list[str]:
    missing = is_missing(column.astype(object))
    return ["" if gone else str(value) for value, gone in zip(column.tolist(), missing, strict=True)]


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
    columns, categorical = zip(*map(partial(_encode, n_known), parts, names), strict=True)
    for name, values in zip(names, columns, strict=True):
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise InputError(f"Expected finite numbers in column {name!r}, got {values[row]} at row {row}.")
    return Columns(np.column_stack(columns), np.array(categorical))


def _encode(n_known: int | None, column: NDArray[Any], name: Any = None) -> tuple[NDArray[np.float64], bool]:
    """Return a column as numbers (dates as seconds), or else as category codes, the most frequent first."""
    import pandas as pd

    if column.ndim != 1:
        raise InputError(f"Expected one number or category per row and column, got entries of {column.shape[1:]}.")
    if column.dtype.kind == "M":
        column = (column - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    if column.dtype.kind in "biuf":
        return column.astype(np.float64), False
    # A missing entry is NaN among numbers and dates, and a category of its own among categories.
    texts = pd.Series(_as_texts(column), dtype=object)
    known = texts.mask(texts.str.strip().str.lower().isin(_MISSING), None)
    for mark, sign in (",.", ".,"):
        if known[:n_known].str.fullmatch(_NUMBER.format(mark, sign), na=True).all():
            known = known.str.translate(str.maketrans(sign, ".", mark))
            break
    first = next(iter(known[:n_known].dropna()), "")
    for parse in (pd.to_numeric, *(partial(_seconds, date_format=each) for each in _date_formats(first))):
        with suppress(ValueError, TypeError):
            parse(known[:n_known])
            return np.asarray(parse(known, errors="coerce"), np.float64), False
    numbers = pd.to_numeric(known, errors="coerce").notna()
    odd = known[~numbers].dropna()
    if name is not None and n_known in (None, len(known)) and len(odd) < numbers.sum():
        _log.warning("Column %r is taken for categories: row %s has %.40r, no number.", name, odd.index[0], odd.iloc[0])
    ranks = texts[:n_known].value_counts().rank(method="first", ascending=False) - 1
    return np.minimum(texts.map(ranks).to_numpy(np.float64), _MOST_CATEGORIES), True


def learnable_columns(table: Any) -> tuple[list[str], list[str], list[str]]:
    """Return which columns of a data frame of strings are texts, which are numbers or categories, and which are ids.

    The first rows decide. Texts mostly differ and have three words or more on average. Ids differ in every row, and are
    short texts, or numbers that count the rows or have the name of an id.
    """
    texts, features, ids = list[str](), list[str](), list[str]()
    for name in table.columns:
        column = table[name].iloc[:_HEAD]
        values, categorical = _encode(None, column.to_numpy())
        filled = column[column != ""]
        n_words, differing = filled.str.count(_WORD).mean(), column.nunique()
        if categorical:
            is_id = n_words < _WORDS_OF_TEXT
        else:
            is_id = bool(_NAMED_AS_ID.search(name)) or bool((np.diff(values) == 1).all())
        if is_id and differing == len(column) >= _LEAST_IDS and table[name].is_unique:
            ids.append(name)
        elif categorical and n_words >= _WORDS_OF_TEXT and 2 * differing > len(column):
            texts.append(name)
        else:
            features.append(name)
    return texts, features, ids


def _date_formats(date: str) -> list[str]:
    """Return the formats in which a text may be a date: ISO 8601, and as it looks with the day or the month first."""
    from pandas.tseries.api import guess_datetime_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the day can only be first in 31.01.2024
        found = [guess_datetime_format(date, dayfirst=first) for first in (True, False)]
    return ["ISO8601", *filter(None, found)]


def _seconds(dates: Any, date_format: str, errors: Any = "raise") -> NDArray[np.float64]:
    """Parse dates, with or without a time, as seconds since 1970."""
    import pandas as pd

    passed = pd.to_datetime(dates, format=date_format, utc=True, errors=errors) - pd.Timestamp(0, tz="UTC")
    return np.asarray(passed.dt.total_seconds(), np.float64)
