"""Small helpers for CSV files that `dualt` writes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import IO, Any

from dualt.io.tables import guard_cell, unguard_cell

__all__ = ["find_delimiter", "guard_cell", "is_number", "is_row_number", "unguard_cell", "write_rows"]


def write_rows(stream: IO[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows of a CSV file, quoting those with a carriage return: Python leaves it bare, and readers end there."""
    plain = csv.writer(stream, lineterminator="\n")
    quoted = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        bare = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoted if bare else plain).writerow(row)


def find_delimiter(stream: IO[str]) -> str:
    """Return what divides the cells of a file that we wrote as CSV and somebody may have saved again.

    Where the comma is the decimal sign, spreadsheets write semicolons; some write tabs.
    """
    header = stream.readline()
    stream.seek(0)
    return next((sign for sign in ";\t" if sign in header), ",")


def is_row_number(cell: str) -> bool:
    """Tell whether a cell counts rows: plain digits, no more than an index can hold."""
    return cell.isascii() and cell.isdecimal() and len(cell) <= 18


def is_number(cell: str) -> bool:
    """Tell whether Python reads a cell as a float."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
