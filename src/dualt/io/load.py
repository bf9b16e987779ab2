"""From a path to probabilities, labels, class names and matrices, whatever the format."""

from __future__ import annotations

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError, TransitionError
from dualt.files import atomic_write, check_readable, read_json, read_text
from dualt.io.arrays import read_npy, read_npz
from dualt.io.cells import guard_cell, write_rows
from dualt.io.image_folder import is_class_folder, read_class_folder
from dualt.io.json_lines import JSON_LINES, JsonLinesTable
from dualt.io.parquet import ParquetTable
from dualt.io.tables import INDEX_COLUMNS, LABEL_COLUMNS, NotNumbersError, Table, check_no_missing, labels_of
from dualt.io.text_table import DELIMITERS, TextTable
from dualt.validation import check_class_names, check_transition

TABLES = (*DELIMITERS, ".parquet", *JSON_LINES)
FORMATS = (".npy", ".npz", *TABLES, ".txt")
_PROBABILITY_NAMES = ("pred_probs", "probs", "probabilities", "p", "arr_0")


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of a file, and class names if its header has them."""

    values: NDArray[Any]
    class_names: tuple[str, ...] | None = None


def open_table(path: str | Path, column: str | None = None, header: bool | None = None) -> Table:
    """Open a table by its ending; `.parquet` needs the extra [tables].

    Whether the first line of a text file names the columns, `header` tells; without it, the line has a cell `column`,
    a usual name of a label column, words above numbers, or, where a `column` is asked for, words alone.
    """
    path = check_readable(path)
    if path.suffix.lower() in JSON_LINES:
        return JsonLinesTable.open(path)
    return ParquetTable.open(path) if path.suffix.lower() == ".parquet" else TextTable.open(path, column, header)


def load_probabilities(
    path: str | Path, *, exclude: Sequence[str] = (), columns: str | None = None, header: bool | None = None
) -> Probabilities:
    """Read probabilities from `.npy` (memory-mapped), `.npz`, `.csv`, `.tsv` or `.parquet`.

    A header gives the class names; which columns are read, and how they are named, `choose_columns` tells.
    """
    path = Path(path)
    if path.suffix.lower() not in TABLES:
        return Probabilities(load_array(path))
    table = open_table(path, exclude[0] if exclude else None, header)
    places, class_names = choose_columns(table, exclude, columns)
    return Probabilities(table.read_numbers(places), class_names)


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
    pattern = _usual_pattern(names, exclude) if pattern is None else pattern
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


def _usual_pattern(names: Sequence[str] | None, exclude: Collection[str]) -> str | None:
    named = [name for name in names or () if name not in INDEX_COLUMNS]
    matching = [name for name in named if name.startswith("p_")]
    return "p_*" if len({*matching} - {*exclude}) > 1 and len(matching) < len(named) else None


def _starred(name: str, pattern: str) -> str:
    """Return the part of `name` that the only star of `pattern` stands for, else the name."""
    before, star, after = pattern.partition("*")
    if not star or any(special in before + after for special in "*?["):
        return name
    return name[len(before) : len(name) - len(after)] or name


def load_labels(
    path: str | Path, *, column: str | None = None, header: bool | None = None, missing: bool = False
) -> NDArray[Any]:
    """Read labels from `.npy`, `.npz`, a table, a text file with one label per line, or images in a folder per class.

    A table of several columns, the index of a data frame aside, needs `column`, unless one of them has a
    usual name ("label", "given", ...). `header` tells whether the first line of a table names its columns; see
    `open_table`. A missing label is refused, unless `missing`: then it comes as `labels_of` has it.
    """
    path = Path(path)
    if is_class_folder(path):
        return read_class_folder(path).labels
    if path.suffix.lower() == ".txt":
        labels = labels_of(_lines(path))
    elif path.suffix.lower() not in TABLES:
        return load_array(path, (column,) if column else (*LABEL_COLUMNS, "arr_0"))
    else:
        table = open_table(path, column, header)
        labels = table.read_column(label_place(table, column))
    return labels if missing else check_no_missing(labels, path)


def load_texts(path: str | Path, column: str, *, header: bool | None = None) -> list[str]:
    """Return a column of a table as texts, such as that of ids; a missing one is empty."""
    path = Path(path)
    if path.suffix.lower() not in TABLES:
        raise FileError(f"Expected a table with a column {column!r}, got {path.name!r}.")
    table = open_table(path, column, header)
    return table.read_texts(table.position(column))


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


def load_class_names(path: str | Path) -> tuple[str, ...]:
    """Read class names, one per line in column order, from a text file; or from JSON: a list, or `class_names`."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        names = read_json(path)
        names = names.get("class_names", names) if isinstance(names, dict) else names
        if not isinstance(names, list):
            raise InputError(f"Expected a list of class names in {path}, got {type(names).__name__}.")
        names = list(map(str, names))
    else:
        names = [line for line in _lines(path) if line]
    if not names:
        raise InputError(f"Expected class names in {path}, got none.")
    return tuple(names)


def load_transition(path: str | Path) -> NDArray[np.float64]:
    """Read a transition matrix from `.json` (a saved estimate, or a list of rows), `.npy` or `.csv`."""
    return load_named_transition(path)[0]


def load_named_transition(path: str | Path) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Read a transition matrix as `load_transition` does, and the class names of its rows if the file has them."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        table = _matrix_table(path)
        return check_transition(table.values), table.class_names
    content = read_json(path)
    if not isinstance(content, dict):
        return check_transition(_check_rows(content, path)), None
    matrix, names = check_transition(_check_rows(content.get("transition"), path)), content.get("class_names")
    return matrix, None if names is None else check_class_names(names, len(matrix))


def _check_rows(rows: Any, path: Path) -> Any:
    if isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(rows) for row in rows):
        return rows
    raise TransitionError(
        f"Expected a square matrix in {path}, as a list of rows, or a saved estimate, got {str(rows)[:40]!r}."
    )


def _matrix_table(path: Path) -> Probabilities:
    """Read a matrix whose first line names the classes, if there is one line more than columns."""
    try:
        table = load_probabilities(path)
    except NotNumbersError:  # a class name that a spreadsheet would take for a formula, as '-1
        return load_probabilities(path, header=True)
    named = path.suffix.lower() in TABLES and table.values.shape[0] == table.values.shape[1] + 1
    return load_probabilities(path, header=True) if named else table


def save_labels(path: str | Path, labels: NDArray[Any]) -> None:
    """Write labels as `.npy`, or one per line as `.csv` (with a header) or `.txt`."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".csv", ".txt"):
        raise FileError(f"Expected a name that ends in .npy, .csv or .txt, got {path.name!r}.")
    if suffix == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, labels, allow_pickle=False)
        return
    if labels.ndim != 1:
        raise LabelsError(f"Expected one label per line for {path.name}, got one-hot rows. Write them as .npy.")
    cells = list(map(str, labels.tolist()))
    with atomic_write(path) as stream:
        if suffix == ".csv":
            guarded = [guard_cell(cell) for cell in cells] if labels.dtype.kind not in "biuf" else cells
            write_rows(stream, [["label"], *([cell] for cell in guarded)])
        else:
            stream.writelines(f"{_checked_line(cell, path)}\n" for cell in cells)


def _checked_line(label: str, path: Path) -> str:
    if label.splitlines() != [label] or label != label.strip():
        raise LabelsError(f"Expected labels that fit a line of {path.name}, got {label!r}. Write .csv or .npy.")
    return label


def load_array(path: Path, names: Sequence[str] = _PROBABILITY_NAMES) -> NDArray[Any]:
    """Return the array of an `.npy` file, memory-mapped, or the first of these names in an `.npz` file."""
    if path.suffix.lower() == ".npz":
        return read_npz(path, names)
    if path.suffix.lower() == ".npy":
        return read_npy(path)
    check_readable(path)
    raise FileError(f"Expected a file that ends in .npy, .npz, {', '.join(TABLES)}, got {path.name!r}.")


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).rstrip().splitlines()]
