"""idx files, written here byte by byte as the format's page describes them."""

import gzip
import struct

import numpy as np
import pytest

from dualt.datasets import load_dataset
from dualt.datasets.published import read_idx
from dualt.errors import FileError


def idx_bytes(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", side) for side in array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(root, folder="MNIST", n_train=6, n_test=4, compressed=True, seed=0):
    """Write a tiny data set in MNIST's layout, and return its four arrays."""
    raw = root / folder / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    arrays = []
    for part, n in (("train", n_train), ("t10k", n_test)):
        images, labels = rng.integers(256, size=(n, 28, 28)), rng.integers(10, size=n)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            content = idx_bytes(array)
            name = f"{part}-{kind}-ubyte"
            (raw / (f"{name}.gz" if compressed else name)).write_bytes(
                gzip.compress(content) if compressed else content
            )
        arrays += [images, labels]
    return arrays


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_reads_torchvisions_layout(tmp_path, name, folder, compressed):
    arrays = write_mnist(tmp_path, folder, compressed=compressed)
    data = load_dataset(name, tmp_path)
    for got, expected in zip((data.train_x, data.train_y, data.test_x, data.test_y), arrays, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert data.train_x.dtype == np.uint8
    assert data.train_y.dtype == np.int64
    assert data.train_x.flags.writeable
    assert data.n_classes == len(data.class_names) == 10


def test_missing_file_says_how_to_get_it(tmp_path):
    with pytest.raises(FileError, match=r"MNIST/raw/train-images-idx3-ubyte\.gz.*dualt data get mnist'"):
        load_dataset("mnist", tmp_path)


def test_half_a_data_set_says_to_fetch_it_again(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "MNIST/raw/t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileError, match=r"t10k-labels.*delete .*raw and run 'dualt data get mnist'"):
        load_dataset("mnist", tmp_path)


GOOD = idx_bytes(np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "beginning 00000803.*got nothing"),
        (b"\x00\x00\x08\x01" + GOOD[4:], "beginning 00000803.*got 00000801"),
        (b"\x89PNG\r\n\x1a\n" + GOOD, "got 89504e47"),
        (GOOD[:9], "got 00000803"),
        (GOOD[:-1], "24 bytes of data.*got 23"),
        (GOOD[:20], "24 bytes of data"),
        (GOOD + b"\x00", "24 bytes of data.*got 25"),
        (idx_bytes(np.zeros((0, 3, 4))), "Expected 0 bytes"),
    ],
)
@pytest.mark.parametrize("compressed", [True, False])
def test_bad_files_are_refused_by_name(tmp_path, content, message, compressed):
    path = tmp_path / ("bad-images.gz" if compressed else "bad-images")
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(FileError, match=message) as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)


def test_a_gzip_stream_cut_short_is_refused(tmp_path):
    path = tmp_path / "cut.gz"
    rng = np.random.default_rng(0)
    path.write_bytes(gzip.compress(idx_bytes(rng.integers(256, size=(50, 28, 28))))[:-2_000])
    with pytest.raises(FileError, match=r"cut\.gz"):
        read_idx(path, 3)


def test_labels_must_match_images(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "MNIST/raw/train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(np.zeros(5))))
    with pytest.raises(FileError, match=r"as many labels as images, got 5 for 6"):
        load_dataset("mnist", tmp_path)
    (tmp_path / "MNIST/raw/train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(np.full(6, 10))))
    with pytest.raises(FileError, match=r"labels from 0 to 9 .*got 10"):
        load_dataset("mnist", tmp_path)
