"""Images that change their class folder: planned as a table, carried out without loss, and undone by another table.

A table of moves is a CSV with the columns ``from,to``, paths inside the folder of classes. No file is ever written
over. Before the first move, the moves back are on disk: that file undoes them, also after a crash half-way, because
a move that was not made needs no way back.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from dualt.errors import FileError, InputError
from dualt.files import atomic_write, free_name, open_input
from dualt.io.cells import guard_cell, unguard_cell, write_rows
from dualt.io.image_folder import ClassFolder

HEADER = ["from", "to"]


class Move(NamedTuple):
    """A file and where it goes: paths inside a folder, with slashes."""

    source: str
    target: str


def plan_moves(images: ClassFolder, labels: Sequence[str]) -> list[Move]:
    """Return the moves that put each file into the folder of its label; a name that is taken gets a number."""
    taken: set[str] = set()
    moves = []
    for file, old, new in zip(images.files, images.labels.tolist(), labels, strict=True):
        if old != new:
            target = free_name(images.folder / _checked_class(new) / file.partition("/")[2], taken)
            taken.add(str(target).lower())
            moves.append(Move(file, target.relative_to(images.folder).as_posix()))
    return moves


def _checked_class(name: str) -> str:
    if not name or name.startswith(".") or set(name) & {"/", "\\", "\0"}:
        raise InputError(f"Expected a class that can name a folder, got {name!r}.")
    return name


def save_moves(path: str | Path, moves: Sequence[Move], *, new: bool = False) -> None:
    """Write a table of moves; with `new`, where there is no file yet."""
    if new and Path(path).exists():
        raise FileError(f"Expected a new file, got {path}, which is there.")
    with atomic_write(path) as stream:
        write_rows(stream, [HEADER, *([guard_cell(name) for name in move] for move in moves)])


def is_moves(path: str | Path) -> bool:
    """Tell whether a file is a table of moves by its first line."""
    with open_input(path) as stream:
        first: bytes = stream.readline(64)
    return first.decode("utf-8-sig", "replace").strip().lower() == ",".join(HEADER)


def read_moves(path: str | Path) -> list[Move]:
    """Read a table of moves; paths that lead out of the folder are refused."""
    try:
        with open_input(path, "r") as stream:
            return list(_moves(stream, path))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"Cannot read {path} as a table of moves: {error}.") from None


def _moves(stream: IO[str], path: str | Path) -> Iterator[Move]:
    reader = csv.reader(stream, strict=True)
    if [cell.strip().lower() for cell in next(reader, [])] != HEADER:
        raise InputError(f"Expected the header {','.join(HEADER)} on line 1 of {path}.")
    for cells in filter(None, reader):
        names = [unguard_cell(cell) for cell in cells]
        for name in names:
            parts = name.split("/")
            if len(names) != 2 or len(parts) < 2 or {"", ".", ".."} & {*parts} or "\\" in name or "\0" in name:
                raise InputError(
                    f"Expected a path inside the folder, such as cat/1.png, on line {reader.line_num} of {path},"
                    f" got {','.join(cells)[:80]!r}."
                )
        yield Move(*names)


def make_moves(folder: Path, moves: Sequence[Move], undo: Path) -> int:
    """Move files inside `folder`, all or none, and return how many moved; moves that were made before are passed over.

    The way back is written to `undo`, a new file, before the first move, unless there is nothing to move. If a move
    fails, those before it are taken back.
    """
    _check_moves(folder, moves)
    waiting = [move for move in moves if os.path.lexists(folder / move.source)]
    if not waiting:
        return 0
    save_moves(undo, [Move(move.target, move.source) for move in waiting], new=True)
    begun: list[Move] = []
    made_folders: list[Path] = []
    try:
        for move in waiting:
            begun.append(move)
            target = folder / move.target
            for parent in (each for each in reversed(target.parents) if not each.exists()):
                parent.mkdir()
                made_folders.append(parent)
            _move(folder / move.source, target)
    except BaseException as error:
        for move in reversed(begun):
            _take_back(folder / move.source, folder / move.target)
        for each in reversed(made_folders):
            each.rmdir()
        undo.unlink()
        if isinstance(error, OSError):
            reason = f"{folder / begun[-1].source}: {error.strerror or error}"
            raise FileError(f"Cannot move {reason}. All files are where they were.") from error
        raise
    return len(waiting)


def _check_moves(folder: Path, moves: Sequence[Move]) -> None:
    """Refuse moves whose file is neither at its old nor at its new place, or whose new place another file has."""
    for names in zip(*moves, strict=True):
        name, times = Counter(names).most_common(1)[0]
        if times > 1:
            raise InputError(f"Expected each file once in the moves, got {name} {times} times.")
    for move in moves:
        source, target = folder / move.source, folder / move.target
        if not os.path.lexists(source):
            if not os.path.lexists(target):
                raise FileError(f"Expected {source} to move, got no such file. Nothing was moved.")
        elif os.path.lexists(target) and not _is_same(source, target):
            raise FileError(f"Expected no file at {target} to move {source} to, got one. Nothing was moved.")


def _move(source: Path, target: Path) -> None:
    """Give a file another name, which must be free: `rename` alone would write over a file of that name."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if not _is_same(source, target):  # else a crash came between the two steps
            raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise
        source.rename(target)
        return
    source.unlink()


def _take_back(source: Path, target: Path) -> None:
    """Undo a move, as far as it was made."""
    if os.path.lexists(target) and (not os.path.lexists(source) or _is_same(source, target)):
        _move(target, source)


def _is_same(one: Path, other: Path) -> bool:
    return os.path.samestat(one.lstat(), other.lstat())
