"""From a path to probabilities, labels, class names and matrices, whatever the format."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError
from dualt.files import atomic_write
from dualt.io.arrays import check_readable, read_npy, read_npz
from dualt.io.cells import guard_cell
from dualt.io.tables import DELIMITERS, INDEX_COLUMNS, LABEL_COLUMNS, Table, numbers_if_all_are, open_table
from dualt.labels import as_text_array
from dualt.validation import check_class_names, check_transition

_TABLES = (*DELIMITERS, ".parquet")
FORMATS = (".npy", ".npz", *_TABLES, ".txt")
_PROBABILITY_NAMES = ("pred_probs", "probs", "probabilities", "p", "arr_0")


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of a file, and class names if its header has them."""

    values: NDArray[Any]
    class_names: tuple[str, ...] | None = None


def load_probabilities(path: str | Path, *, exclude: Sequence[str] = (), columns: str | None = None) -> Probabilities:
    """Read probabilities from `.npy` (memory-mapped), `.npz`, `.csv`, `.tsv` or `.parquet`.

    A header gives the class names; which columns are read, and how they are named, `choose_columns` tells.
    """
    path = Path(path)
    if path.suffix.lower() not in _TABLES:
        return Probabilities(_load_array(path, _PROBABILITY_NAMES))
    table = open_table(path, *exclude[:1])
    for name in exclude:
        table.position(name)
    places, class_names = choose_columns(path, table.names, table.n_columns, exclude, columns)
    return Probabilities(table.read_numbers(places), class_names)


def choose_columns(
    path: Path, names: Sequence[str] | None, n_columns: int, exclude: Sequence[str] = (), pattern: str | None = None
) -> tuple[list[int], tuple[str, ...] | None]:
    """Return the places of a table's columns of probabilities, and the class names that they give.

    Columns named in `exclude`, and an index column without a name as data frames write it, are left out. With a
    `pattern` such as 'p_*', only the columns that match are taken, and what its star stands for is the name of the
    class. Numbers 0, 1, 2… are no names.
    """
    if names is None and pattern is not None:
        raise InputError(f"Expected a header with columns that match {pattern!r} in {path}, got a table without one.")
    left_out = (*exclude, *INDEX_COLUMNS)
    places = [place for place in range(n_columns) if names is None or names[place] not in left_out]
    if names is not None and pattern is not None:
        places = [place for place in places if fnmatchcase(names[place], pattern)]
    if not places:
        wanted = "of probabilities" if pattern is None else f"that match {pattern!r}"
        raise InputError(f"Expected columns {wanted} in {path}, got none beside {', '.join(names or ())}.")
    if names is None:
        return places, None
    chosen = tuple(_starred(names[place], pattern or "") for place in places)
    return places, None if chosen == tuple(map(str, range(len(places)))) else chosen


def _starred(name: str, pattern: str) -> str:
    """Return the part of `name` that the only star of `pattern` stands for, else the name."""
    before, star, after = pattern.partition("*")
    if not star or any(special in before + after for special in "*?["):
        return name
    return name[len(before) : len(name) - len(after)] or name


def load_labels(path: str | Path, *, column: str | None = None) -> NDArray[Any]:
    """Read labels from `.npy`, `.npz`, `.csv`, `.tsv`, `.parquet` or a text file with a label a line.

    A table of several columns, the index of a data frame aside, needs `column`, unless one of them has a
    usual name ("label", "given", ...).
    """
    path = Path(path)
    if path.suffix.lower() == ".txt":
        return numbers_if_all_are(_checked(as_text_array(_lines(path)), path))
    if path.suffix.lower() not in _TABLES:
        return _load_array(path, (column,) if column else (*LABEL_COLUMNS, "arr_0"))
    return _checked(_label_column(open_table(path, column), column), path)


def _label_column(table: Table, column: str | None) -> NDArray[Any]:
    if column is not None:
        return table.read_column(table.position(column))
    if table.n_columns == 1:
        labels = table.read_column(0)
        return labels[1:] if table.names is None and _begins_with_header(labels) else labels
    named = [name for name in table.names or () if name not in INDEX_COLUMNS]
    usual = [usual for usual in LABEL_COLUMNS if usual in named] or (named if len(named) == 1 else [])
    if not usual:
        columns = ", ".join(named) or f"{table.n_columns} without names"
        raise InputError(f"Expected one column of labels in {table.path}, got {columns}. Name the column with --label.")
    return table.read_column(table.position(usual[0]))


def _begins_with_header(labels: NDArray[Any]) -> bool:
    """Tell whether the first of textual labels is a column's name.

    It is if no other row has it, and it is a usual name or all other labels occur at least twice.
    """
    if labels.dtype.kind != "U" or len(labels) < 2 or (labels[1:] == labels[0]).any():
        return False
    usual = labels[0].strip().lower() in LABEL_COLUMNS
    return bool(usual or np.unique(labels[1:], return_counts=True)[1].min() > 1)


def _checked(labels: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return labels of a text file, none of them empty."""
    if labels.dtype.kind == "U" and (labels == "").any():
        row = int(np.argmax(labels == ""))
        raise LabelsError(f"Expected a label in every row of {path}, got none at row {row}. Drop that row.")
    return labels


def load_class_names(path: str | Path) -> tuple[str, ...]:
    """Read class names, one a line in column order, from a text file (or a JSON list)."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        names = _load_json(path)
        if not isinstance(names, list):
            raise InputError(f"Expected a list of class names in {path}, got {type(names).__name__}.")
        return tuple(map(str, names))
    return tuple(line for line in _lines(path) if line)


def load_transition(path: str | Path) -> NDArray[np.float64]:
    """Read a transition matrix from `.json` (a saved estimate, or a list of rows), `.npy` or `.csv`."""
    return load_named_transition(path)[0]


def load_named_transition(path: str | Path) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Read a transition matrix as `load_transition` does, and the class names of its rows if the file has them."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        table = load_probabilities(path)
        return check_transition(table.values), table.class_names
    content = _load_json(path)
    if not (isinstance(content, dict) and "transition" in content):
        return check_transition(content), None
    matrix, names = check_transition(content["transition"]), content.get("class_names")
    return matrix, None if names is None else check_class_names(names, len(matrix))


def save_labels(path: str | Path, labels: NDArray[Any]) -> None:
    """Write labels as `.npy`, or one a line as `.csv` (with a header) or `.txt`."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".csv", ".txt"):
        raise FileError(f"Expected a name that ends in .npy, .csv or .txt, got {path.name!r}.")
    if suffix == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, labels, allow_pickle=False)
        return
    if labels.ndim != 1:
        raise LabelsError(f"Expected a label a line for {path.name}, got one-hot rows. Write them as .npy.")
    cells = list(map(str, labels.tolist()))
    with atomic_write(path) as stream:
        if suffix == ".csv":
            guarded = [guard_cell(cell) for cell in cells] if labels.dtype.kind not in "biuf" else cells
            csv.writer(stream, lineterminator="\n").writerows([["label"], *([cell] for cell in guarded)])
        else:
            stream.writelines(f"{_checked_line(cell, path)}\n" for cell in cells)


def _checked_line(label: str, path: Path) -> str:
    if label.splitlines() != [label] or label != label.strip():
        raise LabelsError(f"Expected labels that fit a line of {path.name}, got {label!r}. Write .csv or .npy.")
    return label


def _load_array(path: Path, names: Sequence[str]) -> NDArray[Any]:
    if path.suffix.lower() == ".npz":
        return read_npz(path, names)
    if path.suffix.lower() == ".npy":
        return read_npy(path)
    check_readable(path)
    raise FileError(f"Expected a file that ends in .npy, .npz, {', '.join(_TABLES)}, got {path.name!r}.")


def _lines(path: Path) -> list[str]:
    try:
        text = check_readable(path).read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as text: {error}.") from None
    return [line.strip() for line in text.rstrip().splitlines()]


def _load_json(path: Path) -> Any:
    try:
        return json.loads(check_readable(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as JSON: {error}.") from None
