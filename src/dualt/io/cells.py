"""Cells of a CSV file that no spreadsheet takes for a formula, and the way back.

The rule, kept by every CSV that `dualt` writes and by the review page's own script: a text whose first
character, apostrophes and spaces aside, is one of ``= + - @``, a full-width twin of these, a tab or a line
break gets one apostrophe in front, unless it is a plain number such as ``-1``; reading takes that one apostrophe
away again. So `unguard_cell` undoes `guard_cell` for every text, and leaves texts that were never guarded, even
``'tis``, as they are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import IO, Any

# The report page's script mirrors this expression (report/templates/csv.js).
_FORMULA = re.compile(r"[' ]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


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


def guard_cell(text: str) -> str:
    """Return `text`, with an apostrophe in front if a spreadsheet would run it as a formula.

    Examples
    --------
    >>> guard_cell("=cmd|' /C calc'!A0")
    "'=cmd|' /C calc'!A0"
    >>> guard_cell("cat")
    'cat'
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguard_cell(text: str) -> str:
    """Return the text that `guard_cell` was given.

    Examples
    --------
    >>> unguard_cell("'-1")
    '-1'
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


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
