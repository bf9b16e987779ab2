"""Output that any terminal can show, and that commands none: no control characters, and ASCII where it must be."""

from __future__ import annotations

import codecs
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

import typer

# All but the tab and the end of a line: names of files and classes may carry commands to a terminal. Lone surrogates
# stand for bytes of a name that are no UTF-8, and cannot be written.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_ASCII = {
    "–": "-", "—": "-", "−": "-", "·": ".", "•": "*", "…": "...", "×": "x", "╲": "\\", "█": "#", "Σ": "sum ",
    "T̂": "T", "̂": "", "≥": ">=", "≤": "<=", "→": "->", "‘": "'", "’": "'", "“": '"', "”": '"', "│": "|", "─": "-",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "♣": "club", "♠": "spade", "━": "-",
}  # fmt: skip


# Files that stand for standard input and output while a command runs. They are gone once it ends.
standard_streams: list[str] = []


def is_standard_stream(text: str) -> bool:
    """Tell whether a text names standard input or output, by the file that stands for it."""
    return any(path in text for path in standard_streams)


def clean(text: str) -> str:
    """Return a text without control characters, � stands for each, and with `-` for standard input and output."""
    for path in standard_streams:
        text = text.replace(path, "-")
    return _CONTROL.sub("�", text)


def say(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print a line for people, on stdout or on stderr, without control characters but its own style."""
    typer.secho(clean(text), err=err, nl=nl, **style)


def typed(options: Mapping[str, Any]) -> str:
    """Return options as one types them: True is a flag, a list repeats its option, and None was not given."""
    given = [(option, value) for option, value in options.items() if value is not None]
    lists = [(option, value if isinstance(value, list) else [value]) for option, value in given]
    words = [(option,) if each is True else (option, str(each)) for option, values in lists for each in values]
    return shlex.join(word for pair in words for word in pair)


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
