"""`.npy` and `.npz` files: memory-mapped where possible, never unpickled, no allocation a file cannot back."""

from __future__ import annotations

import io
import math
import mmap
import os
import sys
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dualt.errors import FileError
from dualt.files import check_expansion, open_input

# No deflate stream shrinks its input by more than this.
MAX_DEFLATE_RATIO = 1032
# NumPy reads no header of more than 10,000 characters.
_HEADER_BYTES = 1 << 14
# What NumPy's parser of a header, which is a Python literal, and the zip reader raise on arbitrary bytes.
_DAMAGED = (
    ValueError, TypeError, KeyError, OSError, EOFError, SyntaxError, OverflowError, RuntimeError, MemoryError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_npy(path: str | Path) -> NDArray[Any]:
    """Return the array of a `.npy` file, memory-mapped read-only."""
    with _explaining(path, ".npy"), open_input(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            raise ValueError("the file is empty")
        header = _read_header(stream, str(path))
        if header.end > size:
            raise ValueError(f"its header promises {header.end:,} bytes, the file has {size:,}")
        if 0 in header.shape:
            return np.empty(header.shape, header.dtype)
        memory = mmap.mmap(stream.fileno(), header.end, access=mmap.ACCESS_READ)
        # A plain array: every slice of a np.memmap costs some microseconds.
        array: NDArray[Any] = np.ndarray(header.shape, header.dtype, memory, header.start, order=header.order)
        return _checked_texts(array)


@dataclass(frozen=True)
class Npz:
    """An open `.npz` file: the names of its arrays, each read when it is asked for."""

    path: Path
    names: tuple[str, ...]
    _archive: zipfile.ZipFile

    def read(self, name: str) -> NDArray[Any]:
        """Return one array, after its header has been compared with the bytes that are there."""
        entry = self._archive.getinfo(f"{name}.npy")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that NumPy does not write")
        with self._archive.open(entry) as stream:
            expected = _read_header(stream, f"{name} in {self.path}").end
        if entry.file_size != expected or expected > (entry.compress_size + 1) * MAX_DEFLATE_RATIO:
            raise ValueError(f"the header of {name} promises {expected:,} bytes, there are {entry.file_size:,}")
        if entry.compress_type == zipfile.ZIP_DEFLATED:
            check_expansion(expected, self.path)
        with self._archive.open(entry) as stream, _quiet():
            array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
        return _checked_texts(array)


def _checked_texts(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose texts, if it has any, are of characters that exist: Python fails on others, or worse."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        characters = np.ascontiguousarray(array).reshape(-1).view(array.dtype.str[0] + "u4")
        if characters.max() > sys.maxunicode:
            raise ValueError("it has characters that do not exist")
    return array


@contextmanager
def open_npz(path: str | Path) -> Iterator[Npz]:
    """Open an `.npz` file; whatever is wrong with it becomes a `FileError`."""
    with _explaining(path, ".npz"), open_input(path) as stream, zipfile.ZipFile(stream) as archive:
        yield Npz(Path(path), tuple(name.removesuffix(".npy") for name in archive.namelist()), archive)


def read_npz(path: str | Path, names: Sequence[str]) -> NDArray[Any]:
    """Return the array of an `.npz` file under the first of `names` it has, or its only array."""
    with open_npz(path) as archive:
        wanted = [name for name in names if name in archive.names] or (archive.names if len(archive.names) == 1 else [])
        if not wanted:
            raise FileError(
                f"Expected an array named {' or '.join(names)} in {path}, got {', '.join(archive.names) or 'none'}."
            )
        return archive.read(wanted[0])


@contextmanager
def _explaining(path: str | Path, kind: str) -> Iterator[None]:
    """Turn whatever reading damaged bytes raises into a `FileError` that names the file."""
    try:
        yield
    except FileError:
        raise
    except _DAMAGED as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise FileError(
            f"Cannot read {path} as {kind}: {reason}. It is cut short, damaged or of another kind."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out NumPy's advice to save again what Python 2 wrote, or what names its type in an old way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


class _Header(NamedTuple):
    """What the header of a `.npy` file promises, and where the numbers begin."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    start: int

    @property
    def end(self) -> int:
        """Where the numbers end."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def _read_header(stream: Any, where: str) -> _Header:
    """Return the header of a `.npy` file.

    In memory: a header claims a length of up to 4 GB, which a read from the file would allocate at once.
    """
    start = stream.read(_HEADER_BYTES)
    prefix = 10 if start[6:7] == b"\1" else 12
    header = _parse_header(start[: prefix + int.from_bytes(start[8:prefix], "little")])
    if header.dtype.hasobject:
        raise FileError(f"Refused {where}: it holds Python objects, never unpickled here. Save numbers or strings.")
    if any(length < 0 for length in header.shape):
        raise ValueError(f"its header promises the shape {header.shape}")
    return header


@lru_cache(maxsize=64)
def _parse_header(start: bytes) -> _Header:
    """Read a header, which is a Python literal and slow to parse; shards have the same one over and over."""
    stream = io.BytesIO(start)
    read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
    with _quiet():
        shape, by_columns, dtype = read(stream)
    return _Header(shape, dtype, "F" if by_columns else "C", stream.tell())
