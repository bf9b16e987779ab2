"""Tables in `.csv`, `.tsv` and `.parquet` files: numbers by column, and one column of labels."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, MissingExtraError, UnknownNameError
from dualt.io.arrays import check_readable

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")


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


def open_table(path: str | Path) -> Table:
    """Open a table by its ending; `.parquet` needs the extra [tables]."""
    path = check_readable(path)
    try:
        return _open_parquet(path) if path.suffix.lower() == ".parquet" else _open_text(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"Cannot read {path} as text: {error}.") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}.") from error


def _open_text(path: Path) -> Table:
    delimiter = DELIMITERS.get(path.suffix.lower(), ",")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        first, second = next(reader, []), next(reader, [])
    if not first:
        raise FileError(f"Cannot read {path}: it is empty.")
    header = _is_header(first, second)
    if header and not second:
        raise InputError(f"Expected rows below the header of {path}, got none.")

    def load(dtype: type[np.float64 | np.str_], columns: Sequence[int], ndmin: Literal[1, 2]) -> NDArray[Any]:
        try:
            values: NDArray[Any] = np.loadtxt(
                path, dtype=dtype, delimiter=delimiter, skiprows=int(header), usecols=columns, ndmin=ndmin,
                comments=None, quotechar='"', encoding="utf-8-sig",
            )  # fmt: skip
        except ValueError as error:
            raise InputError(f"Cannot read {path}: {error}. (Rows are counted below the header.)") from None
        return values

    return Table(
        path,
        tuple(name.strip() for name in first) if header else None,
        len(first),
        lambda columns: load(np.float64, columns, 2),
        lambda column: numbers_if_all_are(load(np.str_, [column], 1)),
    )


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Tell whether the first line names columns.

    It does if it has a word where the line below has a number, if it counts 0, 1, 2… as data frames
    without names are written, or if it begins with a usual name of a label column.
    """
    numbered = list(first[1:] if first[0] == "" else first)
    if len(numbered) > 1 and numbered == [str(number) for number in range(len(numbered))]:
        return True
    if any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=False)):
        return True
    return first[0].strip().lower() in LABEL_COLUMNS


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def numbers_if_all_are(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts like '10' and '9' as numbers if they all are, so that classes sort as numbers do."""
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        return texts
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return numbers.astype(np.int64) if whole else numbers


def _open_parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("Reading Parquet tables", "tables") from None
    try:
        names = tuple(pq.read_schema(path).names)
    except pa.ArrowInvalid as error:
        raise FileError(f"Cannot read {path} as Parquet: {error}.") from None

    def column(place: int) -> NDArray[Any]:
        try:
            return np.asarray(pq.read_table(path, columns=[names[place]]).column(0).to_numpy())
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise FileError(f"Cannot read {path} as Parquet: {error}.") from None

    def numbers(places: Sequence[int]) -> NDArray[Any]:
        columns = [column(place) for place in places]
        for place, values in zip(places, columns, strict=True):
            if values.dtype.kind not in "fiub":
                raise InputError(f"Expected numbers in column {names[place]!r} of {path}, got {values.dtype}.")
        return np.column_stack(columns)

    return Table(path, names, len(names), numbers, column)
