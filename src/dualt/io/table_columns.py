"""Columns of a table as numbers, labels or texts: which column is what, and whether there is a header."""

from __future__ import annotations

import csv
import fnmatch
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError, UnknownNameError
from dualt.files import check_readable
from dualt.io.tables import ARROW, TABLES, TEXT, cell_text, file_version, look_at, read_parts, unguard_cell
from dualt.labels import as_text_array, is_missing

if TYPE_CHECKING:
    from pandas import DataFrame

LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")
# Names that data frames give to the column of their index, the second where it was written and read again.
INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")
_WHOLE = re.compile(r"(0|-?[1-9][0-9]*)(\.0)?")
# Rows that decide whether columns look like probabilities.
_HEAD = 1000
# Tables with more bytes than this, one or several together, are not kept in memory; a single one is read in parts.
LARGE_TABLES, _PART_CELLS = 1 << 29, 1 << 22
_log = logging.getLogger(__name__)


class NotNumbersError(InputError):
    """A column that was to be read as numbers has something else."""


@dataclass(frozen=True)
class Table:
    """A table, or some of its rows, with columns of numbers, labels or texts; `names` is None without a header."""

    path: Path
    frame: DataFrame
    names: tuple[str, ...] | None

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.frame.shape[1])

    def position(self, column: str | int) -> int:
        """Return the place of the column of that name, or with that place."""
        if isinstance(column, int):
            return column
        if self.names is None:
            raise InputError(f"Expected a header that names {column!r} in {self.path}, got a table without one.")
        if column not in self.names:
            raise UnknownNameError(f"column of {self.path}", column, self.names)
        if self.names.count(column) > 1:
            raise InputError(f"Expected one column {column!r} in {self.path}, got several. Rename all but one.")
        return self.names.index(column)

    def read_numbers(self, places: Sequence[int]) -> NDArray[Any]:
        """Return columns as one float array (n_rows, columns), float32 if all are stored so; empty cells are NaN."""
        return np.column_stack([self._numbers(place) for place in places])

    def _numbers(self, place: int) -> NDArray[Any]:
        column = self.frame.iloc[:, place]
        if column.dtype.kind in "fiu":
            plain = column.dtype.kind == "f" and isinstance(column.dtype, np.dtype)
            return np.asarray(column) if plain else np.asarray(column.to_numpy(np.float64, na_value=np.nan))
        texts = [cell_text(cell).strip() for cell in column.tolist()]
        try:
            return np.array([float(text or "nan") for text in texts])
        except ValueError:
            row = next(row for row, text in enumerate(texts) if text and not _is_number(text))
            name = place if self.names is None else repr(self.names[place])
            raise NotNumbersError(
                f"Expected numbers in column {name} of {self.path}, got {texts[row][:40]!r} in row {column.index[row]}."
            ) from None

    def read_column(self, name: str | int) -> NDArray[Any]:
        """Return one column of labels: numbers if they all are, else texts; missing ones as `labels_of` has them."""
        column = self.frame.iloc[:, self.position(name)]
        if column.dtype.kind in "iufb" and not column.isna().any():
            return np.asarray(column.to_numpy())
        if column.dtype.kind in "iuf":
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
        several = (row for row, value in enumerate(column.tolist()) if isinstance(value, (list, dict, np.ndarray)))
        if (row := next(several, None)) is not None:
            raise LabelsError(f"Expected one label per row of {self.path}, got {str(column[row])[:40]} in row {row}.")
        texts = self.read_texts(name)
        return as_text_array(texts) if self.path.suffix.lower() in ARROW else labels_of(texts)

    def read_texts(self, name: str | int) -> list[str]:
        """Return one column as texts, numbers with a point before decimals; missing cells are empty."""
        cells = self.frame.iloc[:, self.position(name)].tolist()
        if any(isinstance(cell, np.ndarray) and cell.dtype.kind in "biuf" for cell in cells):
            raise InputError(
                f"Expected one value per cell in column {name!r} of {self.path}, got lists of numbers. Save them as an"
                f" array, np.save('features.npy', np.stack(frame[{name!r}])), and pass --features features.npy."
            )
        return [unguard_cell(cell_text(cell)) for cell in cells]


def open_table(path: str | Path, column: str | None = None) -> Table:
    """Read a table by its ending; see `read_table`, and `has_header` for `column`. The last two are remembered."""
    path = check_readable(path)
    if path.suffix.lower() not in TABLES:
        raise FileError(f"Expected a table that ends in {', '.join(TABLES)}, got {path.name!r}.")
    table = _open_table(path, has_header(path, column), file_version(path))
    if not len(table.frame) and path.suffix.lower() in TEXT:
        raise InputError(f"Expected rows below the header of {path}, got none.")
    return table


@lru_cache(maxsize=2)
def _open_table(path: Path, header: bool, version: tuple[int, int]) -> Table:
    return next(_tables(path, None, header))


def table_parts(path: Path, column: str | None = None) -> Iterator[Table]:
    """Yield a table as `open_table` returns it or, if it is a large CSV, TSV or Parquet file, some rows at a time."""
    if path.suffix.lower() in (*TEXT, ".parquet") and is_large(path):
        yield from _tables(path, _PART_CELLS, has_header(path, column))
    else:
        yield open_table(path, column)


def is_large(*paths: Path) -> bool:
    """Return whether tables are too large to be kept in memory together."""
    return sum(path.stat().st_size for path in paths if path.is_file()) > LARGE_TABLES


def _tables(path: Path, n_cells: int | None, header: bool) -> Iterator[Table]:
    for frame in read_parts(path, n_cells, header=header, numeric=True):
        yield Table(path, frame, tuple(unguard_cell(str(name)) for name in frame.columns) if header else None)


def has_header(path: Path, column: str | None) -> bool:
    """Return whether the first row of a table names its columns.

    In a text file it does if it has a cell `column`, if its cells count 0, 1, 2… as those of data frames without names,
    if a word stands above a number, or if it has words only. A single word that nobody asked for must be a usual name
    of a label column, and no label of another row.
    """
    if path.suffix.lower() not in TEXT:
        return True
    delimiter, decimal, rows = look_at(path)
    first, *rest = ([unguard_cell(cell.strip()) for cell in row] for row in rows)
    counted = [cell for cell in first if cell.lower() not in ("", *LABEL_COLUMNS)]
    words, below = (
        [not _is_number(cell.replace(decimal, ".")) for cell in row] for row in (first, (rest or [first])[0])
    )
    named = (
        column in first
        or (len(counted) > 1 and counted == [str(number) for number in range(len(counted))])
        or any(word and not lower for word, lower in zip(words, below, strict=False))
        or (all(words) and (len(first) > 1 or (first[0].lower() in LABEL_COLUMNS and first not in rest)))
    )
    found = "a header" if named else "no header: its first line is a row"
    _log.info("%s: %r between cells, %r before decimals, %s.", path, delimiter, decimal, found)
    return named


def choose_columns(
    table: Table, exclude: Collection[str] = (), pattern: str | None = None
) -> tuple[list[int], tuple[str, ...] | None]:
    """Return the places of a table's columns of probabilities, and the class names that they give.

    A `pattern` such as 'p_*' takes the columns that match, and its star stands for the class; a list of columns or
    patterns, 'cat,dog', takes them in this order. Columns in `exclude` and a data frame's index match no star. The
    default is 'p_*' if it matches two columns and not all, as in a table of `dualt probs`, else '*'.
    """
    names, left_out = table.names, {*INDEX_COLUMNS, *exclude}
    if names is None:
        if pattern is None:
            return list(range(table.n_columns)), None
        raise InputError(f"Expected a header that names {pattern!r} in {table.path}, got a table without one.")
    if pattern is None:
        starred = [name.startswith("p_") for name in names if name not in INDEX_COLUMNS]
        several = len({name for name in names if name.startswith("p_")} - left_out) > 1
        pattern = "p_*" if several and not all(starred) else "*"
    parts = [pattern] if pattern in names else next(csv.reader([pattern], skipinitialspace=True))
    places: dict[int, None] = {}
    for part in parts:
        found = [place for place, name in enumerate(names) if name not in left_out and fnmatch.fnmatchcase(name, part)]
        found = [table.position(part)] if part in names else found
        if not found and any(sign in part for sign in "*?["):
            wanted = "of probabilities" if part == "*" else f"that match {part!r}"
            raise InputError(f"Expected columns {wanted} in {table.path}, got none beside {', '.join(names)}.")
        places |= dict.fromkeys(found or [table.position(part)])
    before, star, after = pattern.partition("*")
    cut = star and not any(special in before + after for special in "*?[,")
    chosen = [names[place] for place in places]
    chosen = [name[len(before) : len(name) - len(after)] or name for name in chosen] if cut else chosen
    return list(places), None if chosen == [str(number) for number in range(len(chosen))] else tuple(chosen)


def has_probabilities(table: Table, exclude: Collection[str], labels: NDArray[Any]) -> bool:
    """Return whether a table has columns of probabilities, right or almost right, beside those in `exclude`.

    Columns are meant as probabilities if several are called p_* or like the labels, if the fractions among them sum to
    1, or, where labels are numbers, if all are between 0 and 1 or sum to 100. The first rows decide.
    """
    head = replace(table, frame=table.frame.head(_HEAD))
    places, _ = choose_columns(head, exclude)
    names = [head.names[place] for place in places if head.names]
    if sum(name.startswith("p_") for name in names) > 1 or len({*names} & {*map(str, labels.tolist())}) > 1:
        return True
    columns = []
    for place in places:
        with suppress(NotNumbersError):
            columns.append(head._numbers(place))
    inside = [column for column in columns if ((column >= 0) & (column <= 1)).all()]
    numbered = labels.dtype.kind not in "UO"  # labels with names are never those of columns called otherwise
    if numbered and len(columns) == len(places) and (len(inside) == len(places) or _sum_to(100, columns)):
        return True
    return _sum_to(1, [column for column in inside if (column % 1 > 0).any()])


def _sum_to(total: float, columns: Sequence[NDArray[Any]]) -> bool:
    return len(columns) > 1 and bool(np.median(np.abs(np.sum(columns, axis=0) - total)) <= 0.02 * total)


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
    """Return labels that a file has as text: numbers if they all are, so that classes sort as numbers do, else texts.

    '007', '1_0' and '1e1' are codes, which stay text; '1.0', as data frames write it, is the number 1. A missing one,
    '' or 'nan', is NaN among numbers.
    """
    labels = as_text_array(texts)
    different = {*labels.tolist()}
    numbers = different - {"", "nan"}
    if not numbers or not all(map(_WHOLE.fullmatch, numbers)):
        return labels
    if numbers != different or any("." in number for number in numbers):
        return np.where(labels == "", "nan", labels).astype(np.float64)
    try:
        return labels.astype(np.int64)
    except OverflowError:
        return labels


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
