"""Arrays parsed from files, kept for the next pass: in memory while one budget lasts, else in temporary files.

A temporary `.npy` file is memory-mapped whenever its array is read. It is removed with the `Kept` that wrote it, at
the latest when Python ends. Its folder is that of `tempfile`: set TMPDIR to have it elsewhere.
"""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.io.arrays import read_npy

# What all arrays that are kept in memory may take together.
BUDGET = 256 << 20
_in_memory: weakref.WeakSet[Kept] = weakref.WeakSet()


class Kept:
    """One array, in memory or in a temporary file; an OSError if there is room in neither."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.n_bytes = array.nbytes
        self._array: NDArray[Any] | None = None
        if self.n_bytes + sum(other.n_bytes for other in _in_memory) <= BUDGET:
            self._array = array
            _in_memory.add(self)
            return
        with tempfile.NamedTemporaryFile(prefix="dualt-", suffix=".npy", delete=False) as stream:
            self._path = Path(stream.name)
            weakref.finalize(self, self._path.unlink, missing_ok=True)
            np.save(stream, array, allow_pickle=False)

    def read(self) -> NDArray[Any]:
        """Return the array, memory-mapped if it is in a file."""
        return read_npy(self._path) if self._array is None else self._array
