"""Probabilities, labels, class names and matrices by path, whatever the format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, TransitionError, naming_extra
from dualt.files import atomic_write, check_readable, open_input, read_json, read_text
from dualt.io import tables
from dualt.io.image_folder import is_class_folder, read_class_folder
from dualt.io.table_columns import LABEL_COLUMNS, check_no_missing, choose_columns, label_place, labels_of, open_table
from dualt.io.tables import JSON_LINES, TABLES, TEXT, look_at, read_table, reading, write_table
from dualt.labels import is_missing
from dualt.validation import check_class_names, check_transition

FORMATS, PROBABILITY_FORMATS = (".npy", ".npz", *TABLES, ".txt"), (*TABLES, ".npy")
_PROBABILITY_NAMES = ("pred_probs", "probs", "probabilities", "p", "arr_0")


@contextmanager
def open_npz(path: str | Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Open an `.npz` file: its arrays by name, each read when it is asked for; nothing is unpickled."""
    path = Path(path)
    with reading(path), open_input(path) as stream, np.load(stream, allow_pickle=False) as archive:
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise FileError(f"Cannot read {path} as .npz: it is a .npy file.")
        yield archive


def load_array(path: Path, names: Sequence[str] = _PROBABILITY_NAMES) -> NDArray[Any]:
    """Return the array of an `.npy` file, memory-mapped, or that of the first of these names in an `.npz` file."""
    if path.suffix.lower() == ".npz":
        with open_npz(path) as archive:
            found = [name for name in names if name in archive] or (list(archive) if len(archive) == 1 else [])
            if not found:
                got = ", ".join(archive) or "none"
                raise FileError(f"Expected an array named {' or '.join(names)} in {path}, got {got}.")
            array = archive[found[0]]
    else:
        check_readable(path)
        if path.suffix.lower() != ".npy":
            raise FileError(f"Expected a file that ends in .npy, .npz, {', '.join(TABLES)}, got {path.name!r}.")
        with reading(path):
            # A plain array over the map: every slice of a np.memmap costs some microseconds.
            array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    if array.ndim == 0:
        raise FileError(f"Expected an array of rows in {path}, got a single value.")
    return array


def load_labels(path: str | Path, *, column: str | None = None, missing: bool = False) -> NDArray[Any]:
    """Read labels from `.npy`, `.npz`, a table, a text file with one label per line, or images in a folder per class.

    A table of several columns, the index of a data frame aside, needs `column`, unless one of them has a usual name
    ("label", "given", ...). A missing label is refused, unless `missing`: then it comes as `labels_of` has it.
    """
    path = Path(path)
    if is_class_folder(path):
        return read_class_folder(path).labels
    if path.suffix.lower() == ".txt":
        labels = labels_of(_lines(path))
    elif path.suffix.lower() not in TABLES:
        return load_array(path, (column,) if column else (*LABEL_COLUMNS, "arr_0"))
    else:
        table = open_table(path, column)
        labels = table.read_column(label_place(table, column))
    return labels if missing else check_no_missing(labels, path)


def load_class_names(path: str | Path) -> tuple[str, ...]:
    """Read class names in column order, one per line, or a list in `.json`."""
    is_json = Path(path).suffix.lower() == ".json"
    names = read_json(path) if is_json else [line for line in _lines(Path(path)) if line]
    if not isinstance(names, list) or not names:
        got = "none" if not names else type(names).__name__
        raise InputError(f"Expected class names in {path}, one per line or as a list, got {got}.")
    return tuple(map(str, names))


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).rstrip().splitlines()]


def load_transition(path: str | Path) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Read a transition matrix, and the class names of its rows if the file has them.

    Files are `.json` (a saved estimate, or a list of rows), tables, `.npy` or `.npz`.
    """
    path = Path(path)
    if path.suffix.lower() in TABLES:
        table = open_table(path)
        if table.names is None and len(table.frame) > table.n_columns:  # the classes are called by numbers
            header = tuple(map(tables.unguard_cell, look_at(path).rows[0]))
            table = replace(table, frame=table.frame[1:], names=header)
        # A column more than rows: the first holds the names of the rows.
        places, class_names = choose_columns(table, (table.names or ())[: max(table.n_columns - len(table.frame), 0)])
        return check_transition(table.read_numbers(places)), class_names
    if path.suffix.lower() != ".json":
        return check_transition(load_array(path)), None
    content = read_json(path)
    content = content if isinstance(content, dict) else {"transition": content}
    rows, names = content.get("transition"), content.get("class_names")
    if not (isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(rows) for row in rows)):
        got = repr(str(rows)[:40])
        raise TransitionError(f"Expected a square matrix in {path}, as a list of rows, or a saved estimate, got {got}.")
    matrix = check_transition(rows)
    return matrix, None if names is None else check_class_names(names, len(matrix))


def save_probabilities(
    path: Path, probs: NDArray[Any], class_names: Sequence[str], beside: Mapping[str, Sequence[Any]]
) -> None:
    """Write a table of the columns `beside` and then p_<class>, or the probabilities alone as `.npy`."""
    import pandas as pd

    if path.suffix.lower() == ".npy":
        with atomic_write(path, "wb") as stream:
            np.save(stream, probs, allow_pickle=False)
        return
    values = pd.DataFrame(probs, columns=[f"p_{name}" for name in class_names])
    if path.suffix.lower() in TEXT:
        values = values.map("{:.8g}".format)
    write_table(path, pd.concat([pd.DataFrame(dict(beside)), values], axis=1), guarded=True)


def save_corrected(
    target: str | Path, corrected: NDArray[Any], source: str | Path, given: NDArray[Any], *, column: str | None = None
) -> None:
    """Write the file `source` to `target`, in the same format, with the labels `corrected` in place of `given`.

    Every row, column and value of a table comes back, except the changed labels. `given` and `column` are what
    `load_labels` returned and was passed.
    """
    source, target = Path(source), Path(target)
    kind, known = source.suffix.lower(), (".npy", ".txt", *TABLES)
    if kind not in known or target.suffix.lower() != kind:
        formats = ", ".join(known)
        raise FileError(f"Expected a file of the same format as {source.name} ({formats}), got {target.name!r}.")
    if kind == ".npy":
        with atomic_write(target, "wb") as stream:
            np.save(stream, corrected, allow_pickle=False)
        return
    table = open_table(source, column) if kind in TABLES else None
    n_rows = len(_lines(source)) if table is None else len(table.frame)
    if n_rows != len(given):
        raise FileError(f"Expected {len(given):,} rows in {source} as before, got {n_rows:,}: it changed.")
    new = {row: corrected[row].item() for row in np.flatnonzero((given != corrected) & ~is_missing(given)).tolist()}
    if table is None:
        with atomic_write(target) as stream:
            stream.writelines(f"{line}\n" for line in _replaced(_lines(source), new, given))
        return
    place = label_place(table, column)
    if kind in TEXT:
        frame, header = read_table(source, header=False), 0 if table.names is None else 1
        cells = frame.iloc[:, place].tolist()
        frame[frame.columns[place]] = cells[:header] + _replaced(cells[header:], new, given)
        write_table(target, frame, header=False, like=source)
    else:
        correct = _correct_json_lines if kind in JSON_LINES else _correct_arrow
        correct(source, target, new, (table.names or ())[place])


def _replaced(cells: list[str], new: Mapping[int, Any], given: NDArray[Any]) -> list[str]:
    """Return the cells with new labels, written as elsewhere in the column: '2' where it was read as 2.0."""
    written = dict(zip(given.tolist(), cells, strict=True))
    for row, label in new.items():
        cells[row] = written.get(label) or _spelled(label, cells[row])
    return cells


def _spelled(label: Any, old: str) -> str:
    """Return a label as text, a whole number with '.0' only where the old one has it."""
    if isinstance(label, str):
        return tables.guard_cell(label)
    return str(label) if old.endswith(".0") else str(label).removesuffix(".0")


def _correct_json_lines(source: Path, target: Path, new: Mapping[int, Any], key: str) -> None:
    rows = [*tables.json_lines(source)]
    for row, label in new.items():
        rows[row][key] = _like(label, rows[row][key])
    with atomic_write(target) as stream:
        stream.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _correct_arrow(source: Path, target: Path, new: Mapping[int, Any], name: str) -> None:
    """Replace values of one column; the schema stays."""
    with naming_extra("Writing Parquet and Feather tables"):
        import pyarrow as pa
        from pyarrow import feather, parquet
    is_parquet = source.suffix.lower() == ".parquet"
    table = parquet.ParquetFile(source).read() if is_parquet else feather.read_table(source)
    place = table.schema.get_field_index(name)
    field, values = table.schema.field(place), table.column(place).to_pylist()
    for row, label in new.items():
        values[row] = _like(label, values[row])
    table = table.set_column(place, field, pa.array(values, field.type))
    with atomic_write(target, "wb") as stream:
        (parquet.write_table if is_parquet else feather.write_feather)(table, stream)


def _like(label: Any, old: Any) -> Any:
    """Return a label in the type of the one it replaces."""
    if isinstance(old, bool):
        return str(label) in ("True", "1", "1.0")
    if isinstance(old, str) and not isinstance(label, str):
        return _spelled(label, old)
    return type(old)(label) if isinstance(old, (int, float)) else label
