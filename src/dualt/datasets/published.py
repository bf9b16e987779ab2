"""The published data sets, read from their original files.

MNIST and Fashion-MNIST are gzipped idx files: two zero bytes, a byte for the type (8: unsigned bytes), a byte for the
number of dimensions, each dimension as a big-endian 32-bit number, then the data. CIFAR is read from its binary
version: a record is the label (CIFAR-100: the coarse and the fine label) and 3,072 bytes, 32×32 pixels of red, green
and blue; a text file has the class names. Clothing1M has its authors' layout: key lists name the images of a part, one
per line; label files pair a key with its class; keys are paths like `images/0/00/name.jpg`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.dataset import Dataset, Labels
from dualt.datasets.images import LazyImages
from dualt.errors import FileError
from dualt.files import open_input, read_text
from dualt.rng import stream

_N_DIGITS_TEST = 360
_DIGITS = tuple("0123456789")
_FASHION_NAMES = (
    "t-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
# Class names; mean and standard deviation of pixels divided by 255, as in the literature.
_IDX = {"mnist": (_DIGITS, ([0.1307], [0.3081])), "fashion-mnist": (_FASHION_NAMES, ([0.2860], [0.3530]))}
# Files of the training part, of the test part and of the class names; mean and standard deviation as above.
_CIFAR = {
    "cifar10": (
        [f"data_batch_{number}.bin" for number in range(1, 6)], ["test_batch.bin"], "batches.meta.txt",
        ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    ),
    "cifar100": (
        ["train.bin"], ["test.bin"], "fine_label_names.txt",
        ([0.5071, 0.4865, 0.4409], [0.2673, 0.2564, 0.2762]),
    ),
}  # fmt: skip
_CLOTHING_NAMES = (
    "T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker", "Jacket", "Downcoat",
    "Suit", "Shawl", "Dress", "Vest", "Underwear",
)  # fmt: skip


@contextmanager
def _reading(name: str, path: Path) -> Iterator[Path]:
    """Name the data set, the file and the remedy if a file of the data set is missing or damaged."""
    first = f"delete {path.parent} and " if path.parent.is_dir() else ""
    remedy = f"To download it, {first}run 'dualt data get {name}'; or set DUALT_DATA to the folder that has it."
    if not path.is_file():
        raise FileError(f"The data set {name!r} is not here: expected {path}. {remedy}")
    try:
        yield path
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise FileError(f"Expected {path} as it was published, got a damaged file: {error}. {remedy}") from error


def _class_numbers(labels: NDArray[np.uint8], n_classes: int) -> Labels:
    if labels.max() >= n_classes:
        raise ValueError(f"it has labels up to {labels.max()}, not {n_classes - 1}")
    return labels.astype(np.int64)


def load_digits() -> Dataset:
    """Handwritten digits: 1,437 + 360 grey images of 8×8, from scikit-learn; nothing to download."""
    from sklearn import datasets

    digits = datasets.load_digits()
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)  # bytes, like all images
    labels = digits.target.astype(np.int64)
    # The same test part for every seed. Shuffled, because the last writers differ from the first.
    order = stream(0, "digits-test").permutation(len(labels))
    test, train = order[:_N_DIGITS_TEST], order[_N_DIGITS_TEST:]
    return Dataset("digits", images[train], labels[train], images[test], labels[test], _DIGITS)


def load_mnist(name: str, folder: Path) -> Dataset:
    """MNIST, handwritten digits, or Fashion-MNIST, clothes: 60,000 + 10,000 grey images of 28×28."""
    class_names, moments = _IDX[name]

    def read(part: str) -> tuple[NDArray[np.uint8], Labels]:
        with _reading(name, folder / f"{part}-images-idx3-ubyte.gz") as path:
            images = _read_idx(path, 3)
        with _reading(name, folder / f"{part}-labels-idx1-ubyte.gz") as path:
            labels = _class_numbers(_read_idx(path, 1), len(class_names))
            if len(images) != len(labels):
                raise ValueError(f"it has {len(labels):,} labels for {len(images):,} images")
        return images, labels

    return Dataset(name, *read("train"), *read("t10k"), class_names, published=255 * np.array(moments))


def _read_idx(path: Path, n_dimensions: int) -> NDArray[np.uint8]:
    """Read a gzipped idx file of unsigned bytes."""
    with open_input(path) as file, gzip.GzipFile(fileobj=file) as unpacked:
        content = bytearray(unpacked.read())
    shape: list[int] = np.frombuffer(content, ">u4", n_dimensions, offset=4).tolist()
    data: NDArray[np.uint8] = np.frombuffer(content, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)
    if content[:4] != bytes((0, 0, 8, n_dimensions)) or not data.size:
        raise ValueError(f"it begins with {content[:4].hex()} and has {data.size:,} bytes of data")
    return data


def load_cifar(name: str, folder: Path) -> Dataset:
    """CIFAR-10 and CIFAR-100, objects of 10 and 100 classes: 50,000 + 10,000 colour images of 32×32."""
    train, test, names, moments = _CIFAR[name]
    with _reading(name, folder / names) as path:
        class_names = tuple(read_text(path).split())
    label_bytes = 1 if name == "cifar10" else 2  # the last of them is the label

    def read(files: list[str]) -> tuple[NDArray[np.uint8], Labels]:
        images, labels = [], []
        for file in files:
            with _reading(name, folder / file) as path, open_input(path) as stream:
                records = np.frombuffer(stream.read(), np.uint8).reshape(-1, label_bytes + 3 * 32 * 32)
                labels.append(_class_numbers(records[:, label_bytes - 1], len(class_names)))
            images.append(records[:, label_bytes:])
        return np.concatenate(images).reshape(-1, 3, 32, 32), np.concatenate(labels)

    return Dataset(name, *read(train), *read(test), class_names, published=255 * np.array(moments))


def load_clothing1m(folder: Path) -> Dataset:
    """Clothes: a million web photographs in 14 classes with noisy labels (38 % wrong), and 10,000 with clean ones.

    Images are decoded when indexed: the shorter side is resized to 256, the centre cropped to 224.
    """
    moments = 255 * np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])  # of ImageNet
    parts = (*_read_clothing1m(folder, "noisy_train"), *_read_clothing1m(folder, "clean_test"))
    return Dataset("clothing1m", *parts, _CLOTHING_NAMES, noisy=True, published=moments)


def _read_clothing1m(folder: Path, part: str) -> tuple[LazyImages, Labels]:
    with _reading("clothing1m", folder / f"{part}_key_list.txt") as path:
        keys = [line for line in read_text(path).splitlines() if line]
    with _reading("clothing1m", folder / f"{part.partition('_')[0]}_label_kv.txt") as path:
        lines = (line.rpartition(" ") for line in read_text(path).splitlines())
        label_of, numbers = {key: label for key, _, label in lines}, {str(code): code for code in range(14)}
        for key in keys:
            if label_of.get(key) not in numbers:
                raise ValueError(f"{key!r} has {label_of.get(key, 'none')} instead of a class from 0 to 13")
    images = LazyImages([folder / key for key in keys], (224, 224), shorter_side=256)
    return images, np.array([numbers[label_of[key]] for key in keys], np.int64)
