"""CIFAR's binary format, written here as its page describes it."""

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


def test_cifar10_binary(tmp_path):
    batches = write_binary10(tmp_path)
    data = load_dataset("cifar10", tmp_path)
    np.testing.assert_array_equal(data.train_x, np.concatenate([images for images, _ in batches[:5]]))
    np.testing.assert_array_equal(data.train_y, np.concatenate([labels for _, labels in batches[:5]]))
    np.testing.assert_array_equal(data.test_x, batches[5][0])
    np.testing.assert_array_equal(data.test_y, batches[5][1])
    assert data.class_names[6] == "frog"


def test_cifar100_has_its_fine_labels(tmp_path):
    train, test = random_batch(5, 100), random_batch(2, 100)
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    for part, (images, labels) in (("train", train), ("test", test)):
        # The coarse label comes first and must not be taken for the fine one.
        records = (bytes([label // 5, label]) + image.tobytes() for image, label in zip(images, labels, strict=True))
        (folder / f"{part}.bin").write_bytes(b"".join(records))
    data = load_dataset("cifar100", tmp_path)
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
    with pytest.raises(FileError, match=r"data_batch_4\.bin.*delete .*and run"):
        load_dataset("cifar10", tmp_path)
