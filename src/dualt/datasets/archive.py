"""Unpack an archive that nobody vouches for: files and folders only, inside one folder, of bounded size."""

from __future__ import annotations

import struct
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dualt.datasets.root import inside
from dualt.errors import FileError
from dualt.files import open_input

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")
_MAX_BYTES = 4 << 30
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
# What the reader of archives raises on arbitrary bytes.
_DAMAGED = (
    OSError, EOFError, ValueError, IndexError, OverflowError, RuntimeError, struct.error, tarfile.TarError, zlib.error,
)  # fmt: skip


def extract(archive: Path, folder: Path, *, max_bytes: int = _MAX_BYTES) -> None:
    """Unpack a tar archive, gzipped or not, into the empty `folder`.

    Links, devices, paths that lead out, names that occur twice and more than `max_bytes` are refused.
    Since no link is ever made, no later file can be written through one.
    """
    left = max_bytes
    try:
        for name, content in _members(archive):
            target = inside(folder, name, archive)
            target.parent.mkdir(parents=True, exist_ok=True)
            with content, target.open("xb") as file:
                while block := content.read(_BLOCK):
                    left -= len(block)
                    if left < 0:
                        raise FileError(f"Refused {archive}: expected at most {max_bytes:,} bytes of files, got more.")
                    file.write(block)
    except _DAMAGED as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot unpack {archive}: {error}. It is damaged, or the disk is full.") from error


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with open_input(archive) as stream:
        zipped = stream.read(2) == _GZIP
        stream.seek(0)
        # Left to guess, it would try bzip2 and xz as well, whose headers can claim gigabytes.
        with tarfile.open(fileobj=stream, mode="r:gz" if zipped else "r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member.name, content
                elif not member.isdir():
                    raise FileError(
                        f"Refused {archive}: expected files and folders only, got the link or device {member.name!r}."
                    )
