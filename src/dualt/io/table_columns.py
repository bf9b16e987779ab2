"""Columns of a table as numbers, labels or texts: which column is what, and whether there is a header."""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import DualtError, InputError, LabelsError, UnknownNameError
from dualt.files import check_readable, open_input
from dualt.io.tables import (
    ARROW,
    DECIMAL_COMMA,
    JSON_LINES,
    TEXT,
    Dialect,
    cell_text,
    find_dialect,
    first_row,
    parsed,
    read_table,
    reading,
    unguard_cell,
)
from dualt.labels import as_text_array, is_missing

if TYPE_CHECKING:
    from pandas import DataFrame

LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")
# Names that data frames give to the column of their index.
INDEX_COLUMNS = ("", "__index_level_0__")
_CANONICAL_INTEGER, _WHOLE_FLOAT = re.compile(r"0|-?[1-9][0-9]*"), re.compile(r"(0|-?[1-9][0-9]*)\.0")
_FRACTION = re.compile(r"\s*[-+]?[0-9]*\.[0-9]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
_log = logging.getLogger(__name__)


class NotNumbersError(InputError):
    """A column that was to be read as numbers has something else."""


@dataclass(frozen=True)
class Table:
    """A table in memory, whose columns are read by place as numbers, labels or texts.

    `names` is None without a header; `decimal` is the sign before decimals in a text file.
    """

    path: Path
    frame: DataFrame
    names: tuple[str, ...] | None
    decimal: str = "."

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.frame.shape[1])

    def position(self, column: str) -> int:
        """Return the place of the column of that name."""
        if self.names is None:
            raise InputError(f"Expected a header that names {column!r} in {self.path}, got a table without one.")
        if column not in self.names:
            raise UnknownNameError(f"column of {self.path}", column, self.names)
        return self.names.index(column)

    def read_all(self, numbers: Sequence[int], label: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return columns of numbers as one array, and the column of labels."""
        return self.read_numbers(numbers), self.read_column(label)

    def read_numbers(self, places: Sequence[int]) -> NDArray[Any]:
        """Return columns as one float array (n_rows, columns), float32 if all are stored so; empty cells are NaN."""
        columns = [self._numbers(place) for place in places]
        dtype = np.result_type(*(column.dtype for column in columns), np.float16) if columns else np.dtype(np.float64)
        values = np.empty((len(self.frame), len(columns)), dtype)
        for place, column in enumerate(columns):
            values[:, place] = column
        return values

    def _numbers(self, place: int) -> NDArray[Any]:
        column = self.frame.iloc[:, place]
        if getattr(column.dtype, "kind", "O") in "fiub" and not isinstance(column.dtype, np.dtype):
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))  # pandas' nullable types
        if column.dtype.kind in "fiu":
            values: NDArray[Any] = column.to_numpy()
            return values if values.dtype.kind == "f" else values.astype(np.float64)
        texts = [cell_text(cell) for cell in column.tolist()]
        if self.decimal != ".":
            texts = [text.replace(self.decimal, ".") for text in texts]
        try:
            return np.array([text.strip() or "nan" for text in texts], dtype=object).astype(np.float64)
        except ValueError:
            row = next(row for row, text in enumerate(texts) if text.strip() and not _is_number(text))
            name = place if self.names is None else repr(self.names[place])
            raise NotNumbersError(
                f"Expected numbers in column {name} of {self.path}, got {texts[row][:40]!r} in row {row}."
            ) from None

    def read_column(self, place: int) -> NDArray[Any]:
        """Return one column of labels: numbers if they all are, else texts; missing ones as `labels_of` has them."""
        column = self.frame.iloc[:, place]
        kind = getattr(column.dtype, "kind", "O")
        if kind in "iufb" and not column.isna().any():
            return np.asarray(column.to_numpy())
        if kind in "iuf":
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
        for row, value in enumerate(column.tolist()):
            if isinstance(value, (list, dict, np.ndarray)):
                raise LabelsError(f"Expected one label per row of {self.path}, got {str(value)[:40]} in row {row}.")
        texts = self.read_texts(place)
        if self.path.suffix.lower() in JSON_LINES and {*texts} <= {"True", "False"}:
            return np.asarray([text == "True" for text in texts])
        return as_text_array(texts) if self.path.suffix.lower() in ARROW else labels_of(texts)

    def read_texts(self, place: int) -> list[str]:
        """Return one column as texts; missing cells are empty."""
        frame = self.frame
        if frame.dtypes.iloc[place].kind == "f" and self.path.suffix.lower() in TEXT:
            frame = _text_frame(self.path, 0 if self.names is None else 1)  # as written, not as floats are printed
        return [unguard_cell(cell_text(cell)) for cell in frame.iloc[:, place].tolist()]

    def read_columns(self, places: Sequence[int]) -> list[list[str]]:
        """Return several columns as texts; numbers with a point before decimals."""
        columns = [self.read_texts(place) for place in places]
        if self.decimal == ".":
            return columns
        is_decimal = DECIMAL_COMMA.fullmatch
        return [[cell.replace(",", ".") if is_decimal(cell) else cell for cell in cells] for cells in columns]


def _text_frame(path: Path, skip: int) -> DataFrame:
    frame = read_table(path, header=False)
    return frame.iloc[skip:]


def open_table(path: str | Path, column: str | None = None, header: bool | None = None) -> Table:
    """Read a table by its ending; Parquet and Feather need the extra [tables].

    `header` says whether the first line of a text file names the columns. Without it, the line does if it has a cell
    `column`, a usual name of a label column, words above numbers, or, where a `column` is asked for, words alone. The
    last two files are remembered: several questions to one file read it once.
    """
    path = check_readable(path)
    found = path.stat()
    if path.suffix.lower() in (*ARROW, *JSON_LINES):
        frame = _read_whole(path, found.st_size, found.st_mtime_ns)
        return Table(path, frame, tuple(map(str, frame.columns)))
    first, frame, dialect = _read_text(path, found.st_size, found.st_mtime_ns)
    found_header = has_header(dialect.rows, dialect.decimal, column, header)
    signs = f"{dialect.delimiter!r} between cells, {dialect.decimal!r} before decimals"
    _log.info("%s: %s, %s.", path, signs, "a header" if found_header else "no header: its first line is a row")
    if found_header:
        if frame.empty:
            raise InputError(f"Expected rows below the header of {path}, got none.")
        return Table(path, frame, tuple(map(unguard_cell, first)), dialect.decimal)
    import pandas as pd

    top = pd.DataFrame([first])
    whole = Table(path, top, None, dialect.decimal)
    for place, dtype in enumerate(frame.dtypes):
        top[place] = whole._numbers(place) if dtype.kind == "f" else top[place].astype(dtype)
    return Table(path, pd.concat([top, frame], ignore_index=True), None, dialect.decimal)


@lru_cache(maxsize=2)
def _read_whole(path: Path, size: int, changed: int) -> DataFrame:
    return read_table(path)


@lru_cache(maxsize=2)
def _read_text(path: Path, size: int, changed: int) -> tuple[list[str], DataFrame, Dialect]:
    """Return the first row of a text file, the others, and the dialect; columns of fractions, such as 0.25, as floats.

    Floats take a tenth of the memory of text.
    """
    with reading(path), open_input(path, "r") as stream:
        dialect = find_dialect(stream, path)
        sample = dialect.rows[1:]
        fractions = {
            place
            for place in range(len(dialect.rows[0]))
            if sample
            and all(len(row) > place and (_is_fraction(row[place], dialect) or row[place] in "01") for row in sample)
            and any(_is_fraction(row[place], dialect) for row in sample)
        }
        for numbers in (fractions, ()) if fractions else ((),):
            stream.seek(0)
            first = first_row(stream, dialect)
            try:
                (frame,) = parsed(stream, path, dialect, first, None, numbers)
            except ValueError as error:
                if not numbers or isinstance(error, DualtError) or "convert" not in str(error):
                    raise
            else:
                return first, frame, dialect
    raise AssertionError


def _is_fraction(cell: str, dialect: Dialect) -> bool:
    return bool(_FRACTION.fullmatch(cell.replace(dialect.decimal, ".")))


def has_header(rows: list[list[str]], decimal: str, column: str | None, header: bool | None) -> bool:
    """Return whether the first of these rows names columns.

    It does if it has a word where the line below has a number; if its cells count 0, 1, 2… as data frames without names
    are written, the columns of an index and of labels aside; if it has words only, and a `column` is asked for or one
    has a usual name of a label column. But a single word that nobody asked for must not be a label of another row, nor
    a letter above letters.
    """
    first, *rest = ([cell.strip() for cell in row] for row in rows)
    if header is not None or column in {*map(unguard_cell, first)}:
        return header is None or header
    numbered = [cell for cell in first if cell.lower() not in ("", *LABEL_COLUMNS)]
    if len(numbered) > 1 and numbered == [str(number) for number in range(len(numbered))]:
        return True
    second = [cell.replace(decimal, ".") for cell in rest[0]] if rest else []
    first = [cell.replace(decimal, ".") for cell in first]
    if any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=False)):
        return True
    if any(map(_is_number, first)) or not (column or any(cell.lower() in LABEL_COLUMNS for cell in first)):
        return False
    if column or len(first) > 1:
        return True
    others = {row[0] for row in rest}
    alike = len(first[0]) == 1 and any(len(other) == 1 for other in others)  # y and n
    return bool(others) and first[0] not in others and not alike


def choose_columns(
    table: Table, exclude: Collection[str] = (), pattern: str | None = None
) -> tuple[list[int], tuple[str, ...] | None]:
    """Return the places of a table's columns of probabilities, and the class names that they give.

    Columns named in `exclude`, and an index column without a name as data frames write it, are left out. With a
    `pattern` such as 'p_*', only the columns that match are taken, and what its star stands for is the name of the
    class; or it is a list, 'cat,dog', of the columns to take, in this order. Numbers 0, 1, 2… are no names.
    Without a pattern, 'p_*' is one if two columns match it and others do not, as in a table of `dualt probs`.
    """
    names, left_out = table.names, {table.position(name) for name in exclude}
    if pattern is None:
        named = [name for name in names or () if name not in INDEX_COLUMNS]
        matching = [name for name in named if name.startswith("p_")]
        pattern = "p_*" if len({*matching} - {*exclude}) > 1 and len(matching) < len(named) else None
    if names is None:
        if pattern is None:
            return list(range(table.n_columns)), None
        raise InputError(
            f"Expected a header with columns that match {pattern!r} in {table.path}, got a table without one."
        )
    if pattern is not None and pattern not in names and not any(sign in pattern for sign in "*?["):
        listed = tuple(next(csv.reader([pattern], skipinitialspace=True)))
        return [table.position(name) for name in listed], listed
    places = [place for place, name in enumerate(names) if place not in left_out and name not in INDEX_COLUMNS]
    places = [place for place in places if pattern is None or fnmatchcase(names[place], pattern)]
    if not places:
        wanted = "of probabilities" if pattern is None else f"that match {pattern!r}"
        raise InputError(f"Expected columns {wanted} in {table.path}, got none beside {', '.join(names)}.")
    chosen = tuple(_starred(names[place], pattern or "") for place in places)
    return places, None if chosen == tuple(map(str, range(len(places)))) else chosen


def _starred(name: str, pattern: str) -> str:
    """Return the part of `name` that the only star of `pattern` stands for, else the name."""
    before, star, after = pattern.partition("*")
    if not star or any(special in before + after for special in "*?["):
        return name
    return name[len(before) : len(name) - len(after)] or name


def label_place(table: Table, column: str | None = None) -> int:
    """Return the place of a table's column of labels: that of the name, the only one, or one of a usual name."""
    if column is not None:
        return table.position(column)
    if table.n_columns == 1:
        return 0
    named = [name for name in table.names or () if name not in INDEX_COLUMNS]
    usual = [usual for usual in LABEL_COLUMNS if usual in named] or (named if len(named) == 1 else [])
    if not usual:
        columns = ", ".join(named) or f"{table.n_columns} without names"
        raise InputError(f"Expected one column of labels in {table.path}, got {columns}. Name the column with --label.")
    return table.position(usual[0])


def labels_of(texts: Sequence[str]) -> NDArray[Any]:
    """Return labels that a file has as text: numbers if they all are, else texts.

    A missing one is the empty text, and NaN among numbers.
    """
    labels = as_text_array(texts)
    missing = labels == ""
    if not missing.any() or missing.all():
        return numbers_if_all_are(labels)
    found = numbers_if_all_are(labels[~missing])
    if found.dtype.kind == "U":
        return labels
    numbers = np.full(len(labels), np.nan)
    numbers[~missing] = found
    return numbers


def numbers_if_all_are(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts like '10' and '9' as numbers if they all are, so that classes sort as numbers do.

    A text is a number only if the number would be written so: '007', '1_0' and '1e1' are codes, which stay text. Whole
    floats are numbers if all are written so ('1.0', as data frames do), and 'nan' among numbers is a missing one.
    """
    different = set(texts.tolist())
    if all(map(_CANONICAL_INTEGER.fullmatch, different)):
        try:
            return texts.astype(np.int64)
        except OverflowError:
            return texts
    numbers = different - {"nan"}
    floats = (all(map(pattern.fullmatch, numbers)) for pattern in (_CANONICAL_INTEGER, _WHOLE_FLOAT))
    return texts.astype(np.float64) if numbers and any(floats) else texts


def check_no_missing(labels: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return labels of a file if none is missing."""
    missing = is_missing(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise LabelsError(f"Expected a label in every row of {path}, got none at row {row}. Drop that row.")
    return labels


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
