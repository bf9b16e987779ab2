"""Tables: columns of numbers and of labels, by place or by name; this module reads those in text, `.csv` and `.tsv`."""

from __future__ import annotations

import csv
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError, UnknownNameError
from dualt.files import open_input
from dualt.io.cells import unguard_cell
from dualt.labels import as_text_array

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")
# How data frames name the column of their index.
INDEX_COLUMNS = ("", "__index_level_0__")
_CANONICAL_INTEGER, _WHOLE_FLOAT = re.compile(r"0|-?[1-9][0-9]*"), re.compile(r"(0|-?[1-9][0-9]*)\.0")


@dataclass(frozen=True)
class Table(ABC):
    """A file that knows its columns and reads those that are asked for.

    `names` is None without a header, `n_rows` if only reading tells.
    """

    path: Path
    names: tuple[str, ...] | None
    n_columns: int
    n_rows: int | None

    def position(self, column: str) -> int:
        """Return the place of the column of that name."""
        if self.names is None:
            raise InputError(f"Expected a header that names {column!r} in {self.path}, got a table without one.")
        if column not in self.names:
            raise UnknownNameError(f"column of {self.path}", column, self.names)
        return self.names.index(column)

    def dtype(self, places: Sequence[int]) -> np.dtype[Any]:
        """Return the float type in which the numbers at these places are read."""
        return np.dtype(np.float64)

    @abstractmethod
    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield columns of numbers, as a float array, and one of labels (else nothing), as many rows as fit memory."""

    def read_all(self, numbers: Sequence[int], label: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all that `read` yields: numbers of shape (n_rows, columns), and labels."""
        portions = list(self.read(numbers, label)) or [(np.empty((0, len(numbers))), np.empty(0))]
        if len(portions) == 1:
            return portions[0]
        values, labels = zip(*portions, strict=True)
        return np.concatenate(values), np.concatenate(labels)

    def read_numbers(self, places: Sequence[int]) -> NDArray[Any]:
        """Return the columns at these places as one array."""
        return self.read_all(places)[0]

    def read_column(self, place: int) -> NDArray[Any]:
        """Return one column of labels: numbers if they all are, else texts."""
        return self.read_all([], place)[1]


@dataclass(frozen=True)
class TextTable(Table):
    """A table in text, whose first `header_lines` lines name the columns."""

    delimiter: str
    header_lines: int

    @classmethod
    def open(cls, path: Path, column: str | None = None, header: bool | None = None) -> TextTable:
        """Look at the first lines; those who know tell by `header` whether the first names the columns.

        Else it does if it has a cell `column`, or if it looks like a header, see `_is_header`.
        """
        delimiter = DELIMITERS.get(path.suffix.lower(), ",")
        try:
            with open_input(path, "r") as stream:
                reader = csv.reader(stream, delimiter=delimiter)
                rows = filter(None, reader)
                first = [unguard_cell(cell.strip()) for cell in next(rows, [])]
                header_lines = reader.line_num
                second = next(rows, [])
                if header is None:
                    header = column in first or _is_header(first, second, rows)
        except (UnicodeDecodeError, csv.Error) as error:
            raise FileError(f"Cannot read {path} as text: {error}.") from None
        if not first:
            raise FileError(f"Cannot read {path}: it is empty.")
        if header and not second:
            raise InputError(f"Expected rows below the header of {path}, got none.")
        return cls(path, tuple(first) if header else None, len(first), None, delimiter, header_lines if header else 0)

    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield all rows at once, parsed in one pass."""
        fields: list[Any] = [("numbers", np.float64, (len(numbers),))] if len(numbers) else []
        places = list(numbers)
        if label is not None:
            fields, places = [*fields, ("label", object)], [*places, label]
        try:
            with open_input(self.path, "r") as stream, warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of empty lines, which are nothing to warn of
                found: Any = np.loadtxt(
                    stream, dtype=np.dtype(fields), delimiter=self.delimiter, skiprows=self.header_lines,
                    usecols=places, ndmin=1, comments=None, quotechar='"',
                )  # fmt: skip
        except ValueError as error:
            reason = str(error).rstrip(".")
            raise InputError(
                f"Cannot read {self.path}: {reason}. (Rows are counted from 0 below the header.)"
            ) from None
        yield (
            np.ascontiguousarray(found["numbers"]) if len(numbers) else np.empty((len(found), 0)),
            np.empty(0) if label is None else labels_of([unguard_cell(text) for text in found["label"]], self.path),
        )


def _is_header(first: Sequence[str], second: Sequence[str], rest: Iterator[list[str]]) -> bool:
    """Tell whether the first line names columns.

    It does if it has a word where the line below has a number; if its cells count 0, 1, 2… as data frames
    without names are written, the columns of an index and of labels aside; if it has words only, a usual name
    of a label column among them; but a single word must not be a label of any other row.
    """
    numbered = [cell for cell in first if cell.lower() not in ("", *LABEL_COLUMNS)]
    if len(numbered) > 1 and numbered == [str(number) for number in range(len(numbered))]:
        return True
    if any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=False)):
        return True
    if any(map(_is_number, first)) or not any(cell.lower() in LABEL_COLUMNS for cell in first):
        return False
    return len(first) > 1 or (bool(second) and all(row[0].strip() != first[0] for row in chain([second], rest)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def labels_of(texts: Sequence[str], path: Path) -> NDArray[Any]:
    """Return the labels that a file has in text, none of them empty: numbers if they all are, else texts."""
    if "" in texts:
        row = texts.index("")
        raise LabelsError(f"Expected a label in every row of {path}, got none at row {row}. Drop that row.")
    return numbers_if_all_are(as_text_array(texts))


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
