"""Many files as one data set: shards named by a pattern or a folder, opened one at a time."""

from __future__ import annotations

import glob
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import check_readable
from dualt.io.image_folder import FILE_COLUMN, is_class_folder, natural_order, read_class_folder
from dualt.io.load import FORMATS, load_array, load_labels
from dualt.io.table_columns import NotNumbersError, Table, choose_columns, open_table, table_parts
from dualt.io.tables import TABLES
from dualt.labels import as_label_array, is_missing
from dualt.rows.posterior import Block, Rows, in_block
from dualt.validation import check_probability_shape, check_same_length, scale_rounded

# Tables of up to this many bytes together are parsed once and kept in memory; larger ones are parsed in every pass.
LARGE_TABLE = 1 << 29
_CELLS_OF_PART = 1 << 22
_DIVIDED_ENTRIES = 1 << 24
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

    Options are those of `open_shards`. `limits` are the first row and the one after the last, if not all are read. What
    was parsed is in `kept`, unless that is None: then it is parsed in every pass.
    """

    path: Path
    labels: Path | None
    label: str | None
    columns: str | None
    ignored: tuple[str, ...]
    kept: list[Part] | None = field(compare=False, repr=False)
    limits: tuple[int | None, int | None] = (None, None)

    def __call__(self) -> Iterator[Rows]:
        """Yield (probabilities, labels): memory-mapped if the file can be, as kept if it was parsed before."""
        for probs, labels, _ in self.parts():
            yield probs[slice(*self.limits)], labels[slice(*self.limits)]

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what was parsed: workers parse the file in every pass."""
        return {**self.__dict__, "kept": None}

    def open(self) -> tuple[Block, tuple[str, ...] | None]:
        """Read the file once: return the block of its rows, and class names."""
        name = str(self.path) if self.labels is None else f"{self.path} and {self.labels}"
        n_rows, n_classes, dtype, missing, names = 0, 0, np.dtype(np.float64), list[int](), None
        try:
            for probs, labels, names in self.parts():  # noqa: B007
                if len(probs):
                    check_probability_shape(probs)
                missing += (n_rows + np.flatnonzero(is_missing(labels))).tolist()
                n_rows, n_classes, dtype = n_rows + len(labels), probs.shape[1], probs.dtype
        except InputError as error:
            hint = f" {_NO_PROBABILITIES}" if isinstance(error, NotNumbersError) else ""
            raise in_block(type(error)(f"{error}{hint}"), name) from None
        return Block(self, n_rows, n_classes, dtype, name, tuple(missing)), names

    def parts(self) -> Iterator[Part]:
        """Yield as many rows as fit memory at a time."""
        if self.kept:
            yield from self.kept
            return
        apart: Any = None
        if self.labels is not None or self.path.suffix.lower() not in TABLES:
            apart = load_labels(self.labels or self.path, column=self.label, missing=True)
            apart = as_label_array(apart) if len(apart) else apart
        n_rows, parts = 0, self._table_parts()
        if self.path.suffix.lower() not in TABLES:
            parts = iter([(load_array(self.path), None, None)])
        for probs, labels, names in parts:
            part = probs, apart[n_rows : n_rows + len(probs)] if labels is None else labels, names
            n_rows += len(probs)
            if self.kept is not None and self.path.suffix.lower() != ".npy":
                self.kept.append(part)
            yield part
            del probs, part  # before the next is made
        if apart is not None:
            check_same_length(n_rows, len(apart))

    def _table_parts(self) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None, tuple[str, ...] | None]]:
        """Yield (probabilities, labels if they are in a column, class names)."""
        folder = self.labels if self.labels is not None and is_class_folder(self.labels) else None
        own_label = self.label if self.labels is None else None
        named = own_label or next(iter(self.ignored), None)
        path = check_readable(self.path)
        if self.kept is not None or folder is not None:
            tables: Iterable[Table] = [open_table(path, named)]
        else:
            n_columns = next(table_parts(path, 1, named)).n_columns
            tables = table_parts(path, max(_CELLS_OF_PART // n_columns, 1), named)
        for table in tables:
            left_out = {name for name in (*self.ignored, own_label or "") if name and name in (table.names or ())}
            order: Any = slice(None)
            if folder is not None:
                order, column = self._order(table, folder)
                left_out.add(column)
            labels = None if own_label is None else table.read_column(own_label)
            places, names = choose_columns(table, left_out, self.columns)
            probs = table.read_numbers(places)[order]
            labels = as_label_array(labels, missing=True) if labels is not None and len(labels) else labels
            scaled = scale_rounded(probs)
            if scaled is not probs:
                _log.warning("The probabilities in %s are rounded to two decimals: rows were rescaled.", path)
            yield scaled, labels, names

    def _order(self, table: Table, folder: Path) -> tuple[NDArray[np.intp], str]:
        """Return the rows of a table in the order of the image files that they name, and the column that does."""
        column = self.label or FILE_COLUMN
        if column not in (table.names or ()):
            raise InputError(
                f"Expected a column of {self.path} that names the images of {folder}, got none called {column!r}."
                " Name it with --id."
            )
        images, names = read_class_folder(folder), table.read_texts(column)
        rows = np.array(images.rows_of(names), np.intp)
        counts = np.bincount(rows, minlength=len(images.files))
        if (counts != 1).any():
            at = int(np.argmax(counts != 1))
            raise InputError(f"Expected one row of {self.path} for {images.files[at]}, got {counts[at]}.")
        return np.argsort(rows), column


class Shards(NamedTuple):
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

    `probs` and `labels` are a pattern, a folder or a file each. Without `labels`, or if they are the same and there is
    a `label`, each shard is a table with its labels in that column. `columns` is the pattern of the columns of
    probabilities (see `choose_columns`), and `ignored` are others, such as ids, that a table may have.

    `.npy` shards are memory-mapped. Tables are parsed once and kept in memory if all of them have at most half a
    gigabyte together; larger ones are parsed in parts in every pass. Rows without a label are left out.
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
    keep = sum(path.stat().st_size for path in tables) <= LARGE_TABLE
    options = label, columns, tuple(ignored)
    opened = [FileRows(path, given, *options, kept=[] if keep else None).open() for path, given in pairs]
    first_names = opened[0][1]
    for block, names in opened[1:]:
        if names != first_names:
            first, other = ("without names" if each is None else ", ".join(each) for each in (first_names, names))
            raise InputError(f"Expected the columns {first} in {block.name} as in {paths[0]}, got {other}.")
    blocks = tuple(block for block, _ in opened if block.n_rows)
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
        rows = block.source
        if isinstance(rows, FileRows) and rows.path.suffix.lower() == ".npy" and not block.missing:
            limits = [*range(0, block.n_given, max(_DIVIDED_ENTRIES // block.n_classes, 1)), block.n_given]
            divided += [
                replace(block, source=replace(rows, limits=(low, high)), n_given=high - low)
                for low, high in pairwise(limits)
            ]
        else:
            divided.append(block)
    return divided
