"""The folder of a run: one training at a time, and no finished one replaced unasked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dualt.errors import FileError, InputError
from dualt.files import atomic_write, json_text, read_json
from dualt.nn.training.model import make_folder

_RESULTS = ("run.json", "model.json", "weights.safetensors", "report.html")
CHECKPOINTS = "checkpoints"
# Beside the checkpoints: what the run that makes them was asked for.
_ASKED = "asked.json"
_REPLACED = ".checkpoints-replaced"
# What `run.json` calls some of it.
_IN_RUN = {"method": "asked_method", "network": "network", "random_state": "random_state"}


@contextmanager
def held_folder(folder: Path, asked: Mapping[str, Any], *, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold the folder of a run: refuse one that is in use, or has a run in it that is neither resumed nor overwritten.

    A run that is overwritten loses its results when those of the new one are written over them, and its checkpoints
    when the new one has a checkpoint: whatever fails before, or kills the process, leaves a finished model as it was.
    A run is resumed only as it was `asked` for. Only the main process of several holds the folder.
    """
    if resume and overwrite:
        raise InputError("Expected --resume or --overwrite, got both.")
    if int(os.environ.get("RANK", "0")):
        yield
        return
    make_folder(folder)
    with _lock(folder / ".lock"):
        _settle(folder)
        if resume:
            _check_asked(folder, asked)
        else:
            _set_aside(folder, overwrite=overwrite)
        try:
            make_folder(folder / CHECKPOINTS)
            with atomic_write(folder / CHECKPOINTS / _ASKED) as stream:
                stream.write(json_text(asked) + "\n")
            yield
        finally:
            _settle(folder)


def _has_checkpoints(folder: Path) -> bool:
    return any((folder / CHECKPOINTS).glob("*.safetensors"))


def _set_aside(folder: Path, *, overwrite: bool) -> None:
    found = [name for name in _RESULTS if (folder / name).exists()]
    if _has_checkpoints(folder):
        found.append(CHECKPOINTS)
    if found and not overwrite:
        raise InputError(
            f"There is a run in {folder} already ({', '.join(found)}): pass --resume to go on with it, --overwrite to"
            " replace it, or another folder."
        )
    if CHECKPOINTS in found:
        (folder / CHECKPOINTS).rename(folder / _REPLACED)


def _settle(folder: Path) -> None:
    """Let go of the checkpoints that were set aside if there are newer ones, else put them back."""
    aside = folder / _REPLACED
    if not aside.exists():
        return
    if not _has_checkpoints(folder):
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
        aside.rename(folder / CHECKPOINTS)
    else:
        shutil.rmtree(aside)


def _check_asked(folder: Path, asked: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was asked for otherwise: the stages before would be of the one, those after not.

    Of folders of earlier versions only what `run.json` tells is known.
    """
    before: Mapping[str, Any] = {}
    if _has_checkpoints(folder) and (folder / CHECKPOINTS / _ASKED).exists():
        before = _mapping(folder / CHECKPOINTS / _ASKED)
    elif (folder / "run.json").exists():
        run = _mapping(folder / "run.json")
        before = {key: run[name] for key, name in _IN_RUN.items() if name in run}
    other = [
        f"{name.replace('_', ' ')} {before[name]!r}, not {value!r}"
        for name, value in asked.items()
        if before.get(name, value) != value
    ]
    if other:
        raise InputError(
            f"The run in {folder} was started with {'; '.join(other)}: resume it with the same options, or pass"
            " --overwrite to replace it."
        )


def _mapping(path: Path) -> Mapping[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise FileError(f"Expected {path} as dualt train writes it, got something else. Pass --overwrite.")
    return content


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, however it ends; where the system has none, go without."""
    if os.name != "posix":
        yield
        return
    handle = _held(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _held(path: Path) -> int:
    """Return the open lock file, held; one that its last holder has just removed is opened anew."""
    import fcntl

    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise FileError(f"Cannot write {path}: {error.strerror}.") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            message = f"Another training is at work in {path.parent}: wait for it, or name another folder."
            raise InputError(message) from None
        try:
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)
