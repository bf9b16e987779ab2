"""A folder of images with a class per folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dualt.datasets.dataset import Dataset, Labels, Samples
from dualt.datasets.images import LazyImages, Mode, image_size_and_mode
from dualt.errors import InputError
from dualt.io.image_folder import ClassFolder, read_class_folder

# Decode images up to this size at once and keep them in memory.
_IN_MEMORY_BYTES = 1 << 30


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
    train = read_class_folder(folder / "train" if divided else folder)
    has_test = divided and (folder / "test").is_dir()
    test = read_class_folder(folder / "test", train.names) if has_test else None
    paths, test_paths = _paths(train), [] if test is None else _paths(test)
    shape, mode = _common_format(paths + test_paths, size)
    return Dataset(
        folder.resolve().name,
        _decoded(paths, shape, mode, size),
        _codes(train, train.names),
        _decoded(test_paths, shape, mode, size) if test_paths else None,
        None if test is None else _codes(test, train.names),
        train.names,
        noisy,
        ids=tuple(path.relative_to(folder).as_posix() for path in paths),
    )


def load_images(paths: Sequence[Path], *, size: int | None = None) -> Samples:
    """Image files as one array, which decodes them on demand if they are many; `load_folder` describes `size`."""
    return _decoded(paths, *_common_format(paths, size), size)


def _decoded(paths: Sequence[Path], shape: tuple[int, int], mode: Mode, size: int | None) -> Samples:
    lazy = LazyImages(paths, shape, mode=mode, shorter_side=size)
    return lazy[:] if lazy.nbytes <= _IN_MEMORY_BYTES else lazy


def _paths(part: ClassFolder) -> list[Path]:
    return [part.folder / file for file in part.files]


def _codes(part: ClassFolder, names: tuple[str, ...]) -> Labels:
    return np.searchsorted(np.array(names), part.labels).astype(np.int64)


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
