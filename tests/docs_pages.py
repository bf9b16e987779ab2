"""Pages of documentation as programs: their code blocks, run from top to bottom in a folder of their own.

- A ```python block is executed; all of a page share their names. A ```sh block is run by bash, with the real command.
- A ```text block with title="output" right after one of them is what it prints; `...` stands for anything.
- Comments right above a block say what it needs, if anything:
  `<!-- given: name, ... -->`     functions of docs_given.py that lay out what the block takes for granted
  `<!-- in the background -->`    every line is a process of its own, which is stopped at the end of the page
  `<!-- run by: path -->`         that script or test runs the block, from the page, in a place of its own
- `<!-- needs: module -->` anywhere skips the page without that module; `<!-- in its own process -->` is what it says.

    python tests/docs_pages.py run PAGE           run a page here
    python tests/docs_pages.py blocks PATH        print the blocks that are `run by: PATH`
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "reproduction" not in page.parent.parts),
]
_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"(?:<!-- [^>\n]+ -->\s*)+\Z")
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    code: str
    line: int
    title: str
    span: tuple[int, int]
    given: tuple[str, ...] = ()
    in_background: bool = False
    run_by: str = ""

    @property
    def is_output(self) -> bool:
        """Whether it shows what the block before it prints."""
        return self.title == "output"

    @property
    def runs(self) -> bool:
        """Whether the block is run with its page."""
        return self.language in ("python", "sh") and not self.run_by


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = []
    for match in _FENCE.finditer(text):
        language, _, attributes = match[2].partition(" ")
        above = _MARKS.search(text[: match.start()])
        marks = dict(re.findall(r"<!-- ([^:>]+)(?:: ([^>]*))? -->", above[0])) if above else {}
        found.append(
            Block(
                language,
                textwrap.dedent(match[3]),
                line=text.count("\n", 0, match.start()) + 2,
                title=attributes.removeprefix("title=").strip('"'),
                span=match.span(3),
                given=tuple(re.findall(r"\w+", marks.get("given", ""))),
                in_background="in the background" in marks,
                run_by=marks.get("run by", ""),
            )
        )
    return found


def blocks_run_by(path: str) -> list[Block]:
    """Return the blocks of all pages that say they are run by `path`."""
    return [block for page in PAGES for block in blocks_of(page.read_text(encoding="utf-8")) if block.run_by == path]


@dataclass
class PageRun:
    """A page while it runs: the names its Python shares, and how its commands are started."""

    names: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    addresses: dict[str, str] = field(default_factory=dict)
    """What stands on the page for a machine, and where it is here."""
    until_the_end: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def block(self, block: Block, where: str) -> str:
        """Run a block, and return what it printed."""
        for name in block.given:
            import docs_given

            getattr(docs_given, name)(self)
        code = block.code
        for written, here in self.addresses.items():
            code = code.replace(written, here)
        if block.in_background:
            for line in code.splitlines():
                self.until_the_end.enter_context(self._background(shlex.split(line, comments=True)))
            return ""
        return self._python(code, where) if block.language == "python" else self._shell(code, where)

    def _python(self, code: str, where: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, where, "exec"), self.names)
        return printed.getvalue()

    def _shell(self, code: str, where: str) -> str:
        command = ["bash", "-euo", "pipefail", "-c", code]
        run = subprocess.run(command, capture_output=True, text=True, env=self._env(), cwd=self.folder, check=False)
        assert run.returncode == 0, f"{where}: {run.stderr or run.stdout}"
        # How far a slow machine is, in lines of their own.
        return re.sub(r"^.*: [\d,]+ of [\d,]+\n", "", run.stdout, flags=re.MULTILINE)

    @contextlib.contextmanager
    def _background(self, words: list[str]) -> Iterator[None]:
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._env()) as process:
            try:
                yield
            finally:
                process.terminate()

    def _env(self) -> dict[str, str]:
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        return {**os.environ, "PATH": path, "COLUMNS": "100", **self.environment}


def run_page(text: str, name: str) -> list[tuple[Block, str]]:
    """Run a page in the current folder, and return each output block with what came instead, if it differs."""
    differing, printed = [], ""
    run = PageRun()
    with run.until_the_end:
        for block in blocks_of(text):
            if block.is_output:
                if not doctest.OutputChecker().check_output(block.code, printed, _FLAGS):
                    differing.append((block, printed))
            elif block.runs:
                printed = run.block(block, f"{name}:{block.line}")
    return differing


def check_page(page: Path) -> None:
    """Run a page in the current folder; what it shows must come, or is written into it if UPDATE_DOCS is set."""
    text = page.read_text(encoding="utf-8")
    found = run_page(text, page.name)
    if found and os.environ.get("UPDATE_DOCS"):
        page.write_text(with_outputs(text, found), encoding="utf-8")
    elif found:
        block, printed = found[0]
        raise AssertionError(f"{page.name}:{block.line} shows\n{block.code}\nbut this came:\n{printed}")


def with_outputs(text: str, found: list[tuple[Block, str]]) -> str:
    """Return the page with the outputs that came."""
    for block, printed in reversed(found):
        indent = re.match(" *", text[block.span[0] :])[0]
        start, stop = block.span
        text = text[:start] + textwrap.indent(f"{printed.rstrip()}\n", indent) + text[stop:]
    return text


if __name__ == "__main__":
    _, task, argument = sys.argv
    sys.path.append(str(ROOT))  # docs_given.py shares helpers with the tests
    if task == "run":
        check_page(Path(argument).resolve())
    else:
        print("".join(block.code for block in blocks_run_by(argument)), end="")  # noqa: T201
