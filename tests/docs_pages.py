"""Pages of documentation as programs: their code blocks, run from top to bottom in a folder of their own.

- A ```python block is executed; all of a page share their names. A ```sh block is run by bash, with the real command.
- A ```text block with title="output" right after one of them is what it prints; `...` stands for anything.
- `<!-- not run: why -->` above a block leaves it out, `<!-- needs: module -->` anywhere skips the page without it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "reproduction" not in page.parent.parts),
]
_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: .+ -->\s*\Z")
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    code: str
    line: int
    runs: bool
    is_output: bool
    span: tuple[int, int]


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = []
    for match in _FENCE.finditer(text):
        language, _, attributes = match[2].partition(" ")
        runs = language in ("python", "sh") and not _NOT_RUN.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 2
        code = textwrap.dedent(match[3])
        found.append(Block(language, code, line, runs, 'title="output"' in attributes, match.span(3)))
    return found


def run_page(path: Path, names: dict[str, Any]) -> list[tuple[Block, str]]:
    """Run the page in the current folder, and return each output block with what came instead, if it differs."""
    differing, printed = [], ""
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if block.is_output:
            if not doctest.OutputChecker().check_output(block.code, printed, _FLAGS):
                differing.append((block, printed))
        elif block.runs:
            where = f"{path.name}:{block.line}"
            printed = _run_python(block.code, where, names) if block.language == "python" else _run_shell(block, where)
    return differing


def _run_python(code: str, where: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec"), names)
    return printed.getvalue()


def _run_shell(block: Block, where: str) -> str:
    commands = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, f"{where}: {run.stderr or run.stdout}"
    return run.stdout


def with_outputs(text: str, found: list[tuple[Block, str]]) -> str:
    """Return the page with the outputs that came."""
    for block, printed in reversed(found):
        indent = re.match(" *", text[block.span[0] :])[0]
        start, stop = block.span
        text = text[:start] + textwrap.indent(f"{printed.rstrip()}\n", indent) + text[stop:]
    return text
