"""Where data sets live on disk, and what to say when one does not."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError

ROOT_VARIABLE = "DUALT_DATA"


def data_root(root: str | Path | None = None) -> Path:
    """Return the folder of the data sets: `root`, else `$DUALT_DATA`, else `~/.cache/dualt`."""
    chosen = root or os.environ.get(ROOT_VARIABLE) or Path("~/.cache/dualt")
    return Path(chosen).expanduser()


def missing_data(name: str, path: Path) -> FileError:
    """Return the error that says what is missing and how to get it."""
    again = " --force" if path.parent.is_dir() else ""
    return FileError(
        f"The data set {name!r} is not here: expected {path}."
        f" Run 'dualt data get {name}{again}', put the files there, or name their root with --data-dir"
        f" or {ROOT_VARIABLE}."
    )


def as_class_numbers(labels: NDArray[np.uint8], n_classes: int, path: Path) -> NDArray[np.int64]:
    """Return the labels of a file, refusing one that is no class."""
    if labels.max() >= n_classes:
        raise FileError(f"Expected labels from 0 to {n_classes - 1} in {path}, got {labels.max()}.")
    return labels.astype(np.int64)


def inside(root: Path, name: str, source: Path) -> Path:
    """Return `root / name`, refusing a name that leads out of `root`; `source` is the file that says it."""
    relative = PurePosixPath(name)
    if not name or relative.is_absolute() or ".." in relative.parts or any(c in name for c in "\\:\0"):
        raise FileError(
            f"Refused {source}: expected paths inside its own folder, got {name!r}."
            " The file is damaged or hostile; get it again from its publisher."
        )
    return root / relative
