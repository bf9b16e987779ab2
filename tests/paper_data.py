"""The paper's data sets in their publishers' formats, written byte by byte, with a handful of images."""

import gzip
import struct

import numpy as np
from PIL import Image

N_TRAIN, N_TEST = 120, 20
RNG = np.random.default_rng(0)


def write_all(root):
    """Write MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 and Clothing1M below `root`."""
    for folder in ("MNIST", "FashionMNIST"):
        write_mnist(root, folder)
    write_cifar10(root)
    write_cifar100(root)
    write_clothing1m(root)
    return root


def labels_of(n, n_classes):
    return 7 * np.arange(n) % n_classes


def idx_bytes(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", side) for side in array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(root, folder="MNIST"):
    """Write a data set in MNIST's layout, and return its four arrays."""
    raw = root / folder / "raw"
    raw.mkdir(parents=True)
    arrays = []
    for part, n in (("train", N_TRAIN), ("t10k", N_TEST)):
        images, labels = RNG.integers(256, size=(n, 28, 28)), labels_of(n, 10)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            (raw / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(idx_bytes(array)))
        arrays += [images, labels]
    return arrays


def write_cifar10(root):
    sizes = dict.fromkeys((f"data_batch_{number}" for number in range(1, 6)), N_TRAIN // 5)
    return write_cifar(root / "cifar-10-batches-bin", {**sizes, "test_batch": N_TEST}, 10)


def write_cifar100(root):
    return write_cifar(root / "cifar-100-binary", {"train": N_TRAIN, "test": N_TEST}, 100)


def write_cifar(folder, sizes, n_classes):
    """Write files of images and labels, and return these; CIFAR-100 has a coarse label before the fine one."""
    folder.mkdir(parents=True)
    batches = []
    for name, n in sizes.items():
        images, labels = RNG.integers(256, size=(n, 3, 32, 32), dtype=np.uint8), labels_of(n, n_classes)
        heads = [bytes([label // 5, label] if n_classes == 100 else [label]) for label in labels.tolist()]
        records = [head + image.tobytes() for head, image in zip(heads, images, strict=True)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
        batches.append((images, labels))
    names = "fine_label_names.txt" if n_classes == 100 else "batches.meta.txt"
    (folder / names).write_text("".join(f"class_{number}\n" for number in range(n_classes)) + "\n")
    return batches


def write_clothing1m(root):
    """Write 28 + 6 images and their lists, and return their folder."""
    folder = root / "clothing1M"
    for part, n, kind in (("noisy_train", 28, "noisy"), ("clean_test", 6, "clean")):
        keys = [f"images/{i % 2}/{i:02}/{part},{i}.png" for i in range(n)]
        for i, key in enumerate(keys):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            # A wide picture: red left third, green centre, blue right third; its brightness identifies it.
            pixels = np.zeros((100, 300, 3), np.uint8)
            for channel in range(3):
                pixels[:, 100 * channel : 100 * (channel + 1), channel] = 100 + i
            Image.fromarray(pixels).save(folder / key)
        (folder / f"{part}_key_list.txt").write_text("\n".join(keys))
        # More labels than keys, in another order, as in the original.
        labels = [f"{key} {i % 14}\n" for i, key in enumerate(keys)]
        (folder / f"{kind}_label_kv.txt").write_text("".join([*labels[::-1], "images/9/99/other.jpg 13\n"]))
    return folder
