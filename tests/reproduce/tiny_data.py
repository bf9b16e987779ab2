"""Every data set of the paper in its original format, with a handful of images drawn here."""

import struct

import numpy as np
from PIL import Image

N_TRAIN, N_TEST = 120, 20


def write_all(root):
    """Write MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 and Clothing1M below `root`."""
    rng = np.random.default_rng(0)
    for name in ("MNIST", "FashionMNIST"):
        write_idx(root / name / "raw", rng)
    write_cifar10(root / "cifar-10-batches-bin", rng)
    write_cifar100(root / "cifar-100-binary", rng)
    write_clothing1m(root / "clothing1M", rng)
    return root


def write_idx(folder, rng):
    folder.mkdir(parents=True)
    for part, n in (("train", N_TRAIN), ("t10k", N_TEST)):
        images = rng.integers(256, size=(n, 28, 28), dtype=np.uint8)
        labels = (np.arange(n) % 10).astype(np.uint8)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, 28, 28) + images.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + labels.tobytes())


def write_cifar10(folder, rng):
    folder.mkdir(parents=True)
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        n = N_TEST if name == "test_batch" else N_TRAIN // 5
        images = rng.integers(256, size=(n, 3 * 32 * 32), dtype=np.uint8)
        records = [bytes([number % 10]) + image.tobytes() for number, image in enumerate(images)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))


def write_cifar100(folder, rng):
    folder.mkdir(parents=True)
    for name, n in (("train", N_TRAIN), ("test", N_TEST)):
        images = rng.integers(256, size=(n, 3 * 32 * 32), dtype=np.uint8)
        records = [bytes([number % 20, number % 100]) + image.tobytes() for number, image in enumerate(images)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))


def write_clothing1m(folder, rng):
    for part, kind, n in (("noisy_train", "noisy", 28), ("clean_test", "clean", 6)):
        keys = [f"images/{number % 10}/{number:02}/{part}{number}.png" for number in range(n)]
        for key in keys:
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(256, size=(40, 50, 3), dtype=np.uint8)).save(folder / key)
        (folder / f"{part}_key_list.txt").write_text("\n".join(keys))
        (folder / f"{kind}_label_kv.txt").write_text("".join(f"{key} {i % 14}\n" for i, key in enumerate(keys)))
