"""Compiles `dualt.kernels` where there is a C compiler; without one the package is pure Python, and as correct."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("src", "dualt", "kernels")
# No flag that lets results depend on the machine. Nobody asks which operation overflowed: without traps, loops with
# comparisons become vectors.
FLAGS = ("-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno")


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
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().translate(str.maketrans('-.', '__'))}"


def compiled(folder: Path) -> bool:
    """Compile the sources of `folder` to its compiled.so; tell whether that worked."""
    compiler = which(os.environ.get("CC", "cc"))
    if compiler is None or os.name != "posix":
        return False
    with TemporaryDirectory(dir=folder) as scratch:
        library = Path(scratch, "compiled.so")
        command = [compiler, *FLAGS, "-o", str(library), *map(str, sorted(folder.glob("*.c"))), "-lm"]
        if subprocess.run(command, check=False).returncode != 0:  # noqa: S603
            return False
        library.replace(folder / library.name)  # at once: another process may be loading it
    return True
