"""Tables in text, `.csv` and `.tsv`: which delimiter they have, whether they have a header, and where each cell is."""

from __future__ import annotations

import csv
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import not_utf8, open_input
from dualt.io.cells import is_number, unguard_cell
from dualt.io.tables import LABEL_COLUMNS, NotNumbersError, Table, labels_of

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHER_DELIMITERS = (";", "\t", "|")
_OPENED_INSIDE = re.compile(r'[,;\t|]"')
# How many rows are looked at to tell the delimiter and the decimal sign.
_LOOKED_AT = 50
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TextTable(Table):
    """A table in text, whose first `header_lines` lines name the columns; `decimal` is the sign before decimals."""

    delimiter: str
    header_lines: int
    decimal: str = "."

    @classmethod
    def open(cls, path: Path, column: str | None = None, header: bool | None = None) -> TextTable:
        """Look at the first lines; those who know tell by `header` whether the first names the columns.

        Else it does if it has a cell `column`, or if it looks like a header; see `_is_header`.
        """
        with _explained(path):
            delimiter, decimal = _dialect(path)
            with open_input(path, "r") as stream:
                reader = csv.reader(stream, delimiter=delimiter)
                rows = filter(None, reader)
                first = [unguard_cell(cell.strip()) for cell in next(rows, [])]
                header_lines = reader.line_num
                second = next(rows, [])
                if header is None:
                    header = column in first or _is_header(first, second, rows, decimal, named=column is not None)
        if not first:
            raise FileError(f"Cannot read {path}: it is empty.")
        if header and not second:
            raise InputError(f"Expected rows below the header of {path}, got none.")
        shown = f"{delimiter!r} between cells, {decimal!r} before decimals"
        decided = f"line {header_lines} as its header" if header else "no header: its first line is a row"
        _log.info("%s: %s, %s.", path, shown, decided)
        names = tuple(first) if header else None
        return cls(path, names, len(first), None, delimiter, header_lines if header else 0, decimal)

    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield all rows at once, parsed in one pass."""
        fields: list[Any] = [("numbers", np.float64, (len(numbers),))] if len(numbers) else []
        places = [*numbers]
        if label is not None:
            fields, places = [*fields, ("label", object)], [*places, label]
        try:
            found = self._parsed(fields, places, None if self.decimal == "." else dict.fromkeys(numbers, self._number))
        except ValueError as error:
            fault = self._fault(numbers, max(places), str(error))
            try:  # spreadsheets leave rows of nothing but delimiters
                found = self._parsed(fields, places, dict.fromkeys(numbers, self._number_if_any))
            except ValueError:
                raise fault from None
            if label is None or (found["label"][np.isnan(found["numbers"]).any(axis=1)] != "").any():
                raise fault from None
        values = np.ascontiguousarray(found["numbers"]) if len(numbers) else np.empty((len(found), 0))
        yield values, np.empty(0) if label is None else labels_of(list(map(unguard_cell, found["label"])))

    def _parsed(self, fields: list[Any], places: list[int], converters: Any) -> Any:
        with _explained(self.path), open_input(self.path, "r") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of empty lines, which are nothing to warn of
            return np.loadtxt(
                stream, dtype=np.dtype(fields), delimiter=self.delimiter, skiprows=self.header_lines,
                usecols=places, ndmin=1, comments=None, quotechar='"', converters=converters, encoding=None,
            )  # fmt: skip

    def _number(self, cell: str) -> float:
        return float(cell.replace(self.decimal, "."))

    def _number_if_any(self, cell: str) -> float:
        return self._number(cell) if cell.strip() else float("nan")

    def read_texts(self, place: int) -> list[str]:
        """Return one column as it is written."""
        return list(map(unguard_cell, self._read_cells([place])[0]))

    def read_columns(self, places: Sequence[int]) -> list[list[str]]:
        """Return several columns as they are written, in one pass; numbers with a point before decimals."""
        columns = [list(map(unguard_cell, cells)) for cells in self._read_cells(places)]
        if self.decimal == ".":
            return columns
        is_decimal = _DECIMAL_COMMA.fullmatch
        return [[cell.replace(",", ".") if is_decimal(cell) else cell for cell in cells] for cells in columns]

    def _read_cells(self, places: Sequence[int]) -> list[list[str]]:
        columns: list[list[str]] = [[] for _ in places]
        for line, cells in self._rows():
            if len(cells) <= max(places):
                raise self._wrong_length(line, cells)
            for column, place in zip(columns, places, strict=True):
                column.append(cells[place])
        return columns

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of every row below the header, and the line on which it begins."""
        with _explained(self.path), open_input(self.path, "r") as stream:
            reader, line = csv.reader(stream, delimiter=self.delimiter), 1
            for cells in reader:
                if cells and line > self.header_lines:
                    yield line, cells
                line = reader.line_num + 1

    def _fault(self, numbers: Sequence[int], last: int, reason: str) -> InputError:
        """Return what is wrong with the first row that cannot be read; the `reason` if none is found."""
        for line, cells in self._rows():
            texts = {place: cells[place] for place in numbers if place < len(cells)}
            wrong = [place for place, text in texts.items() if not is_number(text.replace(self.decimal, "."))]
            if (wrong or len(cells) <= last) and len(cells) != self.n_columns:
                return self._wrong_length(line, cells)
            if wrong:
                column = wrong[0] if self.names is None else repr(self.names[wrong[0]])
                got = f"{texts[wrong[0]][:40]!r} on line {line}"
                return NotNumbersError(f"Expected numbers in column {column} of {self.path}, got {got}.")
        return InputError(f"Cannot read {self.path}: {reason.rstrip('.')}. (Rows are counted from 0 below the header.)")

    def _wrong_length(self, line: int, cells: list[str]) -> InputError:
        return InputError(
            f"Expected {self.n_columns} cells on line {line} of {self.path}, as on its first, got {len(cells)}."
            " Mend that line; if it is the last one, the file may be cut off."
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what reading text that is none raises into a `FileError`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except csv.Error as error:
        raise FileError(f"Cannot read {path} as text: {error}.") from None


def _dialect(path: Path) -> tuple[str, str]:
    """Return the delimiter and the decimal sign.

    The delimiter is the usual one of the file's ending, unless another divides the first rows into equally many cells
    and the usual one does not; or into numbers with decimal commas.
    """
    usual = DELIMITERS.get(path.suffix.lower(), ",")
    found = [(sign, _first_rows(path, sign)) for sign in dict.fromkeys((usual, *_OTHER_DELIMITERS))]
    dividing = [(sign, rows) for sign, rows in found if rows and len(rows[0]) > 1 and len({*map(len, rows)}) == 1]
    # A quote that opens inside a cell, after another delimiter: these cells are likely torn.
    dividing.sort(key=lambda one: any(map(_OPENED_INSIDE.search, chain.from_iterable(one[1]))))
    for sign, rows in dividing:
        cells = chain.from_iterable(rows[1:] if len(rows) > 1 else rows)
        if sign != "," and any(map(_DECIMAL_COMMA.fullmatch, cells)):
            return sign, ","
    return (dividing[0][0] if dividing else usual), "."


def _first_rows(path: Path, delimiter: str) -> list[list[str]]:
    with open_input(path, "r") as stream:
        return list(islice(filter(None, csv.reader(stream, delimiter=delimiter)), _LOOKED_AT))


def _is_header(first: list[str], second: list[str], rest: Iterator[list[str]], decimal: str, *, named: bool) -> bool:
    """Tell whether the first line names columns.

    It does if it has a word where the line below has a number; if its cells count 0, 1, 2… as data frames
    without names are written, the columns of an index and of labels aside; if it has words only, and one of its
    columns was `named` (if none is called so, the name is misspelt) or has a usual name of a label column; but a single
    word that nobody named must not be a label of any other row, nor a letter above letters.
    """
    numbered = [cell for cell in first if cell.lower() not in ("", *LABEL_COLUMNS)]
    if len(numbered) > 1 and numbered == [str(number) for number in range(len(numbered))]:
        return True
    first, second = ([cell.replace(decimal, ".") for cell in cells] for cells in (first, second))
    if any(not is_number(a) and is_number(b) for a, b in zip(first, second, strict=False)):
        return True
    if any(map(is_number, first)) or not (named or any(cell.lower() in LABEL_COLUMNS for cell in first)):
        return False
    if named or len(first) > 1:
        return True
    others = {row[0].strip() for row in chain([second] if second else [], rest)}
    alike = len(first[0]) == 1 and any(len(other) == 1 for other in others)  # y and n
    return bool(others) and first[0] not in others and not alike


def cell_spans(text: str, delimiter: str) -> Iterator[list[tuple[int, int]]]:
    """Yield where each cell of one row after another begins and ends in `text`, quotes included; as `csv` reads it."""
    stop = re.escape(delimiter)
    cell = re.compile(rf'("(?:[^"]|"")*"?[^{stop}\r\n]*|[^{stop}\r\n]*)({stop}|\r\n|\n|\r|\Z)')
    start = 1 if text.startswith("\ufeff") else 0
    row: list[tuple[int, int]] = []
    while start < len(text) or row:
        found = cell.match(text, start)
        if found is None:  # no text is without a next cell
            raise AssertionError(start)
        row.append(found.span(1))
        start = found.end()
        if found[2] != delimiter:
            if row != [(found.start(), found.start())]:
                yield row
            row = []
