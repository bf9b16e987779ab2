"""Inner loops in C, compiled when the package is installed and a C compiler is there.

Two of them, each with a twin in NumPy that its caller takes where `library` is None: the first pass over the rows (the
default takes 1.6 times as long without, with 1,000,000 rows × 10 classes) and the clean posterior (5 to 34 times).
Nothing is used if nothing was compiled, or with `DUALT_KERNELS=0` in the environment; with `DUALT_KERNELS=require`
that is an error.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import DualtError


class KernelsError(DualtError, ImportError):
    """The compiled kernels were required, and are not there."""


# Raised with every change of a function's arguments or meaning, here and in version.c: no other library is used.
_VERSION = 8
# As in rows.c: rows that are dealt with together.
GROUP = 64
_POINTER, _INT, _REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
# Both return an int.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "read_posterior": (_POINTER, _POINTER, _INT, _POINTER),
    "scan_rows": (_POINTER, _POINTER, _INT, _INT, _REAL, _REAL, *4 * (_POINTER,), _INT, _POINTER),
}


def _load(path: Path) -> ctypes.CDLL | None:
    """Return the compiled library; None if it is not wanted or cannot be used, and then `_problem` says why."""
    global _problem  # noqa: PLW0603
    wish, _problem = os.environ.get("DUALT_KERNELS", ""), ""
    if wish == "0":
        _problem = "DUALT_KERNELS=0"
        return None
    try:
        found = ctypes.CDLL(str(path))
        version = found.dualt_kernels_version()
        if version == _VERSION:
            for name, arguments in _ARGUMENTS.items():
                for kind in TYPES.values():
                    function = getattr(found, f"{name}_{kind}")
                    function.restype, function.argtypes = _INT, arguments
            return found
        _problem = f"{path.name} is of version {version}, and {_VERSION} is wanted"
    except (OSError, AttributeError) as error:
        _problem = f"{path.name} cannot be loaded: {error}" if path.exists() else "not compiled for this platform"
    if wish == "require":
        raise KernelsError(
            f"Expected the compiled kernels, since DUALT_KERNELS=require is set, got none: {_problem}."
            " Install a wheel of this platform, or reinstall dualt where there is a C compiler."
        )
    return None


_problem = ""
library = _load(Path(__file__).with_name("compiled.so"))


def status() -> str:
    """Return whether the compiled kernels are in use, in a few words."""
    return "compiled kernels in use" if library else f"compiled kernels not in use ({_problem or 'switched off'})"


def addresses(*arrays: NDArray[Any]) -> list[int]:
    """Return where the entries of arrays are in memory."""
    return [array.ctypes.data for array in arrays]


def scan_rows(
    chunk: NDArray[Any],
    labels: NDArray[np.intp],
    floor: NDArray[Any],
    *,
    tolerance: float,
    unit: float,
    counts: NDArray[np.int64],
    sums: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64]]:
    """Add the rows of contiguous float32 or float64 to counts, and find what exceeds the floor of its column.

    Adds one to `counts[argmax, label]` and round(p[label] / unit) to `sums[label]` for every row. Returns how many rows
    were read, and the places in the flat chunk of entries above `floor`, a part of `hits`. It stops before rows that
    are not plainly probabilities (none negative, a sum within `tolerance` of one), before labels that are no classes,
    and where `hits` is so full that it may not hold those of `GROUP` rows more.
    """
    labels, n_hits = np.ascontiguousarray(labels, np.int64), ctypes.c_int64()
    scan = getattr(library, f"scan_rows_{TYPES[chunk.dtype]}")
    done: int = scan(
        *addresses(chunk, labels),
        *chunk.shape,
        tolerance,
        1 / unit,
        *addresses(floor, counts, sums, hits),
        len(hits),
        ctypes.byref(n_hits),
    )
    return done, hits[: n_hits.value]
