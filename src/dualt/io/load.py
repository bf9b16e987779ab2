"""From a path to probabilities, labels, class names and matrices, whatever the format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import atomic_write
from dualt.io.arrays import check_readable, read_npy, read_npz
from dualt.io.tables import DELIMITERS, LABEL_COLUMNS, open_table
from dualt.validation import check_transition

_TABLES = (*DELIMITERS, ".parquet")
_PROBABILITY_NAMES = ("pred_probs", "probs", "probabilities", "p", "arr_0")


@dataclass(frozen=True)
class Probabilities:
    """Probabilities of a file, and class names if its header has them."""

    values: NDArray[Any]
    class_names: tuple[str, ...] | None = None


def load_probabilities(path: str | Path, *, exclude: Sequence[str] = ()) -> Probabilities:
    """Read probabilities from `.npy` (memory-mapped), `.npz`, `.csv`, `.tsv` or `.parquet`.

    A header gives the class names. Columns named in `exclude`, and an index column without a name as
    data frames write it, are left out.
    """
    path = Path(path)
    if path.suffix.lower() not in _TABLES:
        return Probabilities(_load_array(path, _PROBABILITY_NAMES))
    table = open_table(path)
    names = table.names or ("",) * table.n_columns
    left_out = {"", "__index_level_0__", *exclude} if table.names else set()
    places = [place for place, name in enumerate(names) if name not in left_out]
    values = table.read_numbers(places)
    chosen = tuple(names[place] for place in places)
    numbered = chosen == tuple(map(str, range(len(chosen))))
    return Probabilities(values, chosen if table.names and not numbered else None)


def load_labels(path: str | Path, *, column: str | None = None) -> NDArray[Any]:
    """Read labels from `.npy`, `.npz`, `.csv`, `.tsv`, `.parquet` or a text file with a label a line.

    A table of several columns needs `column`, unless one of them has a usual name ("label", "given", ...).
    """
    path = Path(path)
    if path.suffix.lower() == ".txt":
        return np.array(_lines(path))
    if path.suffix.lower() not in _TABLES:
        return _load_array(path, (column,) if column else (*LABEL_COLUMNS, "arr_0"))
    table = open_table(path)
    if column is not None:
        return table.read_column(table.position(column))
    if table.n_columns == 1:
        labels = table.read_column(0)
        return labels[1:] if table.names is None and _begins_with_header(labels) else labels
    usual = [name for name in LABEL_COLUMNS if table.names and name in table.names]
    if not usual:
        columns = ", ".join(table.names) if table.names else f"{table.n_columns} without names"
        raise InputError(f"Expected one column of labels in {path}, got {columns}. Name the column with --label.")
    return table.read_column(table.position(usual[0]))


def _begins_with_header(labels: NDArray[Any]) -> bool:
    """Tell whether the first of textual labels is a column's name: it never occurs again."""
    return bool(labels.dtype.kind == "U" and len(labels) > 2 and not (labels[1:] == labels[0]).any())


def load_class_names(path: str | Path) -> tuple[str, ...]:
    """Read class names, one a line in column order, from a text file (or a JSON list)."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        names = _load_json(path)
        if not isinstance(names, list):
            raise InputError(f"Expected a list of class names in {path}, got {type(names).__name__}.")
        return tuple(map(str, names))
    return tuple(_lines(path))


def load_transition(path: str | Path) -> NDArray[np.float64]:
    """Read a transition matrix from `.json` (a saved estimate, or a list of rows), `.npy` or `.csv`."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        content = _load_json(path)
        return check_transition(
            content["transition"] if isinstance(content, dict) and "transition" in content else content
        )
    return check_transition(load_probabilities(path).values)


def save_labels(path: str | Path, labels: NDArray[Any]) -> None:
    """Write labels as `.npy`, or one a line as `.csv` (with a header) or `.txt`."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, labels, allow_pickle=False)
    elif suffix in (".csv", ".txt"):
        import csv

        with atomic_write(path) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([["label"]] if suffix == ".csv" else [])
            writer.writerows([label] for label in labels.tolist())
    else:
        raise FileError(f"Expected a name that ends in .npy, .csv or .txt, got {path.name!r}.")


def _load_array(path: Path, names: Sequence[str]) -> NDArray[Any]:
    if path.suffix.lower() == ".npz":
        return read_npz(path, names)
    if path.suffix.lower() == ".npy":
        return read_npy(path)
    check_readable(path)
    raise FileError(f"Expected a file that ends in .npy, .npz, {', '.join(_TABLES)}, got {path.name!r}.")


def _lines(path: Path) -> list[str]:
    try:
        lines = check_readable(path).read_text(encoding="utf-8-sig").splitlines()
    except (UnicodeDecodeError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as text: {error}.") from None
    return [line.strip() for line in lines if line.strip()]


def _load_json(path: Path) -> Any:
    try:
        return json.loads(check_readable(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as JSON: {error}.") from None
