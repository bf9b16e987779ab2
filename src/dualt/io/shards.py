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
from dualt.files import open_input
from dualt.io.image_folder import FILE_COLUMN, is_class_folder, natural_order, read_class_folder
from dualt.io.load import FORMATS, load_array, load_labels
from dualt.io.table_columns import NotNumbersError, Table, choose_columns, has_header, open_table
from dualt.io.tables import TABLES, TEXT, find_dialect, reading, table_chunks
from dualt.labels import as_label_array, is_missing
from dualt.rows.posterior import Block, Rows, in_block, rows_with_label
from dualt.validation import check_probability_shape, check_same_length, scale_rounded

# Tables of up to this many bytes together are parsed once and kept in memory; larger ones are parsed in every pass.
_KEPT_BYTES = 1 << 29
_CELLS_OF_CHUNK = 1 << 22
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
    `missing`. What was parsed is in `kept`, unless that is None.
    """

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    header: bool | None
    ignored: tuple[str, ...] = ()
    file_shape: tuple[int, int] = (0, 0)
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009
    rows: tuple[int, int] = (0, 0)
    missing: tuple[int, ...] = ()
    kept: dict[str, Any] | None = field(default_factory=dict, compare=False, repr=False)

    def open(self) -> tuple[FileBlock, tuple[str, ...] | None]:
        """Read the file once, or its labels alone if it is large: return the block with its sizes, and class names."""
        n_rows, missing, first = 0, [], None
        for probs, labels, names in self._portions(sizes_only=self.kept is None):
            if first is None:
                first = probs, names
                if len(probs):
                    check_probability_shape(probs)
            missing += (n_rows + np.flatnonzero(is_missing(labels))).tolist()
            n_rows += len(labels)
        probs, names = first or (np.empty((0, 0)), None)
        shape = n_rows, probs.shape[1] if probs.ndim > 1 else 0
        return replace(self, file_shape=shape, rows=(0, n_rows), dtype=probs.dtype, missing=tuple(missing)), names

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
        low, high = self.rows
        start = 0
        try:
            for probs, labels, _ in self._portions():
                if probs.shape[1] != self.file_shape[1]:
                    raise self._changed(f"{probs.shape[1]} classes")
                first, last = max(low, start), min(high, start + len(probs))
                if first < last:
                    part = rows_with_label(first, last, self.missing, start)
                    if len(labels[part]):
                        yield probs[part], labels[part]
                start += len(probs)
                del probs, labels  # before the next portion is made
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

    def _portions(
        self, *, sizes_only: bool = False
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]]:
        """Yield probabilities, labels and class names, as many rows as fit memory.

        With `sizes_only`, all but the first portion of a large table may have no more than its labels.
        """
        if self.kept and "portion" in self.kept:
            yield self.kept["portion"]
            return
        apart = None if self._own_label else self._labels_apart()
        if self.path.suffix.lower() not in TABLES:
            assert apart is not None  # noqa: S101
            probs = load_array(self.path)
            check_same_length(len(probs), len(apart))
            if self.kept is not None and self.path.suffix.lower() != ".npy":
                self.kept["portion"] = probs, apart, None
            yield probs, apart, None
        elif self.kept is not None or self._folder is not None:
            portion = self._parsed(open_table(self.path, self._named, self.header), apart)
            if self.kept is not None:
                self.kept["portion"] = portion
            yield portion
        else:
            yield from self._in_chunks(apart, sizes_only)

    def _in_chunks(
        self, apart: NDArray[Any] | None, sizes_only: bool
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]]:
        header, decimal, start = True, ".", 0
        if self.path.suffix.lower() in TEXT:
            with reading(self.path), open_input(self.path, "r") as stream:
                dialect = find_dialect(stream, self.path)
            header, decimal = has_header(dialect.rows, dialect.decimal, self._named, self.header), dialect.decimal
        first = next(table_chunks(self.path, 1, header=header))
        n_rows = max(_CELLS_OF_CHUNK // max(first.shape[1], 1), 1)
        names = tuple(map(str, first.columns)) if header else None
        wanted = None
        if sizes_only and names is not None:
            yield_first = self._parsed(Table(self.path, first, names, decimal), None if apart is None else apart[:1])
            yield yield_first[0][:0], yield_first[1][:0], yield_first[2]
            wanted = [self._own_label or names[0]]
        for frame in table_chunks(self.path, n_rows, header=header, columns=wanted):
            table = Table(self.path, frame, None if names is None else tuple(map(str, frame.columns)), decimal)
            own = None if apart is None else apart[start : start + len(frame)]
            if wanted is None:
                yield self._parsed(table, own)
            else:
                yield np.empty((len(frame), 0)), table.read_column(0) if own is None else own, None
            start += len(frame)
        if apart is not None:
            check_same_length(start, len(apart))

    def _parsed(
        self, table: Table, apart: NDArray[Any] | None
    ) -> tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]:
        """Return the probabilities, labels and class names of a table, or of a chunk of one."""
        left_out = {name for name in self.ignored if name in (table.names or ())}
        if self._own_label is not None:
            left_out.add(self._own_label)
        if self._folder is not None:
            left_out.add(self._file_column(table))
        places, names = choose_columns(table, left_out, self.columns)
        probs = table.read_numbers(places)
        if self._folder is not None:
            probs = probs[self._order(table, self._folder)]
        if apart is None:
            labels = table.read_column(table.position(self._own_label or ""))
            apart = as_label_array(labels) if len(labels) else labels
        check_same_length(len(probs), len(apart))
        scaled = scale_rounded(probs)
        if scaled is not probs:
            _log.warning("The probabilities in %s are rounded to two decimals: rows were rescaled.", self.path)
        return scaled, apart, names

    def _labels_apart(self) -> NDArray[Any]:
        if self.kept is None or "labels" not in self.kept:
            path = self.labels or self.path
            labels = load_labels(path, column=self.label, header=self.header, missing=True)
            labels = as_label_array(labels) if len(labels) else labels
            if self.kept is None:
                return labels
            self.kept["labels"] = labels
        found: NDArray[Any] = self.kept["labels"]
        return found

    @property
    def _own_label(self) -> str | None:
        """The column of labels if it is one of the table of probabilities."""
        return self.label if self.labels is None and self.path.suffix.lower() in TABLES else None

    @property
    def _named(self) -> str | None:
        """A column that the table must have, by which its header is known."""
        return self._own_label or (self.ignored[0] if self.ignored else None)

    @property
    def _folder(self) -> Path | None:
        """The folder of class folders if it is what labels the rows."""
        return self.labels if self.labels is not None and is_class_folder(self.labels) else None

    def _file_column(self, table: Table) -> str:
        """Return the column that names the image files of a folder."""
        column = self.label or FILE_COLUMN
        if column not in (table.names or ()):
            raise InputError(
                f"Expected a column of {self.path} that names the images of {self.labels}, got none called {column!r}."
                " Name it with --id."
            )
        return column

    def _order(self, table: Table, folder: Path) -> NDArray[np.intp]:
        """Return the rows of a table in the order of the image files that they name."""
        images, names = read_class_folder(folder), table.read_texts(table.position(self._file_column(table)))
        rows = np.array(images.rows_of(names), np.intp)
        counts = np.bincount(rows, minlength=len(images.files))
        if (counts != 1).any():
            at = int(np.argmax(counts != 1))
            raise InputError(f"Expected one row of {self.path} for {images.files[at]}, got {counts[at]}.")
        return np.argsort(rows)

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
    return sorted(found, key=natural_order)


def _in_folder(folder: Path, ending: str | None) -> list[Path]:
    wanted = FORMATS if ending is None else (f".{ending.lower().removeprefix('.')}",)
    found = [each for each in folder.iterdir() if each.suffix.lower() in wanted and each.name[0] not in "._"]
    kinds = sorted({each.suffix.lower() for each in found})
    if not found:
        raise FileError(f"Expected files that end in {', '.join(wanted)}, got the folder {folder} without any.")
    if len(kinds) > 1:
        raise FileError(f"Expected files of one format in {folder}, got {', '.join(kinds)}. Choose with --format.")
    return sorted(found, key=natural_order)


def open_shards(
    probs: str | Path,
    labels: str | Path | None = None,
    *,
    label: str | None = None,
    columns: str | None = None,
    ending: str | None = None,
    header: bool | None = None,
    ignored: Sequence[str] = (),
) -> Shards:
    """Open shards of probabilities and of labels, paired by name, and check that they belong together.

    Rows without a label are left out; the blocks' `missing` are their numbers.

    Parameters
    ----------
    probs, labels
        A pattern, a folder or a file each. Without `labels`, or if they are the same and `label` is given, each shard
        is a table that has its labels in that column.
    label
        Name of the label column.
    columns
        Pattern of the columns of probabilities; see `choose_columns`.
    ending
        Which files of a folder to take.
    header
        Whether the first line of a table in text names its columns; see `open_table`.
    ignored
        Columns of the probabilities' tables that are something else, such as ids; those a table has not do no harm.

    Notes
    -----
    `.npy` shards are memory-mapped. Tables are parsed once and kept in memory if all of them have at most half a
    gigabyte together; larger ones are parsed in chunks in every pass. A shard without rows is left out.
    """
    apart = labels is not None and (label is None or Path(labels) != Path(probs))
    if not apart and label is None:
        raise InputError(f"Expected files of labels, or --label with a column of {probs}, got neither.")
    paths = find_shards(probs, ending)
    pairs: Sequence[tuple[Path, Path | None]] = [(path, None) for path in paths]
    if apart and labels:
        label_paths = find_shards(labels, ending)
        if len(paths) != len(label_paths):
            raise InputError(
                f"Expected as many files of labels as of probabilities, got {len(paths)} for {probs} and"
                f" {len(label_paths)} for {labels}."
            )
        pairs = pair_by_name(paths, label_paths)
    tables = [path for path in paths if path.suffix.lower() in TABLES and path.is_file()]
    keep = sum(path.stat().st_size for path in tables) <= _KEPT_BYTES
    opened = [
        _open(FileBlock(path, given, label, columns, header, tuple(ignored), kept={} if keep else None))
        for path, given in pairs
    ]
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


def labelled_rows(blocks: Iterable[Block]) -> tuple[NDArray[np.intp] | None, int]:
    """Return the numbers of the rows that have a label, counted over all files, and the number of all rows.

    None if all have one.
    """
    numbers, start, missing = [], 0, False
    for block in blocks:
        n_rows, without = getattr(block, "file_shape", block.shape)[0], getattr(block, "missing", ())
        numbers.append(start + np.setdiff1d(np.arange(n_rows), without))
        start, missing = start + n_rows, missing or bool(without)
    return (np.concatenate(numbers) if missing else None), start


def _listed(names: tuple[str, ...] | None) -> str:
    return "without names" if names is None else ", ".join(names)


def _open(block: FileBlock) -> tuple[Block, tuple[str, ...] | None]:
    try:
        return block.open()
    except NotNumbersError as error:
        raise in_block(InputError(f"{error} {_NO_PROBABILITIES}"), block.name) from None
    except InputError as error:
        raise in_block(error, block.name) from None


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
