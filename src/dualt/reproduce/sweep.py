"""Do what is missing of a grid: here, in several processes, or on a Dask cluster; the records are the same."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from dualt.errors import FileError, InputError, TrainingError
from dualt.nn.stages import Stages
from dualt.nn.training.loop import limited_threads
from dualt.reproduce.grid import Work, divide
from dualt.reproduce.learning import Learned, Place, learn_together, prepare
from dualt.reproduce.measuring import measure
from dualt.reproduce.records import Record, Store, failed_record, new_record
from dualt.reproduce.spec import RunSpec, describe
from dualt.rows.cluster import completed, connected, result_of

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is: runs done and in all, what was done last, and the seconds that are probably left."""

    done: int
    total: int
    label: str
    seconds_left: float | None


OnProgress: TypeAlias = Callable[[SweepProgress], None]
Keep: TypeAlias = Callable[[Record], None]


@dataclass(frozen=True)
class SweepOptions:
    """How to run a sweep: in `n_jobs` processes, or on the Dask cluster at an address like `tcp://host:8786`.

    `retry_failed` does the runs again whose records say that they failed.
    """

    n_jobs: int = 1
    dask: str | None = None
    retry_failed: bool = False
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.n_jobs < 1:
            raise InputError(f"Expected n_jobs of at least one process, got {self.n_jobs}.")


def run_sweep(
    runs: Sequence[RunSpec],
    out: str | Path,
    *,
    together: bool = False,
    options: SweepOptions | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Record]:
    """Do every run that has no record below `out`, and return the records of all.

    It can be stopped at any moment, also by `kill -9`, and several can work on one folder: records are
    written whole, and starting again does only what is missing.
    """
    options, store = options or SweepOptions(), Store(out)
    store.open()
    known = store.read_all()
    missing = [run for run in runs if not _is_settled(known.get(run.identity), options.retry_failed)]
    work = divide(missing, together)
    meter = _Meter(len(set(missing)), on_progress)
    if work and options.dask is not None:
        _run_on_dask(work, store, options, meter)
    elif work and options.n_jobs > 1:
        _run_in_processes(work, out, options, meter)
    else:
        place = Place(options.data_dir, Path(out) / "checkpoints")
        for piece in work:
            do_work(piece, place, _into(store, meter.count), store.is_done)
    wanted = {run.identity for run in runs}
    return {identity: record for identity, record in store.read_all().items() if identity in wanted}


def _is_settled(record: Record | None, retry_failed: bool) -> bool:
    return record is not None and (record["status"] == "done" or not retry_failed)


def _into(store: Store, then: Keep) -> Keep:
    def keep(record: Record) -> None:
        store.write(record)
        then(record)

    return keep


class _Meter:
    """Counts records and guesses the time left from the pace so far."""

    def __init__(self, total: int, on_progress: OnProgress | None) -> None:
        self._began, self._done, self._total, self._on_progress = perf_counter(), 0, total, on_progress

    def count(self, record: Record) -> None:
        self._done += 1
        left = (perf_counter() - self._began) / self._done * (self._total - self._done)
        label = describe(record["spec"]) + (" failed" if record["status"] == "failed" else "")
        log.info("%d of %d: %s", self._done, self._total, label)
        if self._on_progress is not None:
            self._on_progress(SweepProgress(self._done, self._total, label, left))


def _run_in_processes(work: Iterable[Work], out: str | Path, options: SweepOptions, meter: _Meter) -> None:
    """Let processes write their records themselves, and count them as they come back."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    place = Place(options.data_dir, Path(out) / "checkpoints", max(1, (os.cpu_count() or 1) // options.n_jobs))
    parallel = joblib.Parallel(n_jobs=options.n_jobs, backend="loky", return_as="generator_unordered", batch_size=1)
    try:
        for records in parallel(joblib.delayed(_work_here)(piece, place, Path(out)) for piece in work):
            for record in records:
                meter.count(record)
    except TerminatedWorkerError as error:
        raise TrainingError(
            "A worker process was killed, perhaps for want of memory. The records so far are kept; start again"
            " with fewer --n-jobs to do the rest."
        ) from error


def _run_on_dask(work: Iterable[Work], store: Store, options: SweepOptions, meter: _Meter) -> None:
    keep = _into(store, meter.count)
    place = Place(options.data_dir, None, 1)
    with connected(str(options.dask)) as client:
        for future in completed(client, client.map(_work_away, list(work), place=place, pure=False)):
            for record in result_of(future):
                keep(record)


def _work_here(work: Work, place: Place, out: Path) -> list[Record]:
    """Do a piece of work in a process that can write below `out`."""
    store, records = Store(out), list[Record]()
    do_work(work, place, _into(store, records.append), store.is_done)
    return records


def _work_away(work: Work, place: Place) -> list[Record]:
    """Do a piece of work on a machine that need not see our folder: the records are sent back."""
    records: list[Record] = []
    do_work(work, place, records.append, lambda _: False)
    return records


def do_work(work: Work, place: Place, keep: Keep, is_done: Callable[[RunSpec], bool]) -> None:
    """Do the runs of `work` that are not done by now, and hand each record to `keep` as soon as it is there.

    A run that fails has a record that says why, and does not stop the others. A disk that is full does.
    """
    work = Work(tuple(run for run in work.runs if not is_done(run)))
    together = len(work.posteriors) > 1
    if together:
        # Nothing resumes a batched run, and its networks are small: no checkpoints.
        place = replace(place, checkpoints=None)
    with limited_threads(place.n_jobs):
        try:
            learned = {posterior: prepare(posterior, place) for posterior in work.posteriors}
            if together:
                learn_together(list(learned.values()))
            else:
                for one in learned.values():
                    one.stages.train("ce")
        except Exception as error:
            for run in work.runs:
                keep(_failure(run, error))
            return
        branches: dict[str, dict[str, Stages]] = {posterior.identity: {} for posterior in learned}
        for run in work.runs:
            if not is_done(run):
                keep(_record(run, learned[run.posterior], branches[run.posterior.identity]))
    for branch in (branch for each in branches.values() for branch in each.values()):
        for file in branch.folder.glob("*.safetensors") if branch.folder is not None else ():
            file.unlink(missing_ok=True)


def _record(run: RunSpec, learned: Learned, branches: dict[str, Stages]) -> Record:
    try:
        return new_record(run, measure(run, learned, branches))
    except Exception as error:
        return _failure(run, error)


def _failure(run: RunSpec, error: Exception) -> Record:
    """Return the record of a failed run; but pass on that nothing can be written, which is no fault of the run."""
    cause = error.__cause__ if isinstance(error, FileError) else error
    if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
        raise FileError(f"{error} The records so far are kept; the same command goes on from there.") from error
    log.warning("%s failed: %s", describe(run.to_dict()), error)
    return failed_record(run, error)
