"""CIFAR's two formats, written here as their page describes them."""

import os
import pickle
import struct

import numpy as np
import pytest

from dualt.datasets import load_dataset
from dualt.errors import FileError

RNG = np.random.default_rng(0)


def random_batch(n, n_classes):
    return RNG.integers(256, size=(n, 3, 32, 32), dtype=np.uint8), RNG.integers(n_classes, size=n)


def write_binary10(root, n=3):
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    batches = []
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        images, labels = random_batch(n, 10)
        records = (bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))
        (folder / f"{name}.bin").write_bytes(b"".join(records))
        batches.append((images, labels))
    return batches


def python2_pickle(images, labels, label_name):
    """Write the dict as the authors' Python 2 did: protocol 2, byte strings, numpy's old module names."""

    def short(text):
        return b"U" + bytes([len(text)]) + text.encode()

    data = images.reshape(len(images), -1)
    shape = b"".join(b"M" + struct.pack("<H", side) for side in data.shape) + b"\x86"
    dtype = b"cnumpy\ndtype\nq\x0bU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\t"
    array += b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<i", data.nbytes) + data.tobytes() + b"tb"
    numbers = b"]q\x05(" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + b"".join(short(f"image_{i}.png") for i in range(len(labels))) + b"e"
    items = short("batch_label") + short("training batch 1 of 5") + short(label_name) + numbers
    return b"\x80\x02}q\x01(" + items + short("data") + array + short("filenames") + names + b"u."


def test_cifar10_binary(tmp_path):
    batches = write_binary10(tmp_path)
    data = load_dataset("cifar10", tmp_path)
    np.testing.assert_array_equal(data.train_x, np.concatenate([images for images, _ in batches[:5]]))
    np.testing.assert_array_equal(data.train_y, np.concatenate([labels for _, labels in batches[:5]]))
    np.testing.assert_array_equal(data.test_x, batches[5][0])
    np.testing.assert_array_equal(data.test_y, batches[5][1])
    assert data.class_names[6] == "frog"


def test_cifar10_python_batches_of_python_2(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    batches = [random_batch(4, 10) for _ in range(6)]
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    for name, batch in zip(names, batches, strict=True):
        content = python2_pickle(*batch, "labels")
        # The bytes really are a pickle of that dict.
        loaded = pickle.loads(content, encoding="latin-1")
        np.testing.assert_array_equal(loaded["data"], batch[0].reshape(4, -1))
        (folder / name).write_bytes(content)
    data = load_dataset("cifar10", tmp_path)
    np.testing.assert_array_equal(data.train_x, np.concatenate([images for images, _ in batches[:5]]))
    np.testing.assert_array_equal(data.test_y, batches[5][1])


def test_both_versions_of_cifar100_agree(tmp_path):
    train, test = random_batch(5, 100), random_batch(2, 100)
    (tmp_path / "binary/cifar-100-binary").mkdir(parents=True)
    (tmp_path / "python/cifar-100-python").mkdir(parents=True)
    for part, (images, labels) in (("train", train), ("test", test)):
        # The coarse label comes first and must not be taken for the fine one.
        records = (bytes([label // 5, label]) + image.tobytes() for image, label in zip(images, labels, strict=True))
        (tmp_path / "binary/cifar-100-binary" / f"{part}.bin").write_bytes(b"".join(records))
        batch = {
            "coarse_labels": [0] * len(labels),
            "fine_labels": labels.tolist(),
            "data": images.reshape(len(images), -1),
        }
        (tmp_path / "python/cifar-100-python" / part).write_bytes(pickle.dumps(batch, 2))
    binary, python = load_dataset("cifar100", tmp_path / "binary"), load_dataset("cifar100", tmp_path / "python")
    for data in (binary, python):
        np.testing.assert_array_equal(data.train_x, train[0])
        np.testing.assert_array_equal(data.train_y, train[1])
        np.testing.assert_array_equal(data.test_x, test[0])
        np.testing.assert_array_equal(data.test_y, test[1])
        assert data.n_classes == len(set(data.class_names)) == 100


def test_a_cut_file_is_refused(tmp_path):
    write_binary10(tmp_path)
    path = tmp_path / "cifar-10-batches-bin/data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FileError, match=r"data_batch_3\.bin.*2 records and 3,068 bytes.*cut short"):
        load_dataset("cifar10", tmp_path)
    path.write_bytes(b"")
    with pytest.raises(FileError, match=r"data_batch_3\.bin"):
        load_dataset("cifar10", tmp_path)


def test_a_label_out_of_range_is_refused(tmp_path):
    write_binary10(tmp_path)
    (tmp_path / "cifar-10-batches-bin/test_batch.bin").write_bytes(bytes([10]) + bytes(3072))
    with pytest.raises(FileError, match=r"0 to 9 in .*test_batch\.bin, got 10"):
        load_dataset("cifar10", tmp_path)


def test_a_missing_batch_is_named(tmp_path):
    with pytest.raises(FileError, match=r"cifar-10-batches-bin/data_batch_1\.bin.*dualt data get cifar10'"):
        load_dataset("cifar10", tmp_path)
    write_binary10(tmp_path)
    (tmp_path / "cifar-10-batches-bin/data_batch_4.bin").unlink()
    with pytest.raises(FileError, match=r"data_batch_4\.bin.*--force"):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        {"labels": [0]},
        {"data": [1, 2], "labels": [0]},
        {"data": np.zeros((1, 3072), np.float32), "labels": [0]},
        {"data": np.zeros((1, 3071), np.uint8), "labels": [0]},
        {"data": np.zeros((2, 3072), np.uint8), "labels": [0]},
        {"data": np.zeros((1, 3072), np.uint8), "labels": ["cat"]},
        {"data": np.zeros((1, 3072), np.uint8), "labels": [-1]},
        {"data": np.zeros((0, 3072), np.uint8), "labels": []},
    ],
)
def test_a_python_batch_of_something_else_is_refused(tmp_path, batch):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(pickle.dumps(batch, 4))
    with pytest.raises(FileError, match=r"Expected .*data_batch_1"):
        load_dataset("cifar10", tmp_path)


def test_a_hostile_python_batch_runs_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "witness"),)

    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    (folder / "train").write_bytes(pickle.dumps({"data": Evil()}, 2))
    with pytest.raises(FileError, match=r"Refused .*train.*mkdir"):
        load_dataset("cifar100", tmp_path)
    assert not (tmp_path / "witness").exists()
