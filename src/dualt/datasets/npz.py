"""A data set in one `.npz` file: X, y and, if there is a test part, X_test, y_test."""

from __future__ import annotations

from pathlib import Path

from dualt.datasets.arrays import from_arrays
from dualt.datasets.dataset import Dataset
from dualt.errors import FileError
from dualt.io.arrays import open_npz

_REQUIRED, _OPTIONAL = ("X", "y"), ("X_test", "y_test", "class_names")


def load_npz(path: str | Path, *, noisy: bool = False) -> Dataset:
    """Arrays `X`, `y` and, where given, `X_test`, `y_test` and `class_names` of an `.npz` file."""
    with open_npz(path) as archive:
        for name in _REQUIRED:
            if name not in archive.names:
                raise FileError(
                    f"Expected arrays named X and y in {path}, got {', '.join(sorted(archive.names)) or 'none'}."
                    " Write it with np.savez(path, X=..., y=...)."
                )
        found = {name: archive.read(name) for name in (*_REQUIRED, *_OPTIONAL) if name in archive.names}
    names = found.get("class_names")
    return from_arrays(
        found["X"], found["y"], found.get("X_test"), found.get("y_test"),
        name=Path(path).stem, class_names=names if names is None else names.tolist(), noisy=noisy,
    )  # fmt: skip
