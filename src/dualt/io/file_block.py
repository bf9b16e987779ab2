"""A file of probabilities and its labels as a block of rows, parsed once and kept."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.io.image_folder import FILE_COLUMN, is_class_folder, read_class_folder
from dualt.io.kept import Kept
from dualt.io.load import TABLES, choose_columns, load_array, load_labels, open_table
from dualt.io.tables import Table
from dualt.label_arrays import as_label_array, is_missing
from dualt.probabilities import scale_rounded
from dualt.rows.blocks import Rows, in_block
from dualt.validation import check_probability_shape, check_same_length

_log = logging.getLogger(__name__)
_Arrays: TypeAlias = tuple[NDArray[Any], ...]
_UNKNOWN: np.dtype[Any] = np.dtype(np.float64)


@dataclass(frozen=True)
class FileBlock:
    """A file of probabilities, and its labels in another file or in one of its columns; options as in `open_shards`.

    Of the file's rows, whose number is in `file_shape`, the block has those between `rows`, except those without a
    label, whose numbers in the file are `missing`. What was parsed is `kept`; a copy that was sent elsewhere keeps
    nothing and parses in every pass.
    """

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    header: bool | None
    ignored: tuple[str, ...] = ()
    file_shape: tuple[int, int] = (0, 0)
    dtype: np.dtype[Any] = _UNKNOWN
    rows: tuple[int, int] = (0, 0)
    missing: tuple[int, ...] = ()
    kept: dict[str, list[list[Kept]]] | None = field(default_factory=dict, compare=False, repr=False)

    def open(self) -> tuple[FileBlock, tuple[str, ...] | None]:
        """Return the block, its sizes known and its labels as many as its rows, and its class names."""
        names = None
        if self._is_table:
            table, places, names = self._table()
        if self._is_table and table.n_rows is not None:
            shape, dtype = (table.n_rows, len(places)), table.dtype(places)
        else:
            probs = next(self._once(self.path, self._parse))[0]
            if len(probs):
                check_probability_shape(probs)
            shape, dtype = (probs.shape[0], probs.shape[1]), probs.dtype
        labels = self._all_labels(shape[0])
        check_same_length(shape[0], len(labels))
        missing = tuple(np.flatnonzero(is_missing(labels)).tolist()) if self._may_miss else ()
        return replace(self, file_shape=shape, dtype=dtype, rows=(0, shape[0]), missing=missing), names

    @property
    def _may_miss(self) -> bool:
        """Whether rows without a label are left out: those of tables are."""
        return (self.labels or self.path).suffix.lower() in TABLES

    def _all_labels(self, n_rows: int) -> NDArray[Any]:
        """Return all labels; if they are known to be all there, something of the same length."""
        if self._own_label is None:
            labels = self._labels_apart()
            return as_label_array(labels) if n_rows else labels
        if "_parse" in (self.kept or {}):
            return next(self._once(self.path, self._parse))[1]  # a table that is parsed to be opened is one portion
        table = open_table(self.path, self.label, self.header)
        place = table.position(self._own_label)
        if not table.may_miss(place):
            return np.broadcast_to(0, n_rows)
        labels = table.read_column(place)
        return as_label_array(labels) if len(labels) else labels

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
            for probs, labels in self._portions():
                if probs.shape[1:] != self.file_shape[1:] or len(labels) != len(probs):
                    raise self._changed(probs.shape, len(labels))
                part = self._chosen(max(low, start), min(high, start + len(probs)), start)
                if len(labels[part]):
                    yield probs[part], labels[part]
                start += len(probs)
                del probs, labels  # before the next portion is made
        except InputError as error:
            raise in_block(error, self.name) from None
        if start != self.file_shape[0]:
            raise self._changed((start, self.file_shape[1]), start)

    def _chosen(self, low: int, high: int, start: int) -> slice | NDArray[np.intp]:
        """Return the places, counted from `start`, of the rows between two numbers that have a label."""
        first, last = np.searchsorted(self.missing, (low, max(low, high)))
        if first == last:
            return slice(low - start, max(low, high) - start)
        return np.setdiff1d(np.arange(low, high), self.missing[first:last]) - start

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone."""
        for _, labels in self.read():
            yield labels

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kept": None}

    @property
    def _is_table(self) -> bool:
        return self.path.suffix.lower() in TABLES

    @property
    def _own_label(self) -> str | None:
        """The column of labels if it is one of the table of probabilities."""
        return self.label if self.labels is None and self._is_table else None

    def _table(self) -> tuple[Table, list[int], tuple[str, ...] | None]:
        own = self._own_label
        table = open_table(self.path, own or (self.ignored[0] if self.ignored else None), self.header)
        left_out = {name for name in self.ignored if name in (table.names or ())}
        if own is not None:
            left_out.add(own)
        if self._folder is not None:
            left_out.add(self._file_column(table))
        return table, *choose_columns(table, left_out, self.columns)

    def _portions(self) -> Iterator[Rows]:
        apart = self._labels_apart() if self._own_label is None else None
        start = 0
        for probs, *own in self._once(self.path, self._parse):
            yield probs, own[0] if apart is None else apart[start : start + len(probs)]
            start += len(probs)

    def _labels_apart(self) -> NDArray[Any]:
        return next(self._once(self.labels or self.path, self._parse_labels))[0]

    def _parse(self) -> Iterator[_Arrays]:
        """Yield the probabilities, and the labels if they are beside them, as many rows as fit memory."""
        if not self._is_table:
            yield (load_array(self.path),)
            return
        table, places, _ = self._table()
        if self._folder is not None:
            yield (self._unrounded(table.read_numbers(places)[self._order(table, self._folder)]),)
        elif self._own_label is None:
            yield from ((self._unrounded(probs),) for probs, _ in table.read(places))
        else:
            for probs, labels in table.read(places, table.position(self._own_label)):
                yield self._unrounded(probs), as_label_array(labels)

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

    def _unrounded(self, probs: NDArray[Any]) -> NDArray[Any]:
        scaled = scale_rounded(probs)
        if scaled is probs:
            return probs
        _log.warning("The probabilities in %s are rounded to two decimals: each row was divided by its sum.", self.path)
        return scaled

    def _parse_labels(self) -> Iterator[_Arrays]:
        path = self.labels or self.path
        labels = load_labels(path, column=self.label, header=self.header, missing=self._may_miss)
        yield (as_label_array(labels) if len(labels) else labels,)

    def _once(self, path: Path, parse: Callable[[], Iterator[_Arrays]]) -> Iterator[_Arrays]:
        """Yield what `parse` makes of a file, which is kept, unless it needs no parsing or there is no room."""
        if self.kept is None or path.suffix.lower() == ".npy":
            return parse()
        what = parse.__name__
        if what not in self.kept:
            try:
                self.kept[what] = [[Kept(array) for array in arrays] for arrays in parse()]
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                _log.warning("No room to keep what was read of %s: it is parsed in every pass. Set TMPDIR.", path)
                return parse()
        return (tuple(array.read() for array in arrays) for arrays in self.kept[what])

    def _changed(self, shape: tuple[int, ...], n_labels: int) -> FileError:
        return FileError(
            f"Expected {self.file_shape[0]:,} rows of {self.file_shape[1]} classes in {self.name} as before, got shape"
            f" {shape} and {n_labels:,} labels: it changed while it was read."
        )
