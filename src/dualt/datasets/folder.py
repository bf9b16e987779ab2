"""A folder of images with a class per folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dualt.datasets.dataset import Dataset, Labels, Samples
from dualt.datasets.images import LazyImages, Mode, image_size_and_mode
from dualt.errors import FileError, InputError
from dualt.files import natural_order

EXTENSIONS = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"})
# Images that take no more than this are decoded at once and stay in memory.
_IN_MEMORY_BYTES = 1 << 30


def load_folder(folder: str | Path, *, size: int | None = None, noisy: bool = False) -> Dataset:
    """Images in a folder per class, the classes in sorted order.

    Parameters
    ----------
    folder
        Holds the classes' folders, or `train/` and perhaps `test/` that hold them.
    size
        Resize the shorter side to this and crop the centre to a square. Needed where sizes differ.
    noisy
        The folders are labels that may be wrong, not the truth.
    """
    folder = Path(folder)
    divided = (folder / "train").is_dir()
    train_folder, test_folder = folder / "train" if divided else folder, folder / "test"
    class_names = tuple(child.name for child in _visible(train_folder) if child.is_dir())
    if len(class_names) < 2:
        raise FileError(
            f"Expected a folder per class, at least two, in {train_folder}, got {len(class_names)}."
            " Put the images of each class in a folder of its own."
        )
    train_paths, train_y = _list_images(train_folder, class_names)
    test_paths: list[Path] = []
    test_y = None
    if divided and test_folder.is_dir():
        test_paths, test_y = _list_images(test_folder, class_names)
    shape, mode = _common_format(train_paths + test_paths, size)

    def images(paths: list[Path]) -> Samples:
        lazy = LazyImages(paths, shape, mode=mode, shorter_side=size)
        return lazy[:] if lazy.nbytes <= _IN_MEMORY_BYTES else lazy

    test_x = images(test_paths) if test_paths else None
    return Dataset(folder.resolve().name, images(train_paths), train_y, test_x, test_y, class_names, noisy)


def _list_images(folder: Path, class_names: tuple[str, ...]) -> tuple[list[Path], Labels]:
    strange = next((c.name for c in _visible(folder) if c.is_dir() and c.name not in class_names), None)
    if strange is not None:
        raise FileError(f"Expected the classes of the training part in {folder}, got {strange!r} as well.")
    paths: list[Path] = []
    counts = []
    for name in class_names:
        found = [p for p in (folder / name).rglob("*") if p.suffix.lower() in EXTENSIONS and p.is_file()]
        paths += sorted(found, key=natural_order)
        counts.append(len(found))
    if not paths:
        raise FileError(f"Expected images ({', '.join(sorted(EXTENSIONS))}) in the folders of {folder}, got none.")
    return paths, np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def _visible(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if not child.name.startswith("."))


def _common_format(paths: list[Path], size: int | None) -> tuple[tuple[int, int], Mode]:
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
