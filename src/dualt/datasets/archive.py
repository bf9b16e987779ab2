"""Unpack an archive that nobody vouches for: files and folders only, inside one folder, of bounded size."""

from __future__ import annotations

import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dualt.datasets.root import inside
from dualt.errors import FileError

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
_MAX_BYTES = 4 << 30
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
# What the readers of archives raise on arbitrary bytes.
_DAMAGED = (
    OSError, EOFError, ValueError, IndexError, OverflowError, RuntimeError, struct.error, tarfile.TarError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def is_archive(name: str) -> bool:
    """Tell by its name whether a file is an archive that `extract` unpacks."""
    return name.endswith(ARCHIVE_SUFFIXES)


def extract(archive: Path, folder: Path, *, max_bytes: int = _MAX_BYTES) -> None:
    """Unpack a tar or zip archive into the empty `folder`.

    Links, devices, paths that lead out, names that occur twice and more than `max_bytes` are refused.
    Since no link is ever made, no later file can be written through one.
    """
    left = max_bytes
    members = _zip_members if archive.name.endswith(".zip") else _tar_members
    try:
        for name, content in members(archive):
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


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with archive.open("rb") as stream:
        zipped = stream.read(2) == _GZIP
    # Left to guess, it would try bzip2 and xz as well, whose headers can claim gigabytes.
    with tarfile.open(archive, "r:gz" if zipped else "r:") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content
            elif not member.isdir():
                raise _refused(archive, member.name)


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(archive, member.filename)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FileError(
                    f"Refused {archive}: expected files that are deflated, got {member.filename!r} as another kind."
                )
            if not member.is_dir():
                yield member.filename, zipped.open(member)


def _refused(archive: Path, name: str) -> FileError:
    return FileError(f"Refused {archive}: expected files and folders only, got the link or device {name!r}.")
