"""Many files as one data set: shards named by a pattern or a folder, opened one at a time."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.io.file_block import FileBlock
from dualt.io.image_folder import is_class_folder, natural_order
from dualt.io.load import FORMATS
from dualt.io.tables import NotNumbersError
from dualt.rows.blocks import Block, in_block

_DIVIDED_ENTRIES = 1 << 24
_NO_PROBABILITIES = (
    "Name the columns of probabilities with --probs, such as 'p_*'; if there are none, name what a model learns from"
    " with --text or --features."
)


@dataclass(frozen=True)
class Shards:
    """Blocks of files, in order, and class names if their headers have them."""

    blocks: tuple[Block, ...]
    class_names: tuple[str, ...] | None = None


def is_sharded(path: str | Path) -> bool:
    """Tell whether `path` stands for several files: a folder, or a pattern such as 'probs/*.npy'.

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
    `.npy` shards are memory-mapped. The others are parsed once: text and `.npz` a file at a time when they are opened,
    Parquet a row group or less at a time when it is first read. What was parsed is kept in memory or in a temporary
    file (see `dualt.io.kept`) as long as its block. A shard without rows is left out.
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
    opened = [_open(FileBlock(path, given, label, columns, header, tuple(ignored))) for path, given in pairs]
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
