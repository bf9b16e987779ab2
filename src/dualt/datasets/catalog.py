"""Data sets by name, where to download them, and by the kind of file that a path leads to."""

from __future__ import annotations

import inspect
import logging
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from dualt.datasets import published
from dualt.datasets.dataset import Dataset, from_arrays
from dualt.datasets.images import load_images, take_rows
from dualt.datasets.synthetic import load_synthetic
from dualt.errors import FileError, InputError, UnknownNameError, naming_extra
from dualt.files import make_folder
from dualt.io.image_folder import read_class_folder
from dualt.io.load import open_npz
from dualt.io.table_columns import check_no_missing, open_table
from dualt.io.tables import TABLES

_log = logging.getLogger(__name__)


def data_root() -> Path:
    """Return the folder of the data sets: `$DUALT_DATA`, else `~/.cache/dualt`."""
    return Path(os.environ.get("DUALT_DATA") or "~/.cache/dualt").expanduser()


@dataclass(frozen=True)
class Entry:
    """How to load a data set, its folder below the root (empty: it is built in), and what to download.

    `files` has the MD5 checksum of every address: files go into the folder, archives contain it.
    """

    load: Callable[..., Dataset]
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def is_present(self) -> bool:
        """Whether it can be loaded without a download."""
        return not self.folder or (data_root() / self.folder).is_dir()


def load_folder(folder: str | Path, *, size: int | None = None) -> Dataset:
    """Images in a folder per class, the classes in sorted order; or `train/` and optionally `test/` that have these.

    `size`: resize the shorter side to this and crop the centre to a square. Needed where sizes differ.
    """
    folder = Path(folder)
    divided = (folder / "train").is_dir()
    parts = [read_class_folder(folder / "train" if divided else folder)]
    names = parts[0].names
    if divided and (folder / "test").is_dir():
        parts.append(read_class_folder(folder / "test", names))
    paths = [part.folder / file for part in parts for file in part.files]
    images, n_train = load_images(paths, size), len(parts[0].files)
    codes = [np.searchsorted(np.array(names), part.labels).astype(np.int64) for part in parts]
    test_x, test_y = (take_rows(images, slice(n_train, None)), codes[1]) if len(parts) > 1 else (None, None)
    ids = tuple(path.relative_to(folder).as_posix() for path in paths[:n_train])
    train_x = take_rows(images, slice(n_train))
    return Dataset(folder.resolve().name, train_x, codes[0], test_x, test_y, names, ids=ids)


def load_npz(path: str | Path) -> Dataset:
    """Arrays `X` and `y` of an `.npz` file."""
    with open_npz(path) as archive:
        if not {"X", "y"} <= set(archive):
            raise FileError(
                f"Expected arrays named X and y in {path}, got {', '.join(sorted(archive)) or 'none'}."
                " Write it with np.savez(path, X=..., y=...)."
            )
        return from_arrays(archive["X"], archive["y"], name=Path(path).stem)


def load_table(path: str | Path, *, label: str = "label", id_column: str | None = None) -> Dataset:
    """Rows of a table: the column `label` holds the labels, every other column but that of ids is a feature."""
    table = open_table(path, label)
    apart = {table.position(name) for name in (label, id_column) if name is not None}
    features = [place for place in range(table.n_columns) if place not in apart]
    if not features:
        raise InputError(f"Expected columns of numbers beside {label!r} in {path}, got none.")
    x, y = table.read_numbers(features), check_no_missing(table.read_column(label), Path(path))
    return replace(
        from_arrays(x, y, name=Path(path).stem),
        ids=None if id_column is None else tuple(table.read_texts(id_column)),
        feature_names=None if table.names is None else tuple(table.names[place] for place in features),
    )


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion"
_TORONTO = "https://www.cs.toronto.edu/~kriz"
REGISTRY: dict[str, Entry] = {
    "synthetic": Entry(load_synthetic),
    "digits": Entry(published.load_digits),
    "mnist": Entry(partial(published.load_mnist, "mnist"), "MNIST/raw", {
        f"{_MNIST}/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        f"{_MNIST}/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        f"{_MNIST}/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        f"{_MNIST}/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }),
    "fashion-mnist": Entry(partial(published.load_mnist, "fashion-mnist"), "FashionMNIST/raw", {
        f"{_FASHION}/train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        f"{_FASHION}/train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        f"{_FASHION}/t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        f"{_FASHION}/t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    }),
    "cifar10": Entry(partial(published.load_cifar, "cifar10"), "cifar-10-batches-bin", {
        f"{_TORONTO}/cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
    }),
    "cifar100": Entry(partial(published.load_cifar, "cifar100"), "cifar-100-binary", {
        f"{_TORONTO}/cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8",
    }),
    "clothing1m": Entry(published.load_clothing1m, "clothing1M"),
}  # fmt: skip

_BY_SUFFIX: dict[str, Callable[..., Dataset]] = {".npz": load_npz, **dict.fromkeys(TABLES, load_table)}


def load_dataset(name_or_path: str | Path, **options: Any) -> Dataset:
    """Load a data set by its name, or from a folder of images, an `.npz` file or a table.

    Parameters
    ----------
    name_or_path
        `synthetic`, `digits`, `mnist`, `fashion-mnist`, `cifar10`, `cifar100`, `clothing1m`; or a path
        (`./mnist` for a folder of that name). Named ones are in `$DUALT_DATA`, else in `~/.cache/dualt`.
    **options
        Options of the data set: `n_samples`, `n_test`, `random_state` (synthetic), `size` (images), `label`,
        `id_column` (tables).

    Examples
    --------
    >>> data = load_dataset("digits")
    >>> data.train_x.shape, data.n_classes
    ((1437, 8, 8), 10)
    """
    path = Path(name_or_path).expanduser()
    suffix, loader = path.suffix.lower(), load_folder
    if isinstance(name_or_path, str) and name_or_path in REGISTRY:
        loader, folder = REGISTRY[name_or_path].load, REGISTRY[name_or_path].folder
        places = [data_root() / folder] if folder else []
        if path.is_dir():
            _log.warning("%r is the data set of that name. For the folder, pass './%s'.", name_or_path, path)
    elif path.exists():
        places = [path]
        if not path.is_dir():
            if suffix not in _BY_SUFFIX:
                raise FileError(f"Expected a folder of images or a file {', '.join(_BY_SUFFIX)}, got {path}.")
            loader = _BY_SUFFIX[suffix]
    elif isinstance(name_or_path, Path) or "/" in name_or_path or suffix in _BY_SUFFIX:
        raise FileError(f"Expected a data set at {path}, but there is no such file or folder.")
    else:
        raise UnknownNameError("data set", name_or_path, REGISTRY)
    takes = inspect.getfullargspec(loader).kwonlyargs
    for name in options.keys() - {*takes}:
        raise InputError(f"Unknown option {name!r} for {str(name_or_path)!r}: it takes {', '.join(takes) or 'none'}.")
    return loader(*places, **options)


def download(name: str) -> list[Path]:
    """Download the data set `name` below `data_root()` and return the new files and folders; what is there is kept.

    Checksums are verified. Files are put in place whole: a failure leaves nothing behind.
    """
    root = data_root()
    if name == "clothing1m":
        raise FileError(
            "Clothing1M is given out by its authors on request: ask for it at https://github.com/Cysu/noisy_label,"
            f" then unpack it so that {root / 'clothing1M' / 'noisy_train_key_list.txt'} exists."
        )
    if name not in REGISTRY:
        raise UnknownNameError("data set", name, REGISTRY)
    folder, new = REGISTRY[name].folder, []
    for url, md5 in REGISTRY[name].files.items():
        is_archive, target = url.endswith(".tar.gz"), root / folder
        target = target if is_archive else target / PurePosixPath(url).name
        if target.exists():
            continue
        with tempfile.TemporaryDirectory(dir=make_folder(root), prefix=".download-") as staging:
            path = _fetch(url, md5, Path(staging))
            if is_archive:
                with tarfile.open(path) as tar:
                    tar.extractall(staging, filter="data")
                path = Path(staging) / folder
            make_folder(target.parent)
            path.replace(target)
        new.append(target)
    return new


def _fetch(url: str, md5: str, folder: Path) -> Path:
    """Download a file into `folder` and verify its checksum."""
    with naming_extra("Downloading data sets"):
        import pooch
    pooch.get_logger().setLevel(logging.WARNING)
    _log.info("downloading %s", url)
    try:
        return Path(pooch.retrieve(url, f"md5:{md5}", fname=PurePosixPath(url).name, path=folder))
    except ValueError as error:
        raise FileError(f"Refused {url}: expected the MD5 {md5}, got another. Try again later.") from error
    except OSError as error:
        raise FileError(f"Cannot download {url}: {error}. Check network and disk.") from error
