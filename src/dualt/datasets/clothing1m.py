"""Clothing1M: a million photographs of clothes with labels from their web pages, 38 % of them wrong.

The authors' layout, below `ROOT/clothing1M`: key lists name the images of a part, one per line; label
files pair a key with its class; keys are paths like `images/0/00/name.jpg`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dualt.datasets.dataset import Dataset, Labels, Moments
from dualt.datasets.images import LazyImages
from dualt.datasets.root import data_root, inside, missing_data
from dualt.errors import FileError, UnknownNameError
from dualt.files import read_text

CLASS_NAMES = (
    "T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker", "Jacket", "Downcoat",
    "Suit", "Shawl", "Dress", "Vest", "Underwear",
)  # fmt: skip
PARTS = ("noisy_train", "clean_train", "clean_val", "clean_test")
_IMAGENET = Moments((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_SHORTER_SIDE, _CROP = 256, 224


def load_clothing1m(root: str | Path | None = None, *, train: str = "noisy_train", test: str = "clean_test") -> Dataset:
    """Clothes: a million web photographs in 14 classes with noisy labels, and 10,000 with clean ones to test.

    Images are decoded when indexed: the shorter side is resized to 256, the centre cropped to 224.

    Parameters
    ----------
    root
        Folder that holds `clothing1M`.
    train, test
        The authors' parts to train and to test on: `noisy_train`, `clean_train`, `clean_val` or `clean_test`.
    """
    folder = data_root(root) / "clothing1M"
    train_x, train_y = _load_part(folder, train)
    test_x, test_y = _load_part(folder, test)
    noisy = train.startswith("noisy")
    return Dataset("clothing1m", train_x, train_y, test_x, test_y, CLASS_NAMES, noisy, _IMAGENET)


def _load_part(folder: Path, part: str) -> tuple[LazyImages, Labels]:
    if part not in PARTS:
        raise UnknownNameError("part of clothing1m", part, PARTS)
    key_path, label_path = folder / f"{part}_key_list.txt", folder / f"{part.partition('_')[0]}_label_kv.txt"
    keys, label_of = _read_lines(key_path), _read_labels(label_path)
    if not keys:
        raise FileError(f"Expected one image per line in {key_path}, got none.")
    unlabelled = next((key for key in keys if key not in label_of), None)
    if unlabelled is not None:
        raise FileError(f"Expected a label in {label_path} for every key of {key_path}, got none for {unlabelled!r}.")
    images = LazyImages([inside(folder, key, key_path) for key in keys], (_CROP, _CROP), shorter_side=_SHORTER_SIDE)
    return images, np.array([label_of[key] for key in keys], np.int64)


def _read_lines(path: Path) -> list[str]:
    if not path.is_file():
        raise missing_data("clothing1m", path)
    return [line for line in read_text(path).splitlines() if line]


def _read_labels(path: Path) -> dict[str, int]:
    labels = {}
    for number, line in enumerate(_read_lines(path), start=1):
        key, _, label = line.rpartition(" ")
        if not key or not label.isdecimal() or len(label) > 2 or int(label) >= len(CLASS_NAMES):
            raise FileError(
                f"Expected a key and a class from 0 to {len(CLASS_NAMES) - 1} in line {number} of {path}, got {line!r}."
            )
        labels[key] = int(label)
    return labels
