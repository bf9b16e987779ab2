"""Users' own data sets: a folder of images with a folder per class, an `.npz` file, or a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dualt.datasets.dataset import Dataset, from_arrays
from dualt.datasets.images import LazyImages, load_images
from dualt.errors import FileError, InputError
from dualt.io.image_folder import read_class_folder
from dualt.io.load import open_npz
from dualt.io.table_columns import check_no_missing, open_table

_ARRAYS = ("X", "y", "X_test", "y_test", "class_names")


def load_folder(folder: str | Path, *, size: int | None = None, noisy: bool = False) -> Dataset:
    """Images in a folder per class, the classes in sorted order; or `train/` and optionally `test/` that have these.

    `size`: resize the shorter side to this and crop the centre to a square. Needed where sizes differ.
    """
    folder = Path(folder)
    divided = (folder / "train").is_dir()
    parts = [read_class_folder(folder / "train" if divided else folder)]
    names = parts[0].names
    if divided and (folder / "test").is_dir():
        parts.append(read_class_folder(folder / "test", names))
    paths = [part.folder / file for part in parts for file in part.files]
    images, n_train = load_images(paths, size), len(parts[0].files)
    take = images.subset if isinstance(images, LazyImages) else images.__getitem__
    codes = [np.searchsorted(np.array(names), part.labels).astype(np.int64) for part in parts]
    test_x, test_y = (take(slice(n_train, None)), codes[1]) if len(parts) > 1 else (None, None)
    ids = tuple(path.relative_to(folder).as_posix() for path in paths[:n_train])
    return Dataset(folder.resolve().name, take(slice(n_train)), codes[0], test_x, test_y, names, noisy, ids=ids)


def load_npz(path: str | Path, *, noisy: bool = False) -> Dataset:
    """Arrays `X`, `y` and, where given, `X_test`, `y_test` and `class_names` of an `.npz` file."""
    with open_npz(path) as archive:
        if not {"X", "y"} <= set(archive):
            raise FileError(
                f"Expected arrays named X and y in {path}, got {', '.join(sorted(archive)) or 'none'}."
                " Write it with np.savez(path, X=..., y=...)."
            )
        x, y, x_test, y_test, names = (archive.get(name) for name in _ARRAYS)
    class_names = None if names is None else names.tolist()
    return from_arrays(x, y, x_test, y_test, name=Path(path).stem, class_names=class_names, noisy=noisy)


def load_table(path: str | Path, *, label: str = "label", id_column: str | None = None, noisy: bool = False) -> Dataset:
    """Rows of a table: the column `label` holds the labels, every other column but that of ids is a feature."""
    table = open_table(path, label)
    apart = {table.position(name) for name in (label, id_column) if name is not None}
    features = [place for place in range(table.n_columns) if place not in apart]
    if not features:
        raise InputError(f"Expected columns of numbers beside {label!r} in {path}, got none.")
    x, y = table.read_numbers(features), table.read_column(table.position(label))
    dataset = from_arrays(x, check_no_missing(y, Path(path)), name=Path(path).stem, noisy=noisy)
    return replace(
        dataset,
        ids=None if id_column is None else tuple(table.read_texts(table.position(id_column))),
        feature_names=None if table.names is None else tuple(table.names[place] for place in features),
    )
