"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dualt.errors import FileError


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; rename it to `path` if the block ends well, else remove it.

    The temporary name is drawn fresh and opened exclusively, so two writers never share one and no
    prepared link is followed. Errors of the file system become `FileError`.
    """
    path = Path(path)
    check_writable_target(path)
    temporary: str | None = None
    try:
        # A part of the name is enough: the whole may leave no room for more.
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.", suffix=".tmp")
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with os.fdopen(handle, mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def check_writable_target(path: str | Path) -> None:
    """Refuse an output path whose folder does not exist, or that is a folder or a device itself."""
    path = Path(path)
    try:
        if path.is_dir():
            raise FileError(f"Cannot write {path}: it is a folder. Name a file.")
        if not path.parent.is_dir():
            raise FileError(f"Cannot write {path}: the folder {path.parent} does not exist. Create it first.")
        if path.exists() and not path.is_file():
            raise FileError(f"Cannot write {path}: it is a device or a pipe. Name a file.")
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
