"""Probabilities as a table with ids and labels beside them, or alone as an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, naming_extra
from dualt.files import atomic_write
from dualt.io.cells import guard_cell, write_rows

ENDINGS = (".csv", ".parquet", ".npy")


def check_ending(path: Path) -> None:
    """Refuse a name under which probabilities cannot be written."""
    if path.suffix.lower() not in ENDINGS:
        raise FileError(f"Expected a name that ends in {', '.join(ENDINGS)}, got {path.name!r}.")


def save_probabilities(
    path: Path, probs: NDArray[Any], class_names: Sequence[str], beside: Mapping[str, Sequence[Any]]
) -> None:
    """Write a table of the columns `beside` and then p_<class>, or the probabilities alone as `.npy`."""
    check_ending(path)
    columns = [f"p_{name}" for name in class_names]
    with atomic_write(path, "w" if path.suffix.lower() == ".csv" else "wb") as stream:
        if path.suffix.lower() == ".npy":
            np.save(stream, probs, allow_pickle=False)
        elif path.suffix.lower() == ".csv":
            write_rows(stream, [[guard_cell(name) for name in (*beside, *columns)]])
            rows = zip(probs.tolist(), *beside.values(), strict=True)
            write_rows(stream, ([*map(_guarded, cells), *(f"{value:.8g}" for value in row)] for row, *cells in rows))
        else:
            with naming_extra("A Parquet file"):
                import pyarrow as pa
                from pyarrow import parquet
            arrays = [pa.array(values) for values in (*beside.values(), *probs.T)]
            parquet.write_table(pa.Table.from_arrays(arrays, names=[*beside, *columns]), stream)


def _guarded(cell: Any) -> Any:
    return guard_cell(cell) if isinstance(cell, str) else cell
