"""Data sets by name, and by the kind of file that a path leads to."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualt.datasets.dataset import Dataset
from dualt.datasets.own_files import load_folder, load_npz, load_table
from dualt.datasets.published import (
    data_root,
    load_cifar10,
    load_cifar100,
    load_clothing1m,
    load_digits,
    load_fashion_mnist,
    load_mnist,
)
from dualt.datasets.synthetic import load_synthetic
from dualt.errors import FileError, InputError, UnknownNameError
from dualt.io.tables import TABLES


@dataclass(frozen=True)
class Entry:
    """How to load a data set, and its folder below the root (none: it is built in)."""

    load: Callable[..., Dataset]
    folder: str | None = None

    def is_present(self, root: str | Path | None = None) -> bool:
        """Whether it can be loaded without a download."""
        return self.folder is None or (data_root(root) / self.folder).is_dir()


REGISTRY: dict[str, Entry] = {
    "synthetic": Entry(load_synthetic),
    "digits": Entry(load_digits),
    "mnist": Entry(load_mnist, "MNIST/raw"),
    "fashion-mnist": Entry(load_fashion_mnist, "FashionMNIST/raw"),
    "cifar10": Entry(load_cifar10, "cifar-10-batches-bin"),
    "cifar100": Entry(load_cifar100, "cifar-100-binary"),
    "clothing1m": Entry(load_clothing1m, "clothing1M"),
}

_BY_SUFFIX: dict[str, Callable[..., Dataset]] = {".npz": load_npz, **dict.fromkeys(TABLES, load_table)}


def load_dataset(name_or_path: str | Path, root: str | Path | None = None, **options: Any) -> Dataset:
    """Load a data set by its name, or from a folder of images, an `.npz` file or a table.

    Parameters
    ----------
    name_or_path
        `synthetic`, `digits`, `mnist`, `fashion-mnist`, `cifar10`, `cifar100`, `clothing1m`; or a path
        (`./mnist` for a folder of that name).
    root
        Folder of the named data sets: by default `$DUALT_DATA`, else `~/.cache/dualt`.
    **options
        Options of the data set: `n_samples`, `n_test`, `random_state` (synthetic), `size` (images), `label`,
        `id_column` (tables), `train`, `test` (clothing1m), `noisy` (your own data).

    Examples
    --------
    >>> data = load_dataset("digits")
    >>> data.train_x.shape, data.n_classes
    ((1437, 8, 8), 10)
    """
    entry = REGISTRY.get(name_or_path) if isinstance(name_or_path, str) else None
    loader = entry.load if entry else _loader_of_path(name_or_path)
    parameters = inspect.signature(loader).parameters
    takes = [key for key, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    for option in options:
        if option not in takes:
            raise InputError(
                f"Unknown option {option!r} for {str(name_or_path)!r}: it takes {', '.join(takes) or 'none'}."
            )
    if entry is None:
        return loader(Path(name_or_path).expanduser(), **options)
    return loader(root, **options) if "root" in parameters else loader(**options)


def _loader_of_path(given: str | Path) -> Callable[..., Dataset]:
    path = Path(given).expanduser()
    if path.is_dir():
        return load_folder
    suffix = path.suffix.lower()
    if path.exists() and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if path.exists():
        raise FileError(f"Expected a folder of images or a file {', '.join(_BY_SUFFIX)}, got {path}.")
    if isinstance(given, Path) or "/" in given or suffix in _BY_SUFFIX:
        raise FileError(f"Expected a data set at {path}, but there is no such file or folder.")
    raise UnknownNameError("data set", given, REGISTRY)
