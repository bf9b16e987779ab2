"""Tables in `.csv`, `.tsv` and `.parquet` files: numbers by column, and one column of labels."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, MissingExtraError, UnknownNameError
from dualt.io.arrays import check_readable
from dualt.io.cells import unguard_cell
from dualt.labels import as_text_array

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")
# How data frames name the column of their index.
INDEX_COLUMNS = ("", "__index_level_0__")


@dataclass(frozen=True)
class Table:
    """Columns of a file that are read when they are asked for; `names` is None without a header."""

    path: Path
    names: tuple[str, ...] | None
    n_columns: int
    read_numbers: Callable[[Sequence[int]], NDArray[Any]]
    read_column: Callable[[int], NDArray[Any]]

    def position(self, column: str) -> int:
        """Return the place of the column of that name."""
        if self.names is None:
            raise InputError(f"Expected a header that names {column!r} in {self.path}, got a table without one.")
        if column not in self.names:
            raise UnknownNameError(f"column of {self.path}", column, self.names)
        return self.names.index(column)


def open_table(path: str | Path, column: str | None = None) -> Table:
    """Open a table by its ending; `.parquet` needs the extra [tables].

    A text file whose first line has the cell `column` has a header; else the first two lines tell.
    """
    path = check_readable(path)
    try:
        return _open_parquet(path) if path.suffix.lower() == ".parquet" else _open_text(path, column)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"Cannot read {path} as text: {error}.") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}.") from error


def _open_text(path: Path, column: str | None) -> Table:
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        first = [unguard_cell(cell.strip()) for cell in next((row for row in reader if row), [])]
        header_lines = reader.line_num
        second = next((row for row in reader if row), [])
    if not first:
        raise FileError(f"Cannot read {path}: it is empty.")
    header = column in first or _is_header(first, second)
    if header and not second:
        raise InputError(f"Expected rows below the header of {path}, got none.")

    def load(dtype: type[np.float64 | object], columns: Sequence[int], ndmin: Literal[1, 2]) -> NDArray[Any]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of empty lines, which are nothing to warn of
                values: NDArray[Any] = np.loadtxt(
                    path, dtype=dtype, delimiter=delimiter, skiprows=header_lines if header else 0, usecols=columns,
                    ndmin=ndmin, comments=None, quotechar='"', encoding="utf-8-sig",
                )  # fmt: skip
        except ValueError as error:
            reason = str(error).rstrip(".")
            raise InputError(f"Cannot read {path}: {reason}. (Rows are counted from 0 below the header.)") from None
        return values

    return Table(
        path,
        tuple(first) if header else None,
        len(first),
        lambda columns: load(np.float64, columns, 2),
        lambda column: numbers_if_all_are(_unguarded(load(object, [column], 1))),
    )


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the first line names columns.

    It does if it has a word where the line below has a number; if its cells count 0, 1, 2… as data frames
    without names are written, the columns of an index and of labels aside; or if it has words only, a usual name
    of a label column among several.
    """
    numbered = [cell for cell in first if cell.lower() not in ("", *LABEL_COLUMNS)]
    if len(numbered) > 1 and numbered == [str(number) for number in range(len(numbered))]:
        return True
    if any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=False)):
        return True
    words_only = len(first) > 1 and not any(map(_is_number, first))
    return words_only and any(cell.lower() in LABEL_COLUMNS for cell in first)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unguarded(texts: NDArray[Any]) -> NDArray[Any]:
    return as_text_array([unguard_cell(text) for text in texts.tolist()])


def numbers_if_all_are(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts like '10' and '9' as numbers if they all are, so that classes sort as numbers do."""
    try:
        return texts.astype(np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return texts.astype(np.float64)
    except ValueError:
        return texts


def _open_parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("Reading Parquet tables", "tables") from None
    damaged = (pa.ArrowException, UnicodeDecodeError, OSError)
    try:
        names = tuple(pq.read_schema(path).names)
    except damaged as error:
        raise FileError(f"Cannot read {path} as Parquet: {str(error).rstrip('.')}.") from None

    def column(place: int) -> NDArray[Any]:
        try:
            # By place, not by name: two columns may have the same one.
            with pq.ParquetFile(path) as file:
                found = file.read(columns=[names[place]])
            return np.asarray(found.column(names[:place].count(names[place])).to_numpy())
        except damaged as error:
            raise FileError(f"Cannot read {path} as Parquet: {str(error).rstrip('.')}.") from None

    def numbers(places: Sequence[int]) -> NDArray[Any]:
        columns = [column(place) for place in places]
        for place, values in zip(places, columns, strict=True):
            if values.dtype.kind not in "fiub":
                raise InputError(
                    f"Expected numbers in column {names[place]!r} of {path}, got {values.dtype}."
                    " Turn text into numbers, or drop that column."
                )
        return np.column_stack(columns)

    return Table(path, names, len(names), numbers, column)
