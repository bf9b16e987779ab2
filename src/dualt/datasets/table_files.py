"""A data set in one file: arrays in `.npz`, or a table (CSV, TSV or Parquet) with a column of labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dualt.datasets.dataset import Dataset, from_arrays
from dualt.errors import FileError, InputError
from dualt.io.load import open_npz
from dualt.io.table_columns import check_no_missing, open_table

_ARRAYS = ("X", "y", "X_test", "y_test", "class_names")


def load_npz(path: str | Path, *, noisy: bool = False) -> Dataset:
    """Arrays `X`, `y` and, where given, `X_test`, `y_test` and `class_names` of an `.npz` file."""
    with open_npz(path) as archive:
        if not {"X", "y"} <= set(archive):
            raise FileError(
                f"Expected arrays named X and y in {path}, got {', '.join(sorted(archive)) or 'none'}."
                " Write it with np.savez(path, X=..., y=...)."
            )
        x, y, x_test, y_test, names = (archive.get(name) for name in _ARRAYS)
    class_names = None if names is None else names.tolist()
    return from_arrays(x, y, x_test, y_test, name=Path(path).stem, class_names=class_names, noisy=noisy)


def load_table(path: str | Path, *, label: str = "label", id_column: str | None = None, noisy: bool = False) -> Dataset:
    """Rows of a table: the column `label` holds the labels, every other column but that of ids is a feature.

    Parameters
    ----------
    path
        `.csv` or `.tsv` with a header, or `.parquet` (needs the extra [tables]).
    label
        Name of the label column.
    id_column
        Name of the column that tells the rows apart, if there is one.
    noisy
        The labels may be wrong: they are not the truth.
    """
    table = open_table(path, label)
    apart = {table.position(name) for name in (label, id_column) if name is not None}
    features = [place for place in range(table.n_columns) if place not in apart]
    if not features:
        raise InputError(f"Expected columns of numbers beside {label!r} in {path}, got none.")
    x, y = table.read_all(features, table.position(label))
    dataset = from_arrays(x, check_no_missing(y, Path(path)), name=Path(path).stem, noisy=noisy)
    return replace(
        dataset,
        ids=None if id_column is None else tuple(table.read_texts(table.position(id_column))),
        feature_names=None if table.names is None else tuple(table.names[place] for place in features),
    )
