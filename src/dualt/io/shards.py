"""Many files as one data set: shards named by a pattern or a folder, opened one at a time."""

from __future__ import annotations

import glob
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import check_readable
from dualt.io.image_folder import FILE_COLUMN, is_class_folder, match_names, read_class_folder
from dualt.io.load import FORMATS, load_array, load_labels
from dualt.io.table_columns import NotNumbersError, Table, choose_columns, is_large, open_table, table_parts
from dualt.io.tables import TABLES
from dualt.labels import as_label_array, as_text_array, is_missing, shorten
from dualt.rows.posterior import Block, in_block
from dualt.validation import check_probability_shape, check_same_length, scale_rounded

_NO_PROBABILITIES = (
    "Name the columns of probabilities with --probs, such as 'p_*'; if there are none, name what a model learns from"
    " with --text or --features."
)
_warn_once = lru_cache(logging.getLogger(__name__).warning)  # not in every pass


@dataclass(frozen=True)
class FileRows:
    """Reads the rows of a file of probabilities, and their labels in another file or in one of its columns.

    Options are those of `open_shards`; if `textual`, labels in a column are texts, also where a part has only numbers.
    """

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    ignored: tuple[str, ...]
    textual: bool = False

    def __call__(self) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]]:
        """Yield (probabilities, labels, the class names that a header has): a large table in parts, `.npy` mapped."""
        is_table, apart, end = self.path.suffix.lower() in TABLES, None, 0
        folder = self.labels if is_table and self.labels is not None and is_class_folder(self.labels) else None
        if folder is None and (self.labels is not None or not is_table):
            apart = load_labels(self.labels or self.path, column=self.label, missing=True)
        for probs, own, names in self._read_table(folder) if is_table else [(load_array(self.path), None, None)]:
            start, end = end, end + len(probs)
            labels: Any = own if apart is None else apart[start:end]
            yield probs, as_label_array(labels, missing=True) if len(labels) else labels, names
        check_same_length(end, end if apart is None else len(apart))

    def _read_table(self, folder: Path | None) -> Iterator[tuple[NDArray[Any], Any, tuple[str, ...] | None]]:
        """Yield (probabilities, labels if they are in a column or the folders of images, class names)."""
        own_label = self.label if self.labels is None else None
        named = own_label or next(iter(self.ignored), None)
        for table in table_parts(self.path, named) if folder is None else [open_table(self.path, named)]:
            left_out = {*self.ignored, own_label or ""}
            order: Any = slice(None)
            labels = None if own_label is None else table.read_column(own_label)
            if folder is not None:
                column = self.label or FILE_COLUMN
                order, labels = _image_order(table, column, folder)
                left_out.add(column)
            if own_label is not None and self.textual:
                labels = as_text_array(table.read_texts(own_label))
            places, names = choose_columns(table, left_out, self.columns)
            given = table.read_numbers(places)[order]
            probs = scale_rounded(given)
            if probs is not given:
                _warn_once("The probabilities in %s are rounded to two decimals: rows were rescaled.", self.path)
            yield probs, labels, names


def _image_order(table: Table, column: str, folder: Path) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
    """Return the row of a table for each image in a folder, which a column names (−1: none), and their labels."""
    if column not in (table.names or ()):
        raise InputError(
            f"Expected a column of {table.path} that names the images of {folder}, got none called {column!r}."
            " Name it with --id."
        )
    images = read_class_folder(folder)
    rows = np.array(match_names(folder, images.files, table.read_texts(column)), np.intp)
    counts = np.bincount(rows, minlength=len(images.files))
    if (counts > 1).any():
        at = int(np.argmax(counts > 1))
        raise InputError(f"Expected one row of {table.path} for {images.files[at]}, got {counts[at]}.")
    absent = [images.files[at] for at in np.flatnonzero(counts == 0)]
    if absent:
        _warn_once("Images without a row in %s are left out: %s", table.path, shorten(absent))
    order = np.full(len(counts), -1)
    order[rows] = np.arange(len(rows))
    return order, np.where(order < 0, "", images.labels)


def is_sharded(path: str | Path) -> bool:
    """Return whether `path` stands for several files: a pattern ('p/*.npy'), or a folder without one per class."""
    path = Path(path)
    try:
        return (path.is_dir() and not is_class_folder(path)) or (not path.exists() and glob.has_magic(str(path)))
    except OSError:  # no such name can be; opening it will say so
        return False


def find_shards(path: str | Path) -> list[Path]:
    """Return the files that a pattern, a folder or a plain path stands for, in natural order: 2 before 10.

    A folder must have files of one format; names that begin with a dot or an underscore are not data.
    """
    path = Path(path)
    if not is_sharded(path):
        return [path]
    if path.is_dir():
        found = [each for each in path.iterdir() if each.suffix.lower() in FORMATS and each.name[0] not in "._"]
        kinds = sorted({each.suffix.lower() for each in found})
        if not found:
            raise FileError(f"Expected files that end in {', '.join(FORMATS)}, got the folder {path} without any.")
        if len(kinds) > 1:
            hint = f"Choose with a pattern, such as '{path / f'*{kinds[-1]}'}'."
            raise FileError(f"Expected files of one format in {path}, got {', '.join(kinds)}. {hint}")
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file()]  # noqa: PTH207
        if not found:
            raise FileError(f"Expected files that match {str(path)!r}, got none.")
    # Every other part is a number, so that only numbers are compared with numbers.
    parts = {each: re.split(r"([0-9]+)", str(each)) for each in found}
    return sorted(found, key=lambda each: [int(p) if at % 2 else p for at, p in enumerate(parts[each])])


def open_shards(
    probs: str | Path,
    labels: str | Path | None = None,
    *,
    label: str | None = None,
    columns: str | None = None,
    ignored: Sequence[str] = (),
    keep: bool = True,
) -> tuple[tuple[Block, ...], tuple[str, ...] | None]:
    """Open shards of probabilities and of labels, paired by name: return blocks, and class names if headers have them.

    `probs` and `labels` are a pattern, a folder or a file each. Without `labels`, or if they are the same, `label` is a
    column of each shard. `columns` is the pattern of the columns of probabilities (see `choose_columns`), and `ignored`
    are others, such as ids. Tables are kept in memory, unless `keep` is False or they are large; see `is_large`.
    """
    apart = labels is not None and (label is None or Path(labels) != Path(probs))
    paths = find_shards(probs)
    if not apart and label is None and paths[0].suffix.lower() in FORMATS:
        check_readable(paths[0])
        raise InputError(f"Expected files of labels, or --label with a column of {probs}, got neither.")
    pairs: Sequence[tuple[Path, Path | None]] = [(path, None) for path in paths]
    if apart and labels:
        label_paths = find_shards(labels)
        if len(paths) != len(label_paths):
            got = f"{len(paths)} for {probs} and {len(label_paths)} for {labels}"
            raise InputError(f"Expected as many files of labels as of probabilities, got {got}.")
        pairs = pair_by_name(paths, label_paths)
    keep &= not is_large(*(path for path in paths if path.suffix.lower() in TABLES))
    opened = [_open(FileRows(path, given, label, columns, tuple(ignored)), keep) for path, given in pairs]
    found = [f"{block.n_classes} without names" if names is None else list(names) for block, names in opened]
    for path, columns_there in zip(paths, found, strict=True):
        if columns_there != found[0]:
            raise InputError(f"Expected the columns {found[0]} in {path} as in {paths[0]}, got {columns_there}.")
    blocks = tuple(block for block, _ in opened if block.n_rows)
    if not blocks:
        raise InputError(f"Expected at least one row of probabilities in {probs}, got none.")
    return blocks, opened[0][1]


def _open(rows: FileRows, keep: bool) -> tuple[Block, tuple[str, ...] | None]:
    """Read a file once: return the block of its rows, and class names."""
    name = str(rows.path) if rows.labels is None else f"{rows.path} and {rows.labels}"
    n_rows, missing, kinds = 0, list[int](), set[str]()
    try:
        for probs, labels, names in rows():  # noqa: B007
            if len(probs):
                check_probability_shape(probs)
            absent = is_missing(labels)
            missing += (n_rows + np.flatnonzero(absent)).tolist()
            kinds |= set() if absent.all() else {labels.dtype.kind}
            n_rows += len(probs)
    except InputError as error:
        hint = f" {_NO_PROBABILITIES}" if isinstance(error, NotNumbersError) else ""
        raise in_block(type(error)(f"{error}{hint}"), name) from None
    block = Block.of_arrays(probs, labels, name, missing)
    # A map of a file that is cut short while it is open ends the process: each pass opens it again.
    if keep and rows.path.suffix.lower() != ".npy":
        return block, names
    return replace(block, source=replace(rows, textual=len(kinds) > 1 and "U" in kinds), n_given=n_rows), names


def pair_by_name(paths: Sequence[Path], labels: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Return files in pairs: probs-1 with labels-1. Only what varies within each list counts; 01 is 1."""
    theirs, own = dict(zip(_varying(labels), labels, strict=True)), _varying(paths)
    if len(paths) > 1 and {*own} != {*theirs}:
        alone = next((path for path, key in zip(paths, own, strict=True) if key not in theirs), paths[0])
        raise InputError(
            "Expected files that pair by name, such as probs-1.npy and labels-1.npy, got none of labels for"
            f" {alone}. Rename them so that the same part varies in both."
        )
    return [(path, theirs.get(key, labels[0])) for path, key in zip(paths, own, strict=True)]


def _varying(paths: Sequence[Path]) -> list[str]:
    """Return the part of each name that is not common to all, leading zeros aside."""
    names = [str(path.with_suffix("")) for path in paths]
    for _ in range(2):  # from the start, then from the end
        shared = len(os.path.commonprefix(names).rstrip("0123456789"))  # noqa: RUF071
        names = [name[shared:][::-1] for name in names]
    return [name.lstrip("0") for name in names]
