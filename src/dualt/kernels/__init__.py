"""Inner loops in C, compiled when the package is installed and a C compiler is there.

There are two, each with an equivalent in NumPy for where `library` is None: the first pass over the rows (without it
the default takes 1.4 times as long, with 1,000,000 rows × 10 classes) and the clean posterior (5 to 34 times).
They are not used if they were not compiled, or with `DUALT_KERNELS=0` in the environment; with `DUALT_KERNELS=require`
that is an error.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import DualtError


class KernelsError(DualtError, ImportError):
    """The compiled kernels were required, and are not there."""


# Increased, here and in version.c, whenever the arguments or the meaning of a function change: a library of another
# version is not used.
_VERSION = 10
# As in rows.c: rows that are dealt with together.
GROUP = 64
_POINTER, _INT, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
# Both return an int.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "read_posterior": (_POINTER, _POINTER, _INT, _POINTER),
    "scan_rows": (_POINTER, _POINTER, _INT, _INT, _REAL, _REAL, *4 * (_POINTER,), _INT, _POINTER),
}


def _load(path: Path) -> tuple[ctypes.CDLL | None, str]:
    """Return the compiled library, or None and why it is not wanted or cannot be used."""
    wish = os.environ.get("DUALT_KERNELS", "")
    if wish == "0":
        return None, "DUALT_KERNELS=0"
    try:
        found = ctypes.CDLL(str(path))
        version = found.dualt_kernels_version()
        if version == _VERSION:
            for name, arguments in _ARGUMENTS.items():
                for kind in TYPES.values():
                    function = getattr(found, f"{name}_{kind}")
                    function.restype, function.argtypes = _INT, arguments
            return found, ""
        problem = f"{path.name} is of version {version}, and {_VERSION} is wanted"
    except (OSError, AttributeError) as error:
        problem = f"{path.name} cannot be loaded: {error}" if path.exists() else "not compiled for this platform"
    if wish == "require":
        raise KernelsError(
            f"Expected the compiled kernels, since DUALT_KERNELS=require is set, got none: {problem}."
            " Install a wheel of this platform, or reinstall dualt where there is a C compiler."
        )
    return None, problem


library, _problem = _load(Path(__file__).with_name("compiled.so"))


def status() -> str:
    """Return whether the compiled kernels are in use, in a few words."""
    return "compiled kernels in use" if library else f"compiled kernels not in use ({_problem or 'switched off'})"


def addresses(*arrays: NDArray[Any]) -> list[int]:
    """Return where the entries of arrays are in memory."""
    return [array.ctypes.data for array in arrays]
