"""Many files as one data set: shards named by a pattern or a folder, opened one at a time."""

from __future__ import annotations

import glob
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import check_readable
from dualt.io.image_folder import FILE_COLUMN, is_class_folder, natural_order, read_class_folder
from dualt.io.load import FORMATS, load_array, load_labels
from dualt.io.table_columns import NotNumbersError, Table, choose_columns, open_table, table_parts
from dualt.io.tables import TABLES
from dualt.labels import as_label_array, is_missing
from dualt.rows.posterior import Block, Rows, in_block, rows_with_label
from dualt.validation import check_probability_shape, check_same_length, scale_rounded

# Tables of up to this many bytes together are parsed once and kept in memory; larger ones are parsed in every pass.
_KEPT_BYTES = 1 << 29
_CELLS_OF_PART = 1 << 22
_DIVIDED_ENTRIES = 1 << 24
_NO_PROBABILITIES = (
    "Name the columns of probabilities with --probs, such as 'p_*'; if there are none, name what a model learns from"
    " with --text or --features."
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileBlock:
    """A file of probabilities, and its labels in another file or in one of its columns; options as in `open_shards`.

    The block has the rows of the file between `rows`, except those without a label, whose numbers in the file are
    `missing`. What was parsed is in `kept`, unless that is None: then it is parsed in every pass.
    """

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    ignored: tuple[str, ...] = ()
    file_shape: tuple[int, int] = (0, 0)
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009
    rows: tuple[int, int] = (0, 0)
    missing: tuple[int, ...] = ()
    kept: list[Any] | None = field(default_factory=list, compare=False, repr=False)

    def open(self) -> tuple[FileBlock, tuple[str, ...] | None]:
        """Read the file once: return the block with its sizes, and class names."""
        shape, missing, dtype, names = (0, 0), [], self.dtype, None
        for probs, labels, found in self._parts():
            names = found
            if len(probs):
                check_probability_shape(probs)
            missing += (shape[0] + np.flatnonzero(is_missing(labels))).tolist()
            shape, dtype = (shape[0] + len(labels), probs.shape[1]), probs.dtype
        return replace(self, file_shape=shape, rows=(0, shape[0]), dtype=dtype, missing=tuple(missing)), names

    @property
    def name(self) -> str:
        """What to call it in an error."""
        return str(self.path) if self.labels is None else f"{self.path} and {self.labels}"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of classes."""
        low, high = np.searchsorted(self.missing, self.rows)
        return self.rows[1] - self.rows[0] - int(high - low), self.file_shape[1]

    def read(self) -> Iterator[Rows]:
        """Yield (probabilities, labels): memory-mapped if the file can be, as kept if it was parsed before."""
        start = 0
        try:
            for probs, labels, _ in self._parts():
                if probs.shape[1] != self.file_shape[1]:
                    raise self._changed(f"{probs.shape[1]} classes")
                first, last = max(self.rows[0], start), min(self.rows[1], start + len(probs))
                part = rows_with_label(first, max(first, last), self.missing, start)
                if len(labels[part]):
                    yield probs[part], labels[part]
                start += len(probs)
                del probs, labels  # before the next part is made
        except InputError as error:
            raise in_block(error, self.name) from None
        if start != self.file_shape[0]:
            raise self._changed(f"{start:,} rows")

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone."""
        for _, labels in self.read():
            yield labels

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what was parsed: workers parse the file in every pass."""
        return {**self.__dict__, "kept": None}

    def _parts(self) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]]:
        """Yield probabilities, labels and class names, as many rows as fit memory."""
        if self.kept:
            yield from self.kept
            return
        is_table = self.path.suffix.lower() in TABLES
        apart = None
        if not (is_table and self.labels is None):
            apart = load_labels(self.labels or self.path, column=self.label, missing=True)
            apart = as_label_array(apart) if len(apart) else apart
        if is_table:
            for part in self._table_parts(apart):
                if self.kept is not None:
                    self.kept.append(part)
                yield part
            return
        probs, labels = load_array(self.path), apart
        assert labels is not None  # noqa: S101
        check_same_length(len(probs), len(labels))
        if self.kept is not None and self.path.suffix.lower() != ".npy":
            self.kept.append((probs, labels, None))
        yield probs, labels, None

    def _table_parts(
        self, apart: NDArray[Any] | None
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]]:
        folder = self.labels if self.labels is not None and is_class_folder(self.labels) else None
        own_label = self.label if self.labels is None else None
        named = own_label or (self.ignored[0] if self.ignored else None)
        path, start = check_readable(self.path), 0
        if self.kept is not None or folder is not None:
            tables: Iterable[Table] = [open_table(path, named)]
        else:
            n_columns = next(table_parts(path, 1, named)).n_columns
            tables = table_parts(path, max(_CELLS_OF_PART // n_columns, 1), named)
        for table in tables:
            left_out = {name for name in self.ignored if name in (table.names or ())}
            if own_label is not None:
                left_out.add(own_label)
            order = None
            if folder is not None:
                order, column = self._order(table, folder)
                left_out.add(column)
            places, names = choose_columns(table, left_out, self.columns)
            probs = table.read_numbers(places)
            probs = probs if order is None else probs[order]
            if apart is None:
                labels = table.read_column(table.position(own_label or ""))
                labels = as_label_array(labels, missing=True) if len(labels) else labels
            else:
                labels = apart[start : start + len(probs)]
            scaled = scale_rounded(probs)
            if scaled is not probs:
                _log.warning("The probabilities in %s are rounded to two decimals: rows were rescaled.", path)
            start += len(probs)
            yield scaled, labels, names
        if apart is not None:
            check_same_length(start, len(apart))

    def _order(self, table: Table, folder: Path) -> tuple[NDArray[np.intp], str]:
        """Return the rows of a table in the order of the image files that they name, and the column that does."""
        column = self.label or FILE_COLUMN
        if column not in (table.names or ()):
            raise InputError(
                f"Expected a column of {self.path} that names the images of {folder}, got none called {column!r}."
                " Name it with --id."
            )
        images, names = read_class_folder(folder), table.read_texts(table.position(column))
        rows = np.array(images.rows_of(names), np.intp)
        counts = np.bincount(rows, minlength=len(images.files))
        if (counts != 1).any():
            at = int(np.argmax(counts != 1))
            raise InputError(f"Expected one row of {self.path} for {images.files[at]}, got {counts[at]}.")
        return np.argsort(rows), column

    def _changed(self, got: str) -> FileError:
        n_rows, n_classes = self.file_shape
        return FileError(
            f"Expected {n_rows:,} rows of {n_classes} classes in {self.name} as before, got {got}: it changed while it"
            " was read."
        )


@dataclass(frozen=True)
class Shards:
    """Blocks of files, in order, and class names if their headers have them."""

    blocks: tuple[Block, ...]
    class_names: tuple[str, ...] | None = None


def is_sharded(path: str | Path) -> bool:
    """Return whether `path` stands for several files: a folder, or a pattern such as 'probs/*.npy'.

    Images in a folder per class are one table of labels.
    """
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
            raise FileError(
                f"Expected files of one format in {path}, got {', '.join(kinds)}. Choose with a pattern, such as"
                f" '{path / f'*{kinds[-1]}'}'."
            )
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file()]  # noqa: PTH207
        if not found:
            raise FileError(f"Expected files that match {str(path)!r}, got none.")
    return sorted(found, key=natural_order)


def open_shards(
    probs: str | Path,
    labels: str | Path | None = None,
    *,
    label: str | None = None,
    columns: str | None = None,
    ignored: Sequence[str] = (),
) -> Shards:
    """Open shards of probabilities and of labels, paired by name, and check that they belong together.

    `.npy` shards are memory-mapped. Tables are parsed once and kept in memory if all of them have at most half a
    gigabyte together; larger ones are parsed in parts in every pass. Rows without a label are left out; the blocks'
    `missing` are their numbers.

    Parameters
    ----------
    probs, labels
        A pattern, a folder or a file each. Without `labels`, or if they are the same and `label` is given, each shard
        is a table that has its labels in that column.
    label
        Name of the label column.
    columns
        Pattern of the columns of probabilities; see `choose_columns`.
    ignored
        Columns of the probabilities' tables that are something else, such as ids; those a table has not do no harm.
    """
    apart = labels is not None and (label is None or Path(labels) != Path(probs))
    if not apart and label is None:
        raise InputError(f"Expected files of labels, or --label with a column of {probs}, got neither.")
    paths = find_shards(probs)
    pairs: Sequence[tuple[Path, Path | None]] = [(path, None) for path in paths]
    if apart and labels:
        label_paths = find_shards(labels)
        if len(paths) != len(label_paths):
            raise InputError(
                f"Expected as many files of labels as of probabilities, got {len(paths)} for {probs} and"
                f" {len(label_paths)} for {labels}."
            )
        pairs = pair_by_name(paths, label_paths)
    tables = [path for path in paths if path.suffix.lower() in TABLES and path.is_file()]
    keep = sum(path.stat().st_size for path in tables) <= _KEPT_BYTES
    opened = []
    for path, given in pairs:
        block = FileBlock(path, given, label, columns, tuple(ignored), kept=[] if keep else None)
        try:
            opened.append(block.open())
        except InputError as error:
            hint = f" {_NO_PROBABILITIES}" if isinstance(error, NotNumbersError) else ""
            raise in_block(type(error)(f"{error}{hint}"), block.name) from None
    first_names = opened[0][1]
    for block, names in opened[1:]:
        if names != first_names:
            first, other = ("without names" if each is None else ", ".join(each) for each in (first_names, names))
            raise InputError(f"Expected the columns {first} in {block.name} as in {paths[0]}, got {other}.")
    blocks = tuple(block for block, _ in opened if block.shape[0])
    if not blocks:
        raise InputError(f"Expected at least one row of probabilities in {probs}, got none.")
    return Shards(blocks, first_names)


def pair_by_name(paths: Sequence[Path], labels: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Return files in pairs: probs-1 with labels-1. Only what varies within each list counts; 01 is 1."""
    if len(paths) == 1:
        return [(paths[0], labels[0])]
    own, theirs = _varying(paths), _varying(labels)
    alone = [str(path) for key, path in own.items() if key not in theirs]
    if alone or len(own) != len(paths) or len(theirs) != len(labels):
        raise InputError(
            "Expected files that pair by name, such as probs-1.npy and labels-1.npy, got none of labels for"
            f" {alone[0] if alone else paths[0]}. Rename them so that the same part varies in both."
        )
    return [(path, theirs[key]) for key, path in own.items()]


def _varying(paths: Sequence[Path]) -> dict[tuple[Any, ...], Path]:
    """Return the files by the words and numbers of their names in which they differ, in their order."""
    parts = [re.findall(r"[0-9]+|[^\W\d_]+", str(path.with_suffix(""))) for path in paths]
    if len({*map(len, parts)}) > 1:
        return {(path.stem,): path for path in paths}
    places = [place for place, found in enumerate(zip(*parts, strict=True)) if len({*found}) > 1]
    keys = (tuple(int(part[at]) if part[at].isdecimal() else part[at] for at in places) for part in parts)
    return dict(zip(keys, paths, strict=True))


def divide(blocks: Iterable[Block]) -> list[Block]:
    """Return the same rows in smaller blocks, where that costs nothing, for workers to share: `.npy` files."""
    divided: list[Block] = []
    for block in blocks:
        if isinstance(block, FileBlock) and block.path.suffix.lower() == ".npy":
            limits = [*range(*block.rows, max(_DIVIDED_ENTRIES // block.shape[1], 1)), block.rows[1]]
            divided += [replace(block, rows=rows) for rows in pairwise(limits)]
        else:
            divided.append(block)
    return divided
