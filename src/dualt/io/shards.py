"""Many files as one data set: shards named by a pattern or a folder, opened one at a time."""

from __future__ import annotations

import glob
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import check_readable
from dualt.io.image_folder import FILE_COLUMN, is_class_folder, read_class_folder
from dualt.io.load import FORMATS, load_array, load_labels
from dualt.io.table_columns import NotNumbersError, Table, choose_columns, open_table, table_parts
from dualt.io.tables import TABLES
from dualt.labels import as_label_array, is_missing
from dualt.rows.posterior import Block, Rows, in_block
from dualt.validation import check_probability_shape, check_same_length, scale_rounded

# Tables of up to this many bytes together are parsed once and kept in memory; larger ones are parsed in every pass.
LARGE_TABLE = 1 << 29
_CELLS_OF_PART = 1 << 22
_NO_PROBABILITIES = (
    "Name the columns of probabilities with --probs, such as 'p_*'; if there are none, name what a model learns from"
    " with --text or --features."
)
_log = logging.getLogger(__name__)
# Probabilities, labels, and the class names that a header has.
Part: TypeAlias = tuple[NDArray[Any], NDArray[Any], tuple[str, ...] | None]


@dataclass(frozen=True)
class FileRows:
    """Reads the rows of a file of probabilities, and their labels in another file or in one of its columns.

    Options are those of `open_shards`.
    """

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    ignored: tuple[str, ...]

    def __call__(self) -> Iterator[Rows]:
        """Yield (probabilities, labels), as many rows at a time as fit memory; `.npy` is memory-mapped."""
        return map(itemgetter(0, 1), self.parts(whole=False))

    def parts(self, *, whole: bool) -> Iterator[Part]:
        """Yield the rows of a table `whole`, or as many at a time as fit memory; of an array, all."""
        apart: Any = None
        parts: Iterable[Any] = self._table_parts(whole)
        if self.labels is not None or self.path.suffix.lower() not in TABLES:
            apart = load_labels(self.labels or self.path, column=self.label, missing=True)
            apart = as_label_array(apart) if len(apart) else apart
        if self.path.suffix.lower() not in TABLES:
            parts = [(load_array(self.path), None, None)]
        n_rows = 0
        for probs, labels, names in parts:
            n_rows += len(probs)
            yield probs, apart[n_rows - len(probs) : n_rows] if labels is None else labels, names
            del probs, labels  # before the next are made
        if apart is not None:
            check_same_length(n_rows, len(apart))

    def _table_parts(self, whole: bool) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None, tuple[str, ...] | None]]:
        """Yield (probabilities, labels if they are in a column, class names)."""
        folder = self.labels if self.labels is not None and is_class_folder(self.labels) else None
        own_label = self.label if self.labels is None else None
        named = own_label or next(iter(self.ignored), None)
        path = check_readable(self.path)
        if whole or folder is not None:
            tables: Iterable[Table] = [open_table(path, named)]
        else:
            n_columns = next(table_parts(path, 1, named)).n_columns
            tables = table_parts(path, max(_CELLS_OF_PART // n_columns, 1), named)
        for table in tables:
            left_out = {name for name in (*self.ignored, own_label or "") if name and name in (table.names or ())}
            order: Any = slice(None)
            if folder is not None:
                column = self.label or FILE_COLUMN
                order = _image_order(table, column, folder)
                left_out.add(column)
            labels = None if own_label is None else table.read_column(own_label)
            places, names = choose_columns(table, left_out, self.columns)
            probs = table.read_numbers(places)[order]
            labels = as_label_array(labels, missing=True) if labels is not None and len(labels) else labels
            scaled = scale_rounded(probs)
            if scaled is not probs:
                _log.warning("The probabilities in %s are rounded to two decimals: rows were rescaled.", path)
            yield scaled, labels, names


def _image_order(table: Table, column: str, folder: Path) -> NDArray[np.intp]:
    """Return the rows of a table in the order of the images in a folder, which one of its columns names."""
    if column not in (table.names or ()):
        raise InputError(
            f"Expected a column of {table.path} that names the images of {folder}, got none called {column!r}."
            " Name it with --id."
        )
    images = read_class_folder(folder)
    rows = np.array(images.rows_of(table.read_texts(column)), np.intp)
    counts = np.bincount(rows, minlength=len(images.files))
    if (counts != 1).any():
        at = int(np.argmax(counts != 1))
        raise InputError(f"Expected one row of {table.path} for {images.files[at]}, got {counts[at]}.")
    return np.argsort(rows)


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

    `probs` and `labels` are a pattern, a folder or a file each. Without `labels`, or if they are the same and there is
    a `label`, each shard is a table with its labels in that column. `columns` is the pattern of the columns of
    probabilities (see `choose_columns`), and `ignored` are others, such as ids, that a table may have.

    `.npy` shards are memory-mapped. Tables are parsed once and kept in memory if all of them have at most half a
    gigabyte together, unless `keep` is False; larger ones are parsed in parts in every pass. Rows without a label are
    left out.
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
    keep &= sum(path.stat().st_size for path in tables) <= LARGE_TABLE
    opened = [_open(FileRows(path, given, label, columns, tuple(ignored)), keep) for path, given in pairs]
    first_names = opened[0][1]
    for block, names in opened[1:]:
        if names != first_names:
            first, other = ("without names" if each is None else ", ".join(each) for each in (first_names, names))
            raise InputError(f"Expected the columns {first} in {block.name} as in {paths[0]}, got {other}.")
    blocks = tuple(block for block, _ in opened if block.n_rows)
    if not blocks:
        raise InputError(f"Expected at least one row of probabilities in {probs}, got none.")
    return blocks, first_names


def _open(rows: FileRows, keep: bool) -> tuple[Block, tuple[str, ...] | None]:
    """Read a file once: return the block of its rows, and class names."""
    name = str(rows.path) if rows.labels is None else f"{rows.path} and {rows.labels}"
    keep &= rows.path.suffix.lower() != ".npy"
    kept: list[Rows] = []
    n_rows, n_classes, dtype, missing, names = 0, 0, np.dtype(np.float64), list[int](), None
    try:
        for probs, labels, names in rows.parts(whole=keep):  # noqa: B007
            if len(probs):
                check_probability_shape(probs)
            missing += (n_rows + np.flatnonzero(is_missing(labels))).tolist()
            n_rows, n_classes, dtype = n_rows + len(labels), probs.shape[1], probs.dtype
            if keep:
                kept.append((probs, labels))
    except InputError as error:
        hint = f" {_NO_PROBABILITIES}" if isinstance(error, NotNumbersError) else ""
        raise in_block(type(error)(f"{error}{hint}"), name) from None
    return Block(partial(iter, kept) if keep else rows, n_rows, n_classes, dtype, name, tuple(missing)), names


def pair_by_name(paths: Sequence[Path], labels: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Return files in pairs: probs-1 with labels-1. Only what varies within each list counts; 01 is 1."""
    theirs = dict(zip(_varying(labels), labels, strict=True))
    own = _varying(paths)
    alone = [path for path, key in zip(paths, own, strict=True) if key not in theirs]
    if len(paths) > 1 and (alone or len(theirs) < len(labels)):
        raise InputError(
            "Expected files that pair by name, such as probs-1.npy and labels-1.npy, got none of labels for"
            f" {(alone or paths)[0]}. Rename them so that the same part varies in both."
        )
    return [(path, theirs.get(key, labels[0])) for path, key in zip(paths, own, strict=True)]


def _varying(paths: Sequence[Path]) -> list[str]:
    """Return what of each name is not at the start or at the end of all names, leading zeros aside."""
    names = [str(path.with_suffix("")) for path in paths]
    for _ in range(2):  # from the start, then from the end
        same = takewhile(lambda signs: len({*signs}) == 1, zip(*names, strict=False))
        shared = len("".join(signs[0] for signs in same).rstrip("0123456789"))
        names = [name[shared:][::-1] for name in names]
    return [name.lstrip("0") for name in names]
