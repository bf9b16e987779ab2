"""Do what is missing of a grid: here, in several processes, or on a Dask cluster; the records are the same."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from dualt.errors import InputError, TrainingError
from dualt.reproduce.grid import Work, divide
from dualt.reproduce.learning import Place
from dualt.reproduce.records import Record, Store
from dualt.reproduce.spec import Run, describe
from dualt.reproduce.working import do_work
from dualt.rows.cluster import connected

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """How far a sweep is: runs done and in all, what was done last, and the seconds that are probably left."""

    done: int
    total: int
    label: str
    seconds_left: float | None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Options:
    """How to run a sweep.

    Attributes
    ----------
    jobs
        Processes; they share the machine's threads.
    dask
        Address of a scheduler, like `tcp://host:8786`: run there instead.
    retry_failed
        Do the runs again whose records say that they failed.
    data_dir
    """

    jobs: int = 1
    dask: str | None = None
    retry_failed: bool = False
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError(f"Expected at least one job, got {self.jobs}.")


def run_sweep(
    runs: Sequence[Run],
    out: str | Path,
    *,
    together: bool = False,
    options: Options | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Record]:
    """Do every run that has no record below `out`, and return the records of all.

    It can be stopped at any moment, also by `kill -9`, and several can work on one folder: records are
    written whole, and starting again does only what is missing.
    """
    options, store = options or Options(), Store(out)
    store.open()
    known = store.read_all()
    missing = [run for run in runs if not _is_settled(known.get(run.identity), options.retry_failed)]
    work = divide(missing, together)
    progress = _Meter(len(set(missing)), on_progress)
    if work:
        if options.dask is not None:
            _run_on_dask(work, store, options, progress)
        elif options.jobs > 1:
            _run_in_processes(work, store, out, options, progress)
        else:
            place = Place(options.data_dir, Path(out) / "checkpoints")
            for piece in work:
                do_work(piece, place, _keeper(store, progress), store.is_done)
    wanted = {run.identity for run in runs}
    return {identity: record for identity, record in store.read_all().items() if identity in wanted}


def _is_settled(record: Record | None, retry_failed: bool) -> bool:
    return record is not None and (record["status"] == "done" or not retry_failed)


def _keeper(store: Store, progress: _Meter) -> Callable[[Record], None]:
    def keep(record: Record) -> None:
        store.write(record)
        progress.count(record)

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
            self._on_progress(Progress(self._done, self._total, label, left))


def _run_in_processes(work: Iterable[Work], store: Store, out: str | Path, options: Options, meter: _Meter) -> None:
    """Let processes write their records themselves, and count them as they come back."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    threads = max(1, (os.cpu_count() or 1) // options.jobs)
    place = Place(options.data_dir, Path(out) / "checkpoints", threads)
    parallel = joblib.Parallel(n_jobs=options.jobs, backend="loky", return_as="generator_unordered", batch_size=1)
    try:
        for records in parallel(joblib.delayed(_work_here)(piece, place, Path(out)) for piece in work):
            for record in records:
                meter.count(record)
    except TerminatedWorkerError as error:
        raise TrainingError(
            "A worker process was killed, perhaps for want of memory. The records so far are kept; start again"
            " with fewer --jobs to do the rest."
        ) from error


def _work_here(work: Work, place: Place, out: Path) -> list[Record]:
    """Do a piece of work in a process that can write below `out`."""
    store, records = Store(out), []

    def keep(record: Record) -> None:
        store.write(record)
        records.append(record)

    do_work(work, place, keep, store.is_done)
    return records


def _work_away(work: Work, place: Place) -> list[Record]:
    """Do a piece of work on a machine that need not see our folder: the records go home."""
    records: list[Record] = []
    do_work(work, place, records.append, lambda _: False)
    return records


def _run_on_dask(work: Iterable[Work], store: Store, options: Options, meter: _Meter) -> None:
    import joblib

    with connected(str(options.dask)), joblib.parallel_config(backend="dask"):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        place = Place(options.data_dir, None, 1)
        for records in parallel(joblib.delayed(_work_away)(piece, place) for piece in work):
            for record in records:
                store.write(record)
                meter.count(record)
