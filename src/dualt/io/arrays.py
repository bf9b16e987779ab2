"""`.npy` and `.npz` files: memory-mapped where possible, never unpickled, no allocation a file cannot back."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dualt.errors import FileError

# No deflate stream shrinks its input by more than this.
_MAX_DEFLATE_RATIO = 1032


def read_npy(path: str | Path) -> NDArray[Any]:
    """Return the array of a `.npy` file, memory-mapped read-only."""
    path = check_readable(path)
    try:
        if path.stat().st_size == 0:
            raise ValueError("the file is empty")
        with path.open("rb") as stream:
            shape, dtype = _read_header(stream)
            expected = math.prod(shape) * dtype.itemsize + stream.tell()
        if expected > path.stat().st_size:
            raise ValueError(f"its header promises {expected:,} bytes, the file has {path.stat().st_size:,}")
        if 0 in shape:
            return np.empty(shape, dtype)
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read {path} as .npy: {error}. It is cut short, damaged or of another kind.") from error
    return array


def read_npz(path: str | Path, names: Sequence[str]) -> NDArray[Any]:
    """Return the array of an `.npz` file under the first of `names` it has, or its only array."""
    path = check_readable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            stored = [name.removesuffix(".npy") for name in archive.namelist()]
            wanted = [name for name in names if name in stored] or (stored if len(stored) == 1 else [])
            if not wanted:
                raise FileError(
                    f"Expected an array named {' or '.join(names)} in {path}, got {', '.join(stored) or 'none'}."
                )
            return read_member(archive, f"{wanted[0]}.npy", path)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OSError, EOFError, NotImplementedError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as .npz: {error}. It is cut short, damaged or of another kind.") from error


def read_member(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    """Return one array of an open `.npz`, after its header has been compared with the bytes that are there."""
    entry = archive.getinfo(name)
    with archive.open(entry) as stream:
        shape, dtype = _read_header(stream)
        expected = math.prod(shape) * dtype.itemsize + stream.tell()
    if entry.file_size != expected or expected > (entry.compress_size + 1) * _MAX_DEFLATE_RATIO:
        raise FileError(f"Expected {expected:,} bytes for {name} in {path}, got {entry.file_size:,}: it is damaged.")
    with archive.open(entry) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array


def _read_header(stream: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise FileError("it holds Python objects, which would have to be unpickled; save numbers or strings instead")
    return shape, dtype


def check_readable(path: str | Path) -> Path:
    """Return `path` if it names a file."""
    path = Path(path)
    if path.is_dir():
        raise FileError(f"Expected a file, got the folder {path}.")
    if not path.exists():
        raise FileError(f"No such file: {path}.")
    return path
