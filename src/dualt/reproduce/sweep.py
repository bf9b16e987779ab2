"""Do what is missing of a grid: here, in several processes, or on a Dask cluster; the records are the same."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from dualt.errors import FileError, InputError, TrainingError
from dualt.nn.config import method_of
from dualt.nn.stages import train_stages
from dualt.nn.training import EpochRecord
from dualt.nn.training.loop import limited_threads
from dualt.reproduce.cost import epoch_cost, epochs_of, lineage, total_cost
from dualt.reproduce.grid import divide
from dualt.reproduce.learning import Learned, Place, prepare
from dualt.reproduce.leftovers import remove_checkpoints
from dualt.reproduce.measuring import matrix_to_train_through, measure
from dualt.reproduce.records import Record, Store, failed_record, new_record
from dualt.reproduce.spec import PosteriorSpec, RunSpec, describe
from dualt.rows.cluster import completed, connected, result_of

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is: runs done and in all, what was done last, and the seconds that are probably left.

    `share` is of the cost: a run of 200 epochs counts for more than a matrix read off a posterior. `finished` tells
    that the label names a run, not an epoch.
    """

    done: int
    total: int
    label: str
    seconds_left: float | None
    share: float = 0.0
    finished: bool = False


OnProgress: TypeAlias = Callable[[SweepProgress], None]
Keep: TypeAlias = Callable[[Record], None]
OnWorkEpoch: TypeAlias = Callable[[PosteriorSpec, str, EpochRecord], None]


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
    known = {key for key, record in store.read_all().items() if record["status"] == "done" or not options.retry_failed}
    missing = [run for run in runs if run.identity not in known]
    work = divide(missing, together)
    meter = _Meter(missing, on_progress)
    if work and options.dask is not None:
        _run_on_dask(work, store, options, meter)
    elif work and options.n_jobs > 1:
        _run_in_processes(work, store, options, meter)
    else:
        place = Place(options.data_dir, store.checkpoints)
        for piece in work:
            do_work(piece, place, store, meter.count, meter.epoch)
    # Those of runs that were done before this sweep, which was stopped then, are still there.
    remove_checkpoints(runs, store)
    wanted = {run.identity for run in runs}
    return {identity: record for identity, record in store.read_all().items() if identity in wanted}


class _Meter:
    """Counts records and epochs, and guesses the time left from what the epochs so far have cost."""

    def __init__(self, runs: Sequence[RunSpec], on_progress: OnProgress | None) -> None:
        self._began, self._on_progress = perf_counter(), on_progress
        self._done, self._total = 0, len(set(runs))
        self._paid, self._cost = 0.0, total_cost(runs)
        self._epochs = {
            (run.posterior, stage): epochs_of(run, stage) for run in runs for stage in ("ce", *lineage(run.method))
        }
        if runs:
            self._say("starts")

    def epoch(self, posterior: PosteriorSpec, stage: str, record: EpochRecord) -> None:
        name = method_of(stage)
        self._paid += epoch_cost(posterior, name)
        words = describe({"posterior": posterior.to_dict(), "estimator": None, "method": stage})
        self._say(f"{words}, epoch {record.epoch + 1} of {self._epochs.get((posterior, name), '?')}")

    def work(self, records: Iterable[Record], cost: float) -> None:
        """Count records that come in one go, when their epochs could not be watched."""
        self._paid += cost
        for record in records:
            self.count(record)

    def count(self, record: Record) -> None:
        self._done += 1
        label = describe(record["spec"]) + (" failed" if record["status"] == "failed" else "")
        self._say(label, finished=True)

    def _say(self, label: str, *, finished: bool = False) -> None:
        log.info("%s", label)
        if self._on_progress is not None:
            share = 1.0 if self._done == self._total else min(self._paid / self._cost, 1.0) if self._cost else 0.0
            left = (perf_counter() - self._began) * (1 - share) / share if share else None
            self._on_progress(SweepProgress(self._done, self._total, label, left, share, finished))


def _run_in_processes(work: Iterable[Sequence[RunSpec]], store: Store, options: SweepOptions, meter: _Meter) -> None:
    """Let processes write their records themselves, and count them as they come back."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    place = Place(options.data_dir, store.checkpoints, max(1, (os.cpu_count() or 1) // options.n_jobs))
    parallel = joblib.Parallel(n_jobs=options.n_jobs, backend="loky", return_as="generator_unordered", batch_size=1)
    try:
        for records, cost in parallel(joblib.delayed(_work)(piece, place, store) for piece in work):
            meter.work(records, cost)
    except TerminatedWorkerError as error:
        raise TrainingError(
            "A worker process was killed, perhaps for want of memory. The records so far are kept; start again"
            " with fewer --n-jobs to do the rest."
        ) from error


def _run_on_dask(work: Iterable[Sequence[RunSpec]], store: Store, options: SweepOptions, meter: _Meter) -> None:
    """Let machines that need not see our folder send their records back."""
    place = Place(options.data_dir, None, 1)
    with connected(str(options.dask)) as client:
        for future in completed(client, client.map(_work, list(work), place=place, store=None, pure=False)):
            records, cost = result_of(future)
            for record in records:
                store.write(record)
            meter.work(records, cost)


def _work(runs: Sequence[RunSpec], place: Place, store: Store | None) -> tuple[list[Record], float]:
    """Do a piece of work in another process; return the records and what they cost."""
    records: list[Record] = []
    do_work(runs, place, store, records.append)
    return records, total_cost(runs)


def do_work(
    runs: Sequence[RunSpec], place: Place, store: Store | None, keep: Keep, on_epoch: OnWorkEpoch | None = None
) -> None:
    """Do the runs that are not done by now; write each record as soon as it is there, and pass it to `keep`.

    A run that fails has a record that says why, and does not stop the others. A disk that is full does.
    """

    def is_done(run: RunSpec) -> bool:
        return store is not None and store.is_done(run)

    missing = [run for run in runs if not is_done(run)]
    with limited_threads(place.n_jobs):
        posteriors = dict.fromkeys(run.posterior for run in missing)
        learned = {posterior: _prepared(posterior, place, on_epoch) for posterior in posteriors}
        for group in _in_groups(missing):
            _train_together([(run, one) for run in group if isinstance(one := learned[run.posterior], Learned)])
            for run in group:
                if not is_done(run):
                    record = _record(run, learned[run.posterior])
                    if store is not None:
                        store.write(record)
                    keep(record)
    if store is not None:
        remove_checkpoints(runs, store)


def _in_groups(runs: Iterable[RunSpec]) -> list[list[RunSpec]]:
    """Return the runs by method, each method's to be trained in one go; those without one after the posteriors."""
    groups: dict[tuple[Any, ...], list[RunSpec]] = {}
    for run in runs:
        groups.setdefault((run.method, run.method_epochs, run.settings), []).append(run)
    return list(groups.values())


def _prepared(posterior: PosteriorSpec, place: Place, on_epoch: OnWorkEpoch | None) -> Learned | Exception:
    try:
        return prepare(posterior, place, None if on_epoch is None else partial(on_epoch, posterior))
    except Exception as error:
        return error


def _train_together(pairs: Sequence[tuple[RunSpec, Learned]]) -> None:
    """Train the runs of one method as one batched network, where that can be; what fails is left to each alone."""
    method = pairs[0][0].method if pairs else None
    if method is None or len(pairs) < 2:
        return
    posteriors = list(dict.fromkeys(learned for _, learned in pairs))
    try:
        train_stages([learned.stages for learned in posteriors], "ce")
        if method != "ce":
            matrices = [matrix_to_train_through(run, learned) for run, learned in pairs]
            train_stages([learned.branch(run) for run, learned in pairs], method, matrices)
    except Exception as error:
        _check_room(error)
        log.info("%s: not trained together (%s)", method, error)


def _record(run: RunSpec, learned: Learned | Exception) -> Record:
    """Return the record of a run, also of a failed one."""
    if isinstance(learned, Learned):
        try:
            return new_record(run, measure(run, learned))
        except Exception as error:
            learned = error
    _check_room(learned)
    log.warning("%s failed: %s", describe(run.to_dict()), learned)
    return failed_record(run, learned)


def _check_room(error: Exception) -> None:
    """Pass on that nothing can be written, which is no fault of a run."""
    cause = error.__cause__ if isinstance(error, FileError) else error
    if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
        raise FileError(f"{error} The records so far are kept; the same command goes on from there.") from error
