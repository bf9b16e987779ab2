"""Which file of a folder belongs to which row: by name, because the order of files tells nothing of the labels'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dualt.errors import FileError, InputError
from dualt.io.image_folder import match_names, natural_order, visible

_REMEDY = (
    "Name the rows by their files (ids), name the files by their row numbers (0.png, 1.png, ...), or pass the images"
    " as one array."
)


def match_files(
    folder: Path, n_samples: int, ids: Sequence[Any] | None = None, labels: Sequence[str] | None = None
) -> Mapping[int, Path]:
    """Return the file of each row.

    With `ids`, a row's file is the one whose path inside the folder, whose name or whose stem is its id; other files
    are left alone. Without, the files must be named by the row numbers 0 to n - 1, or be in a folder per class such
    that the sorted classes, and the sorted files in each, have the given `labels` in their order.

    Raises
    ------
    InputError
        If a row has no file or several, or if no name tells which row a file belongs to.
    FileError
        If the folder cannot be read.
    """
    files = _files(folder)
    if ids is not None:
        inside = [file.relative_to(folder).as_posix() for file in files]
        return {row: files[place] for row, place in enumerate(match_names(folder, inside, list(map(str, ids))))}
    if len(files) != n_samples:
        raise InputError(
            f"Expected {n_samples:,} image files in {folder}, one per label, got {len(files):,}. {_REMEDY}"
        )
    by_number = {int(file.stem): file for file in files if file.stem.isascii() and file.stem.isdigit()}
    if by_number.keys() == set(range(n_samples)):
        return by_number
    classes = [file.relative_to(folder).parts[0] for file in files if file.parent != folder]
    if labels is not None and classes == list(labels):
        return dict(enumerate(files))
    if len(classes) == n_samples:
        raise InputError(
            f"Expected the class folders of {folder} as labels, in sorted order, got other labels or another order."
            f" {_REMEDY}"
        )
    raise InputError(f"Expected files in {folder} whose names tell their rows, got {files[0].name!r}. {_REMEDY}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the file system into `FileError`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error


def _files(folder: Path) -> list[Path]:
    """Return the files in a folder, sorted; those in folders inside it class by class."""
    files: list[Path] = []
    with reading(folder):
        for child in visible(folder):
            inside = (file for file in child.rglob("*") if file.is_file() and not file.name.startswith("."))
            files += sorted(inside, key=natural_order) if child.is_dir() else [child]
    if not files:
        raise InputError(f"Expected image files in {folder}, got none.")
    return files
