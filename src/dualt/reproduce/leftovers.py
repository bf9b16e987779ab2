"""Remove the checkpoints that have served: those of runs that are done, whoever did them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from dualt.reproduce.cost import lineage
from dualt.reproduce.records import Store
from dualt.reproduce.spec import RunSpec


def remove_checkpoints(runs: Iterable[RunSpec], store: Store) -> None:
    """Remove the checkpoints of the runs that have a record of success, but for what the others start from.

    Another sweep may share the folder. A checkpoint that is younger than the record is not what the record was made
    from: somebody is training there, or has been stopped and will go on.
    """
    if not store.checkpoints.is_dir():
        return
    runs = [run for run in runs if (store.checkpoints / run.posterior.identity).is_dir()]
    done = [run for run in runs if store.is_done(run)]
    needed = {path for run in {*runs} - {*done} for path in _checkpoints(run, store.checkpoints)}
    for run in done:
        with contextlib.suppress(FileNotFoundError):  # the record was moved away
            finished = store.path(run.identity).stat().st_mtime_ns
            for path in {*_checkpoints(run, store.checkpoints)} - needed:
                _remove_older(path, finished)
        own = store.checkpoints / run.posterior.identity
        _remove_empty(own / _branch(run), own)
    _remove_empty(store.checkpoints)


def _checkpoints(run: RunSpec, folder: Path) -> Iterator[Path]:
    """Yield the files that a run may have left: of its posterior, and of the stages of its method."""
    own = folder / run.posterior.identity
    yield from own.glob("ce*.safetensors")  # the network itself, and those of the folds
    for stage in lineage(run.method):
        yield own / _branch(run) / f"{stage}.safetensors"


def _branch(run: RunSpec) -> str:
    return run.estimator or "none"


def _remove_older(path: Path, finished: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # another sweep was faster
        if path.stat().st_mtime_ns <= finished:
            path.unlink()


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # others are still there, or it is gone
            folder.rmdir()
