"""An audit: a random sample of labels for a person to check, as a table to fill in."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import atomic_write, check_readable
from dualt.io.cells import guard_cell, is_row_number, unguard_cell
from dualt.io.tables import numbers_if_all_are
from dualt.labels import as_text_array
from dualt.rng import RandomState, as_generator

HEADER = ("index", "given", "true")


def draw_audit(labels: NDArray[Any], size: int, random_state: RandomState = 0) -> NDArray[np.intp]:
    """Return the numbers of `size` rows, drawn at random without looking at anything."""
    if not 1 <= size <= len(labels):
        raise InputError(f"Expected a sample of 1 to {len(labels):,} rows, got {size}.")
    return np.sort(as_generator(random_state).choice(len(labels), size, replace=False))


def save_audit(path: str | Path, labels: NDArray[Any], rows: NDArray[np.intp]) -> None:
    """Write a CSV of index, given label and an empty cell for the true one."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows([row, guard_cell(str(labels[row])), ""] for row in rows.tolist())


def read_audit(path: str | Path) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Return row numbers, given and true labels of an audit; rows that are not filled in yet are left out."""
    try:
        with check_readable(path).open(encoding="utf-8-sig", newline="") as stream:
            header, *lines = csv.reader(stream)
    except (ValueError, csv.Error, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as an audit: {error}.") from None
    columns = [cell.strip().lower() for cell in header]
    if not set(HEADER) <= set(columns):
        raise InputError(f"Expected the header {','.join(HEADER)} in {path}, got {','.join(header)!r}.")
    places = [columns.index(name) for name in HEADER]
    rows = [[line[place] for place in places] for line in lines if len(line) == len(columns)]
    filled = [line for line in rows if line[2].strip()]
    if not filled:
        raise InputError(f"Expected true labels in the column 'true' of {path}, got none: fill some in.")
    for line in filled:
        if not is_row_number(line[0].strip()):
            raise InputError(f"Expected a row number as index in {path}, got {line[0][:40]!r}.")
    given, true = (as_text_array([unguard_cell(line[column].strip()) for line in filled]) for column in (1, 2))
    return np.array([int(line[0]) for line in filled], np.intp), numbers_if_all_are(given), numbers_if_all_are(true)
