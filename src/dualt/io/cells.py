"""Cells of a CSV file that no spreadsheet takes for a formula, and the way back.

The rule, kept by every CSV that `dualt` writes and by the review page's own script: a text whose first
character, apostrophes and spaces aside, is one of ``= + - @``, a full-width twin of these, a tab or a line
break gets one apostrophe in front; reading takes that one apostrophe away again. So `unguard_cell` undoes
`guard_cell` for every text, and leaves texts that were never guarded, even ``'tis``, as they are.
"""

from __future__ import annotations

import re

# The report page's script mirrors this expression (report/templates/csv.js).
_FORMULA = re.compile(r"[' ]*[=+\-@\t\r\n＝＋－＠]")


def guard_cell(text: str) -> str:
    """Return `text`, with an apostrophe in front if a spreadsheet would run it as a formula.

    Examples
    --------
    >>> guard_cell("=cmd|' /C calc'!A0")
    "'=cmd|' /C calc'!A0"
    >>> guard_cell("cat")
    'cat'
    """
    return f"'{text}" if _FORMULA.match(text) else text


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
