"""Output on terminals that cannot show every character: what they lack is written in ASCII."""

from __future__ import annotations

import codecs
import sys

_ASCII = {
    "–": "-", "—": "-", "−": "-", "·": ".", "•": "*", "…": "...", "×": "x", "╲": "\\", "█": "#", "Σ": "sum ",
    "T̂": "T", "̂": "", "≥": ">=", "≤": "<=", "→": "->", "‘": "'", "’": "'", "“": '"', "”": '"', "│": "|", "─": "-",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "♣": "club", "♠": "spade", "━": "-",
}  # fmt: skip


def degrade_output() -> None:
    """Let stdout and stderr write ASCII, and ? where there is no likeness, instead of characters they cannot encode."""
    codecs.register_error("dualt-ascii", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="dualt-ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(sign, "?") for sign in error.object[error.start : error.end]), error.end
