"""A data set in one `.npz` file: X, y and, if there is a test part, X_test, y_test."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from dualt.datasets.arrays import from_arrays
from dualt.datasets.dataset import Dataset
from dualt.datasets.idx import MAX_DEFLATE_RATIO
from dualt.errors import FileError

_REQUIRED, _OPTIONAL = ("X", "y"), ("X_test", "y_test", "class_names")


def load_npz(path: str | Path, *, noisy: bool = False) -> Dataset:
    """Arrays `X`, `y` and, where given, `X_test`, `y_test` and `class_names` of an `.npz` file."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            stored = {name.removesuffix(".npy") for name in archive.namelist()}
            for name in _REQUIRED:
                if name not in stored:
                    raise FileError(
                        f"Expected arrays named X and y in {path}, got {', '.join(sorted(stored)) or 'none'}."
                        " Write it with np.savez(path, X=..., y=...)."
                    )
            found = {name: _read(archive, name, path) for name in (*_REQUIRED, *_OPTIONAL) if name in stored}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}. Expected a whole .npz file.") from error
    names = found.get("class_names")
    return from_arrays(
        found["X"], found["y"], found.get("X_test"), found.get("y_test"),
        name=path.stem, class_names=names if names is None else names.tolist(), noisy=noisy,
    )  # fmt: skip


def _read(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    """Read one array, after its header has been compared with the bytes that are there."""
    entry = archive.getinfo(f"{name}.npy")
    with archive.open(entry) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        expected = math.prod(shape) * dtype.itemsize + stream.tell()
    if dtype.hasobject:
        raise FileError(f"Refused {name} in {path}: expected numbers or strings, got Python objects.")
    if entry.file_size != expected or expected > (entry.compress_size + 1) * MAX_DEFLATE_RATIO:
        raise FileError(
            f"Expected {expected:,} bytes for {name} in {path}, as its header says, got"
            f" {entry.file_size:,} ({entry.compress_size:,} as stored). It is cut short or damaged."
        )
    with archive.open(entry) as stream:
        return npy.read_array(stream, allow_pickle=False)
