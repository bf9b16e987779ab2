"""CIFAR-10 and CIFAR-100, in the binary version or as Python batches.

A binary record is the label (CIFAR-100: the coarse and the fine label) followed by 3,072 bytes: 32×32
pixels of red, of green, of blue. A Python batch is a pickled dict of the same bytes and a list of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.dataset import Dataset, Labels, Moments
from dualt.datasets.pickled import read_pickle
from dualt.datasets.root import as_class_numbers, data_root, missing_data
from dualt.errors import FileError
from dualt.files import open_input

_IMAGE_BYTES = 3 * 32 * 32


class _Layout(NamedTuple):
    """Where a version keeps its parts; `label` is the name (Python) or the number of label bytes (binary)."""

    folder: str
    train: tuple[str, ...]
    test: str
    label: str | int


_CIFAR10 = (
    _Layout("cifar-10-batches-bin", tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin", 1),
    _Layout("cifar-10-batches-py", tuple(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "labels"),
)
_CIFAR100 = (
    _Layout("cifar-100-binary", ("train.bin",), "test.bin", 2),
    _Layout("cifar-100-python", ("train",), "test", "fine_labels"),
)
_CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CIFAR100_NAMES = tuple(
    """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
    camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
    dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
    leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
    otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
    road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
    sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm""".split()  # noqa: SIM905
)


def load_cifar10(root: str | Path | None = None) -> Dataset:
    """Objects of 10 classes: 50,000 + 10,000 colour images of 32×32, from `ROOT/cifar-10-batches-*`."""
    moments = Moments((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    return _load("cifar10", data_root(root), _CIFAR10, _CIFAR10_NAMES, moments)


def load_cifar100(root: str | Path | None = None) -> Dataset:
    """Objects of 100 classes: 50,000 + 10,000 colour images of 32×32, from `ROOT/cifar-100-*`."""
    moments = Moments((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
    return _load("cifar100", data_root(root), _CIFAR100, _CIFAR100_NAMES, moments)


def _load(
    name: str, root: Path, layouts: tuple[_Layout, ...], class_names: tuple[str, ...], moments: Moments
) -> Dataset:
    layout = next((layout for layout in layouts if (root / layout.folder).is_dir()), layouts[0])
    folder, n_classes = root / layout.folder, len(class_names)
    train_x, train_y = _read_part(name, [folder / file for file in layout.train], layout.label, n_classes)
    test_x, test_y = _read_part(name, [folder / layout.test], layout.label, n_classes)
    return Dataset(name, train_x, train_y, test_x, test_y, class_names, published=moments)


def _read_part(name: str, paths: Sequence[Path], label: str | int, n_classes: int) -> tuple[NDArray[np.uint8], Labels]:
    images, labels = [], []
    for path in paths:
        if not path.is_file():
            raise missing_data(name, path)
        batch, given = _read_binary(path, label) if isinstance(label, int) else _read_python(path, label)
        images.append(batch)
        labels.append(as_class_numbers(given, n_classes, path))
    return np.concatenate(images).reshape(-1, 3, 32, 32), np.concatenate(labels)


def _read_binary(path: Path, label_bytes: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    with open_input(path) as stream:
        content = np.fromfile(stream, np.uint8)
    record, size = label_bytes + _IMAGE_BYTES, content.size
    if size == 0 or size % record:
        raise FileError(
            f"Expected records of {record:,} bytes in {path}, got {size:,} bytes, which is"
            f" {size // record:,} records and {size % record:,} bytes. It is cut short: get it again."
        )
    table = content.reshape(-1, record)
    return table[:, label_bytes:], table[:, label_bytes - 1]


def _read_python(path: Path, label: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    batch = read_pickle(path)
    images, labels = (batch.get("data"), batch.get(label)) if isinstance(batch, dict) else (None, None)
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[1:] != (_IMAGE_BYTES,):
        raise FileError(f"Expected 'data', an array of bytes of shape (n, {_IMAGE_BYTES}), in {path}, got none.")
    if (
        not isinstance(labels, list)
        or not 0 < len(labels) == len(images)
        or not all(type(number) is int and 0 <= number < 256 for number in labels)
    ):
        raise FileError(f"Expected {label!r}, a list of {len(images):,} class numbers, in {path}, got none.")
    return images, np.array(labels, np.uint8)
