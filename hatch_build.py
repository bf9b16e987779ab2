"""Compiles `dualt.kernels` where there is a C compiler; without one the package is pure Python, and as correct."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("src", "dualt", "kernels")
# No flag that lets results depend on the machine. Nobody asks which operation overflowed: without traps, loops with
# comparisons become vectors. Vectors are never passed between functions, so their calling convention is of no concern.
FLAGS = (
    "-O3",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-Wno-psabi",
)


class CompileKernels(BuildHookInterface[Any]):
    """Adds the library to the wheel, which then is one of this platform."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or leave it; `version` is "editable" where the library is used from the source tree."""
        del version
        folder = Path(self.root, KERNELS)
        if self.target_name != "wheel" or not compiled(folder):
            return
        build_data["artifacts"].append(str(KERNELS / "compiled.so"))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"


def compiled(folder: Path) -> bool:
    """Compile the sources of `folder` to its compiled.so; tell whether that worked, and on stderr why it did not."""
    failure = _failure_to_compile(folder)
    if failure is None:
        return True
    # An old library would be of another version than the Python beside it, or worse, of the same.
    (folder / "compiled.so").unlink(missing_ok=True)
    if os.environ.get("DUALT_KERNELS") == "require":
        raise RuntimeError(f"dualt: its kernels were not compiled ({failure}), and DUALT_KERNELS=require wants them.")
    sys.stderr.write(f"dualt: its kernels were not compiled ({failure}): NumPy does their work, more slowly.\n")
    return False


def _failure_to_compile(folder: Path) -> str | None:
    """Return why the library could not be compiled, in one line; None if it was."""
    if os.name != "posix":
        return f"not known how on {sys.platform}"
    compiler = shlex.split(os.environ.get("CC", "cc")) or ["cc"]
    with TemporaryDirectory(dir=folder) as scratch:
        library = Path(scratch, "compiled.so")
        sources = map(str, sorted(folder.glob("*.c")))
        # CFLAGS and LDFLAGS as well: macOS names its architecture there.
        options = [*shlex.split(os.environ.get("CFLAGS", "")), *FLAGS]
        command = [*compiler, *options, *_architecture(), "-o", str(library), *sources]
        command += [*shlex.split(os.environ.get("LDFLAGS", "")), "-lm"]
        try:
            run = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
        except OSError as error:
            return f"{shlex.join(compiler)}: {error.strerror}"
        if run.returncode != 0:
            lines = run.stderr.splitlines()
            told = next((line for line in lines if "error:" in line), lines[0] if lines else "it said nothing")
            return f"{shlex.join(compiler)} failed with {run.returncode}: {told.strip()}"
        library.replace(folder / library.name)  # at once: another process may be loading it
    return None


def _architecture() -> list[str]:
    """Return the options for the architectures that macOS wants, which `cibuildwheel` names in ARCHFLAGS."""
    return shlex.split(os.environ.get("ARCHFLAGS", "")) if sys.platform == "darwin" else []


def _platform() -> str:
    """Return the platform of the wheel, as its tag has it."""
    platform = os.environ.get("_PYTHON_HOST_PLATFORM") or sysconfig.get_platform()
    return platform.translate(str.maketrans("-.", "__"))
