"""Start the real command line with a fault, and look at what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LAUNCH = Path(__file__).parent / "launch.py"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "120"}


def start(*arguments, fault="none", at="") -> subprocess.Popen:
    command = [sys.executable, str(LAUNCH), fault, str(at), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def dualt(*arguments, fault="none", at="", code=0) -> str:
    """Run to the end, check the exit code and that no traceback is shown, and return what was said on stderr."""
    process = start(*arguments, fault=fault, at=at)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
    assert "Traceback" not in err, err
    return err


def one_line(text: str) -> str:
    """Return the only line of a message."""
    (line,) = [line for line in text.splitlines() if line.strip()]
    return line


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
