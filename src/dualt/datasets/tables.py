"""A data set in one table (CSV, TSV or Parquet): a label column, and numbers in all others."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.arrays import from_arrays
from dualt.datasets.dataset import Dataset
from dualt.errors import FileError, InputError, MissingExtraError, UnknownNameError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def load_table(path: str | Path, *, label: str = "label", noisy: bool = False) -> Dataset:
    """Rows of a table: the column `label` holds the labels, every other column is a feature.

    Parameters
    ----------
    path
        `.csv` or `.tsv` with a header, or `.parquet` (needs the extra [tables]).
    label
        Name of the label column.
    noisy
        The labels may be wrong: they are not the truth.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        x, y = _read_text(path, label, _DELIMITERS[suffix]) if suffix in _DELIMITERS else _read_parquet(path, label)
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}.") from error
    return from_arrays(x, y, name=path.stem, noisy=noisy)


def _feature_columns(columns: list[str], label: str, path: Path) -> list[int]:
    if label not in columns:
        raise UnknownNameError(f"label column in {path}", label, columns)
    if len(columns) < 2:
        raise InputError(f"Expected columns of numbers beside {label!r} in {path}, got none.")
    return [index for index, column in enumerate(columns) if column != label]


def _read_text(path: Path, label: str, delimiter: str) -> tuple[NDArray[Any], NDArray[Any]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, delimiter=delimiter)
        columns, first = next(rows, []), next(rows, None)
    features = _feature_columns(columns, label, path)
    if first is None:
        raise InputError(f"Expected rows below the header of {path}, got none.")

    read = partial(
        np.loadtxt, path, delimiter=delimiter, skiprows=1, comments=None, quotechar='"', encoding="utf-8-sig"
    )
    try:
        x = read(dtype=np.float32, usecols=features, ndmin=2)
        y = read(dtype=str, usecols=columns.index(label), ndmin=1)
    except ValueError as error:
        # numpy counts rows from the first that follows the header.
        raise InputError(
            f"Expected numbers in every column of {path} but {label!r}: {error}."
            " Turn text into numbers, or drop those columns."
        ) from None
    return x, _numbers_if_all_are(y)


def _numbers_if_all_are(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels like '10' and '9' as numbers, so that classes sort as numbers do."""
    return labels.astype(np.int64) if len(labels) and np.char.isdecimal(labels).all() else labels


def _read_parquet(path: Path, label: str) -> tuple[NDArray[Any], Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("Reading Parquet tables", "tables") from None
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise FileError(f"Cannot read {path}: {error}.") from error
    names = table.column_names
    features = [table.column(index) for index in _feature_columns(names, label, path)]
    for column, name in zip(features, (name for name in names if name != label), strict=True):
        if not (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
        ):
            raise InputError(
                f"Expected numbers in column {name!r} of {path}, got {column.type}."
                " Turn text into numbers, or drop that column."
            )
    x = np.column_stack([column.to_numpy().astype(np.float32) for column in features])
    return x, np.array(table.column(label).to_pylist(), dtype=object)
