"""A data set in one table (CSV, TSV or Parquet): a label column, and numbers in all others."""

from __future__ import annotations

from pathlib import Path

from dualt.datasets.arrays import from_arrays
from dualt.datasets.dataset import Dataset
from dualt.errors import InputError
from dualt.io.load import open_table


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
    table = open_table(path, label)
    labels = table.position(label)
    features = [place for place in range(table.n_columns) if place != labels]
    if not features:
        raise InputError(f"Expected columns of numbers beside {label!r} in {path}, got none.")
    x, y = table.read_numbers(features), table.read_column(labels)
    return from_arrays(x, y, name=Path(path).stem, noisy=noisy)
