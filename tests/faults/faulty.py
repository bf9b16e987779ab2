"""Start the real command line with a fault, and look at what it leaves behind."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from functools import cache
from pathlib import Path

LAUNCH = Path(__file__).parent / "launch.py"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "120"}


# Libraries that commands load, by themselves or when the first optimizer or figure is made.
LIBRARIES = ("typer", "rich.table", "jinja2", "sklearn.linear_model", "scipy.optimize", "scipy.stats")
HEAVY = ("torch._dynamo", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "safetensors.torch")


def start(*words, stdin=None) -> subprocess.Popen:
    """Start `launch.py`, with these words."""
    pipes = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, str(LAUNCH), *map(str, words)], **pipes, text=True, env=ENVIRONMENT)


@cache
def _server(*libraries: str) -> subprocess.Popen:
    return start("--serve", *libraries, stdin=subprocess.PIPE)


def dualt(*arguments, fault="none", at="", code=0) -> str:
    """Run to the end, check the exit code and that no traceback is shown, and return what was said on stderr."""
    server = _server(*LIBRARIES, *(HEAVY if arguments[0] in ("train", "reproduce") else ()))
    server.stdin.write(json.dumps([fault, str(at), *map(str, arguments)]) + "\n")
    server.stdin.flush()
    assert select.select([server.stdout], [], [], 300)[0], f"{arguments} did not end"
    found, err = json.loads(server.stdout.readline())
    assert found in (code if isinstance(code, tuple) else (code,)), f"exit {found}\n{err}"
    assert "Traceback" not in err, err
    return err


def one_line(text: str) -> str:
    """Return the only line of a message."""
    (line,) = [line for line in text.splitlines() if line.strip()]
    return line


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
