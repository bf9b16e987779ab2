"""MNIST, CIFAR and Clothing1M are read as they were written, and damaged files are refused by name."""

import gzip
import struct

import numpy as np
import pytest

from dualt.datasets import LazyImages, load_dataset, split_dataset
from dualt.datasets.images import take_rows
from dualt.errors import FileError, InputError
from tests.paper_data import idx_bytes, write_cifar10, write_cifar100, write_clothing1m, write_mnist


@pytest.fixture(autouse=True)
def root(monkeypatch, tmp_path):
    monkeypatch.setenv("DUALT_DATA", str(tmp_path))


def assert_parts(data, train_x, train_y, test_x, test_y):
    expected = (train_x, train_y, test_x, test_y)
    for got, array in zip((data.train_x, data.train_y, data.test_x, data.test_y), expected, strict=True):
        np.testing.assert_array_equal(got, array)
    assert (data.train_x.dtype, data.train_y.dtype) == (np.uint8, np.int64)
    assert len(set(data.class_names)) == data.n_classes


@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_idx(tmp_path, name, folder):
    arrays = write_mnist(tmp_path, folder)
    assert_parts(load_dataset(name), *arrays)


GOOD = idx_bytes(np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x00\x08\x01" + GOOD[4:],
        GOOD[:9],
        GOOD[:-1],
        GOOD + b"\x00",
        idx_bytes(np.zeros((0, 3, 4))),
        bytes([0, 0, 8, 3]) + struct.pack(">III", *[10**4] * 3) + bytes(84),
    ],
)
def test_bad_idx_files_are_refused_by_name(tmp_path, content):
    write_mnist(tmp_path)
    for packed in (gzip.compress(content), gzip.compress(GOOD)[:-12], GOOD):
        (tmp_path / "MNIST/raw/train-images-idx3-ubyte.gz").write_bytes(packed)
        with pytest.raises(FileError, match=r"train-images.*, got a damaged file.* run 'dualt data get mnist'"):
            load_dataset("mnist")


def test_labels_must_match_images(tmp_path):
    write_mnist(tmp_path)
    path = tmp_path / "MNIST/raw/train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.zeros(5))))
    with pytest.raises(FileError, match=r"train-labels.*5 labels for 120 images"):
        load_dataset("mnist")
    path.write_bytes(gzip.compress(idx_bytes(np.full(120, 10))))
    with pytest.raises(FileError, match=r"train-labels.*labels up to 10, not 9"):
        load_dataset("mnist")


def test_cifar(tmp_path):
    *train, test = write_cifar10(tmp_path)
    data = load_dataset("cifar10")
    assert_parts(data, *map(np.concatenate, zip(*train, strict=True)), *test)
    assert data.class_names[6] == "class_6"
    train, test = write_cifar100(tmp_path)
    assert_parts(load_dataset("cifar100"), *train, *test)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bytes(3 * 3073 - 5), r"data_batch_3\.bin.*9214.*delete"),
        (b"", r"data_batch_3\.bin"),
        (bytes([10]) + bytes(3072), r"data_batch_3\.bin.*labels up to 10, not 9"),
    ],
)
def test_bad_cifar_files_are_refused(tmp_path, content, message):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin/data_batch_3.bin").write_bytes(content)
    with pytest.raises(FileError, match=message):
        load_dataset("cifar10")


def test_clothing1m_is_decoded_when_indexed(tmp_path):
    write_clothing1m(tmp_path)
    data = load_dataset("clothing1m")
    assert (data.noisy, data.n_classes) == (True, 14)
    assert (data.train_y.tolist(), data.test_y.tolist()) == ([*range(14)] * 2, [*range(6)])
    images = data.train_x
    assert isinstance(images, LazyImages)
    everything = images[:]
    assert (everything.shape, everything.dtype) == (images.shape, np.uint8) == ((28, 3, 224, 224), np.uint8)
    # 300×100 becomes 768×256; the central 224 columns are within the green third (256 to 512).
    for number, image in enumerate(everything):
        np.testing.assert_array_equal(image[1], 100 + number)
        np.testing.assert_array_equal(image[[0, 2]], 0)
    for rows in (slice(1, 5, 2), np.array([5, 0, 0]), [2], np.arange(28) > 3, slice(0, 0)):
        np.testing.assert_array_equal(images[rows], everything[rows])
    np.testing.assert_array_equal(images.subset([4, 2])[:], everything[[4, 2]])


def test_a_split_of_clothing1m_decodes_nothing_and_has_no_clean_labels(tmp_path):
    folder = write_clothing1m(tmp_path)
    data = load_dataset("clothing1m")
    for path in folder.glob("images/**/*.png"):
        path.unlink()
    split = split_dataset(data)
    assert len(take_rows(data.train_x, split.train_index)) + len(split.val_index) == 28
    assert split.clean_labels is None
    with pytest.raises(FileError, match=r"Cannot read the image .*noisy_train"):
        data.train_x[:1]
    with pytest.raises(InputError, match="noisy already"):
        split_dataset(data, np.eye(14))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "noisy_label_kv.txt",
            "images/0/00/noisy_train,0.png 14\n",
            "'images/0/00/noisy_train,0.png' has 14 instead of a class from 0 to 13",
        ),
        ("noisy_label_kv.txt", "images/a.jpg 1\n", "'images/0/00/noisy_train,0.png' has none"),
        ("noisy_train_key_list.txt", b"\xff\xfe\x00", "Cannot read"),
    ],
)
def test_bad_lists_are_refused(tmp_path, file, content, message):
    folder = write_clothing1m(tmp_path)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError, match=message):
        load_dataset("clothing1m")


@pytest.mark.parametrize(
    ("name", "write", "file"),
    [
        ("mnist", write_mnist, "MNIST/raw/t10k-labels-idx1-ubyte.gz"),
        ("cifar10", write_cifar10, "cifar-10-batches-bin/data_batch_4.bin"),
        ("clothing1m", write_clothing1m, "clothing1M/noisy_train_key_list.txt"),
    ],
)
def test_missing_data_is_named_with_the_command_that_gets_it(tmp_path, name, write, file):
    with pytest.raises(FileError, match=f"{name!r} is not here.* run 'dualt data get {name}'"):
        load_dataset(name)
    write(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(FileError, match=f"{file}.*delete .* and run 'dualt data get {name}'"):
        load_dataset(name)
