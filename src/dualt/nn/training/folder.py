"""The folder of a run: one training at a time, and no finished one replaced unasked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualt.errors import FileError, InputError
from dualt.nn.training.model import make_folder

_RESULTS = ("run.json", "model.json", "weights.safetensors", "report.html")
CHECKPOINTS = "checkpoints"


@contextmanager
def held_folder(folder: Path, *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold the folder of a run: refuse one that is in use, or has a run in it that is neither resumed nor overwritten.

    Only the main process of several holds it.
    """
    if resume and overwrite:
        raise InputError("Expected --resume or --overwrite, got both.")
    if int(os.environ.get("RANK", "0")):
        yield
        return
    make_folder(folder)
    with _lock(folder / ".lock"):
        if not resume:
            _make_empty(folder, overwrite=overwrite)
        yield


def _make_empty(folder: Path, *, overwrite: bool) -> None:
    found = [name for name in (*_RESULTS, CHECKPOINTS) if (folder / name).exists()]
    if found and not overwrite:
        raise InputError(
            f"There is a run in {folder} already ({', '.join(found)}): pass --resume to go on with it, --overwrite to"
            " replace it, or another folder."
        )
    for name in found:
        if name == CHECKPOINTS:
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, however it ends; where the system has none, go without."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"Another training is at work in {path.parent}: wait for it, or name another folder."
            ) from None
        yield
    finally:
        os.close(handle)
