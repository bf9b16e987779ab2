"""MNIST and Fashion-MNIST in their original format, idx, gzipped or not.

An idx file is: two zero bytes, a byte for the type (8: unsigned bytes), a byte for the number of
dimensions, each dimension as a big-endian 32-bit number, then the bytes themselves.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.dataset import Dataset, Labels, Moments
from dualt.datasets.root import as_class_numbers, data_root, missing_data
from dualt.errors import FileError
from dualt.files import check_expansion, open_input
from dualt.io.arrays import MAX_DEFLATE_RATIO

_UNSIGNED_BYTES = 8

_FASHION_NAMES = (
    "t-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


def load_mnist(root: str | Path | None = None) -> Dataset:
    """Handwritten digits: 60,000 + 10,000 grey images of 28×28, from `ROOT/MNIST/raw`."""
    return _load("mnist", data_root(root) / "MNIST" / "raw", tuple("0123456789"), Moments((0.1307,), (0.3081,)))


def load_fashion_mnist(root: str | Path | None = None) -> Dataset:
    """Clothes: 60,000 + 10,000 grey images of 28×28, from `ROOT/FashionMNIST/raw`."""
    folder = data_root(root) / "FashionMNIST" / "raw"
    return _load("fashion-mnist", folder, _FASHION_NAMES, Moments((0.2860,), (0.3530,)))


def _load(name: str, folder: Path, class_names: tuple[str, ...], moments: Moments) -> Dataset:
    train_x, train_y = _load_part(name, folder, "train", len(class_names))
    test_x, test_y = _load_part(name, folder, "t10k", len(class_names))
    return Dataset(name, train_x, train_y, test_x, test_y, class_names, published=moments)


def _load_part(name: str, folder: Path, part: str, n_classes: int) -> tuple[NDArray[np.uint8], Labels]:
    images_path = _find(name, folder / f"{part}-images-idx3-ubyte")
    labels_path = _find(name, folder / f"{part}-labels-idx1-ubyte")
    images, labels = read_idx(images_path, n_dimensions=3), read_idx(labels_path, n_dimensions=1)
    if len(images) != len(labels):
        raise FileError(
            f"Expected as many labels as images, got {len(images):,} in {images_path} and {len(labels):,}"
            f" in {labels_path}."
        )
    return images, as_class_numbers(labels, n_classes, labels_path)


def _find(name: str, path: Path) -> Path:
    compressed = path.with_name(f"{path.name}.gz")
    found = next((candidate for candidate in (path, compressed) if candidate.is_file()), None)
    if found is None:
        raise missing_data(name, compressed)
    return found


def read_idx(path: Path, n_dimensions: int) -> NDArray[np.uint8]:
    """Read an idx file of unsigned bytes, gzipped if its name ends in `.gz`.

    The sizes in the header are compared with the size of the file before anything is allocated.
    """
    compressed = path.suffix == ".gz"
    try:
        with open_input(path) as file, gzip.GzipFile(fileobj=file) if compressed else file as stream:
            shape = _read_header(stream, path, n_dimensions)
            expected, size = math.prod(shape), os.fstat(file.fileno()).st_size
            if expected > (size * MAX_DEFLATE_RATIO if compressed else size):
                raise FileError(
                    f"Expected {expected:,} bytes of data in {path}, as its header says, but the file has"
                    f" only {size:,} bytes{' compressed' if compressed else ''}. Get it again."
                )
            if compressed:
                check_expansion(expected, path)
            data = np.frombuffer(bytearray(stream.read(expected + 1)), np.uint8)
            if data.size != expected:
                what = "there is more" if data.size > expected else f"it ends after {data.size:,}: it is cut short"
                raise FileError(
                    f"Expected {expected:,} bytes of data in {path}, as its header says, but {what}. Get it again."
                )
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error}. It is cut short or damaged: get it again.") from error
    return data.reshape(shape)


def _read_header(stream: Any, path: Path, n_dimensions: int) -> tuple[int, ...]:
    expected = bytes((0, 0, _UNSIGNED_BYTES, n_dimensions))
    magic = stream.read(4)
    if magic != expected:
        raise FileError(f"Expected an idx file, beginning {expected.hex()}, in {path}, got {magic.hex() or 'nothing'}.")
    sizes = stream.read(4 * n_dimensions)
    if len(sizes) < 4 * n_dimensions:
        raise FileError(f"Expected {n_dimensions} sizes in the header of {path}, but the file ends there.")
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    if 0 in shape:
        raise FileError(f"Expected samples in {path}, got the shape {shape}.")
    return shape
