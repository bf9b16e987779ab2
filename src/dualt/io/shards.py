"""Many files as one data set: shards named by a pattern or a folder, opened one at a time."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.io.load import FORMATS, Probabilities, load_labels, load_probabilities
from dualt.io.parquet import ParquetBlock
from dualt.labels import as_label_array
from dualt.rows.blocks import Block, Rows, in_block
from dualt.validation import check_probability_shape, check_same_length

_DIVIDED_ENTRIES = 1 << 24


@dataclass(frozen=True)
class Shards:
    """Blocks of files, in order, and class names if their headers have them."""

    blocks: tuple[Block, ...]
    class_names: tuple[str, ...] | None = None


def is_sharded(path: str | Path) -> bool:
    """Tell whether `path` stands for several files: a folder, or a pattern such as 'probs/*.npy'."""
    path = Path(path)
    try:
        return path.is_dir() or (not path.exists() and glob.has_magic(str(path)))
    except OSError:  # no such name can be; opening it will say so
        return False


def find_shards(path: str | Path, ending: str | None = None) -> list[Path]:
    """Return the files that a pattern, a folder or a plain path stands for, in natural order: 2 before 10.

    Of a folder, those of the format `ending`, or of the only format it has; names that begin with a dot or an
    underscore are not data.
    """
    path = Path(path)
    if not is_sharded(path):
        return [path]
    if path.is_dir():
        return _in_folder(path, ending)
    found = [Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file()]  # noqa: PTH207
    if not found:
        raise FileError(f"Expected files that match {str(path)!r}, got none.")
    return sorted(found, key=_natural)


def _in_folder(folder: Path, ending: str | None) -> list[Path]:
    wanted = FORMATS if ending is None else (f".{ending.lower().removeprefix('.')}",)
    found = [each for each in folder.iterdir() if each.suffix.lower() in wanted and each.name[0] not in "._"]
    kinds = sorted({each.suffix.lower() for each in found})
    if not found:
        raise FileError(f"Expected files that end in {', '.join(wanted)}, got the folder {folder} without any.")
    if len(kinds) > 1:
        raise FileError(f"Expected files of one format in {folder}, got {', '.join(kinds)}. Choose with --format.")
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", str(path))]


def open_shards(
    probs: str | Path,
    labels: str | Path | None = None,
    *,
    label: str | None = None,
    columns: str | None = None,
    ending: str | None = None,
) -> Shards:
    """Open shards of probabilities and of labels, paired in order, and check that they belong together.

    Parameters
    ----------
    probs, labels
        A pattern, a folder or a file each. Without `labels`, or if they are the same, each shard is a table that
        has its labels in the column `label`.
    label
        Name of the label column.
    columns
        Pattern of the columns of probabilities; see `choose_columns`.
    ending
        Which files of a folder to take.

    Notes
    -----
    `.npy` shards are memory-mapped and Parquet is decoded by the batch. `.npz` and text are read a file at a time, in
    every pass anew. A shard without rows is left out.
    """
    apart = labels is not None and Path(labels) != Path(probs)
    if not apart and label is None:
        raise InputError(f"Expected files of labels, or --label with a column of {probs}, got neither.")
    paths = find_shards(probs, ending)
    label_paths: Sequence[Path | None] = find_shards(labels, ending) if apart and labels else [None] * len(paths)
    if len(paths) != len(label_paths):
        raise InputError(
            f"Expected as many files of labels as of probabilities, got {len(paths)} for {probs} and"
            f" {len(label_paths)} for {labels}."
        )
    opened = [_open_pair(path, given, label, columns) for path, given in zip(paths, label_paths, strict=True)]
    first_names = opened[0][1]
    for block, names in opened[1:]:
        if names != first_names:
            raise InputError(
                f"Expected the columns {_listed(first_names)} in {block.name} as in {paths[0]}, got {_listed(names)}."
            )
    blocks = tuple(block for block, _ in opened if block.shape[0])
    if not blocks:
        raise InputError(f"Expected at least one row of probabilities in {probs}, got none.")
    return Shards(blocks, first_names)


def _listed(names: tuple[str, ...] | None) -> str:
    return "without names" if names is None else ", ".join(names)


def _open_pair(
    path: Path, labels: Path | None, label: str | None, columns: str | None
) -> tuple[Block, tuple[str, ...] | None]:
    """Return one shard, its sizes known and its labels as many as its rows, and its class names."""
    try:
        if path.suffix.lower() == ".parquet":
            block, names = ParquetBlock.open(path, label, labels, columns)
            if labels is not None:
                check_same_length(block.shape[0], len(load_labels(labels, column=label)))
            return block, names
        return FileBlock.open(path, labels, label, columns)
    except InputError as error:
        raise in_block(error, _pair_name(path, labels)) from None


def _pair_name(path: Path, labels: Path | None) -> str:
    return str(path) if labels is None else f"{path} and {labels}"


def divide(blocks: Iterable[Block]) -> list[Block]:
    """Return the same rows in smaller blocks, where that costs nothing, for workers to share: `.npy` files."""
    divided: list[Block] = []
    for block in blocks:
        mapped = isinstance(block, FileBlock) and block.path.suffix.lower() == ".npy"
        rows = max(_DIVIDED_ENTRIES // block.shape[1], 1) if mapped else block.shape[0]
        limits = [*range(0, block.shape[0], rows), block.shape[0]]
        whole = not isinstance(block, FileBlock) or len(limits) == 2
        divided += [block] if whole else [block.part(low, high) for low, high in pairwise(limits)]  # type: ignore[attr-defined]
    return divided


@dataclass(frozen=True)
class FileBlock:
    """A file of probabilities, and its labels in another file or in one of its columns."""

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    rows: tuple[int, int] | None = None

    def part(self, low: int, high: int) -> FileBlock:
        """Return the rows `low` … `high − 1` alone."""
        return replace(self, shape=(high - low, self.shape[1]), rows=(low, high))

    @classmethod
    def open(
        cls, path: Path, labels: Path | None, label: str | None, columns: str | None
    ) -> tuple[FileBlock, tuple[str, ...] | None]:
        """Return the block and its class names."""
        loaded = _load(path, labels, label, columns)
        if len(loaded.values):
            check_probability_shape(loaded.values)
        check_same_length(len(loaded.values), len(load_labels(labels or path, column=label)))
        n_samples, n_classes = loaded.values.shape
        return cls(path, labels, label, columns, (n_samples, n_classes), loaded.values.dtype), loaded.class_names

    @property
    def name(self) -> str:
        """Where the rows come from."""
        return _pair_name(self.path, self.labels)

    def read(self) -> Iterator[Rows]:
        """Yield all rows: memory-mapped if the file can be, else the whole file."""
        values = _load(self.path, self.labels, self.label, self.columns).values[self._slice]
        given = next(self.read_labels())
        if values.shape != self.shape or len(given) != len(values):
            raise FileError(
                f"Expected {self.shape[0]:,} rows of {self.shape[1]} classes in {self.name} as before, got shape"
                f" {values.shape} and {len(given):,} labels: it changed while it was read."
            )
        yield values, given

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield all labels."""
        try:
            yield as_label_array(load_labels(self.labels or self.path, column=self.label))[self._slice]
        except InputError as error:
            raise in_block(error, self.name) from None

    @property
    def _slice(self) -> slice:
        return slice(*self.rows) if self.rows else slice(None)


def _load(path: Path, labels: Path | None, label: str | None, columns: str | None) -> Probabilities:
    return load_probabilities(path, exclude=[label] if label and labels is None else [], columns=columns)
