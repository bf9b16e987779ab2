"""Users' own data sets: a folder of images with a folder per class, an `.npz` file, or a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dualt.datasets.dataset import Dataset, Samples, from_arrays
from dualt.datasets.images import LazyImages, Mode, image_size_and_mode, opened_image
from dualt.errors import FileError, InputError
from dualt.io.image_folder import read_class_folder
from dualt.io.load import open_npz
from dualt.io.table_columns import check_no_missing, open_table

# Decode images up to this size at once and keep them in memory.
_IN_MEMORY_BYTES = 1 << 30
# Images of one size up to this are used as they are; others are resized to this many pixels a side.
_LARGEST_SIDE, _USUAL_SIDE = 48, 32
_ARRAYS = ("X", "y", "X_test", "y_test", "class_names")


def load_folder(folder: str | Path, *, size: int | None = None, noisy: bool = False) -> Dataset:
    """Images in a folder per class, the classes in sorted order.

    Parameters
    ----------
    folder
        Has one folder per class, or `train/` and optionally `test/` that have.
    size
        Resize the shorter side to this and crop the centre to a square. Needed where sizes differ.
    noisy
        The labels may be wrong.
    """
    folder = Path(folder)
    divided = (folder / "train").is_dir()
    parts = [read_class_folder(folder / "train" if divided else folder)]
    names = parts[0].names
    if divided and (folder / "test").is_dir():
        parts.append(read_class_folder(folder / "test", names))
    paths = [[part.folder / file for file in part.files] for part in parts]
    common = _common_format([path for own in paths for path in own], size)
    samples = [_decoded(own, *common, size) for own in paths]
    codes = [np.searchsorted(np.array(names), part.labels).astype(np.int64) for part in parts]
    test_x, test_y = (samples[1], codes[1]) if len(parts) > 1 else (None, None)
    ids = tuple(path.relative_to(folder).as_posix() for path in paths[0])
    return Dataset(folder.resolve().name, samples[0], codes[0], test_x, test_y, names, noisy, ids=ids)


def load_readable(paths: Sequence[Path]) -> tuple[Sequence[Path], Samples]:
    """Return the files that can be read, and their images as one array: as they are if small and of one size."""
    try:
        return paths, _load_small(paths)
    except FileError:
        readable = [path for path in paths if _is_readable(path)]
        if not readable:
            raise
        return readable, _load_small(readable)


def _load_small(paths: Sequence[Path]) -> Samples:
    sizes = {image_size_and_mode(path)[0] for path in paths}
    size = None if len(sizes) == 1 and max(*sizes.pop()) <= _LARGEST_SIDE else _USUAL_SIDE
    return _decoded(paths, *_common_format(paths, size), size)


def _is_readable(path: Path) -> bool:
    try:
        with opened_image(path) as image:
            image.load()
    except FileError:
        return False
    return True


def _decoded(paths: Sequence[Path], shape: tuple[int, int], mode: Mode, size: int | None) -> Samples:
    lazy = LazyImages(paths, shape, mode=mode, shorter_side=size)
    return lazy[:] if lazy.nbytes <= _IN_MEMORY_BYTES else lazy


def _common_format(paths: Sequence[Path], size: int | None) -> tuple[tuple[int, int], Mode]:
    """Return the size of every image and whether they are all grey."""
    if size is not None and size < 1:
        raise InputError(f"Expected a size of at least one pixel, got {size}.")
    shape, mode = image_size_and_mode(paths[0])
    for path in paths:
        this_shape, this_mode = image_size_and_mode(path)
        if size is None and this_shape != shape:
            raise InputError(
                f"Expected images of one size, got {shape[1]}×{shape[0]} in {paths[0]} and"
                f" {this_shape[1]}×{this_shape[0]} in {path}. Pass a size to resize them to."
            )
        mode = "RGB" if this_mode == "RGB" else mode
    return (shape if size is None else (size, size)), mode


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
    """Rows of a table: the column `label` holds the labels, every other column but that of ids is a feature.

    Parameters
    ----------
    path
        `.csv` or `.tsv` with a header, or `.parquet` (needs the extra [tables]).
    label
        Name of the label column.
    id_column
        Name of the id column, if there is one.
    noisy
        The labels may be wrong.
    """
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
