"""Do the runs of a grid that have no record yet: here, in several processes, or on a Dask cluster."""

import json
import logging
import os
import platform
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from dualt.errors import FileError, InputError, TrainingError
from dualt.files import json_text, make_folder, open_input
from dualt.reproduce.measuring import Posterior
from dualt.reproduce.runs import FORMAT, RunSpec
from dualt.rows.dask import connected

log = logging.getLogger(__name__)

Record: TypeAlias = dict[str, Any]
# Called with the number of runs done, their total, and what was done last (a run or an epoch).
OnProgress: TypeAlias = Callable[[int, int, str], None]

RECORDS = "records.jsonl"
_KEPT = "The records so far are kept; the same command continues."


def read_records(out: str | Path) -> dict[str, Record]:
    """Return the records below a folder by identity: the last of each run, a success before a failure.

    A line that is not whole, as an interrupted write leaves it, or of another version of dualt, is ignored.
    """
    path, records = Path(out) / RECORDS, dict[str, Record]()
    if not path.exists():
        return records
    with open_input(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict) or record.get("format") != FORMAT:
                if line.strip():
                    log.warning("%s: line %d is no whole record of this version and is ignored.", path, number)
                continue
            if record["status"] == "done" or records.get(record["id"], record)["status"] != "done":
                records[record["id"]] = record
    return records


def append_record(out: str | Path, record: Record) -> None:
    """Append a record as one line, in one write: several processes can append to the same file."""
    path = Path(out) / RECORDS
    line = json_text(record, indent=None).encode() + b"\n"
    try:
        with path.open("a+b") as file:
            # Start on a line of its own after an interrupted write.
            torn = file.tell() > 0 and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
            file.write(b"\n" * torn + line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}. {_KEPT}") from error


def run_sweep(
    runs: Sequence[RunSpec],
    out: str | Path,
    *,
    n_jobs: int = 1,
    dask: str | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Record]:
    """Do every run that has no record of success below `out`, and return the records of all.

    It can be stopped at any moment; the same call does only what is missing, from the last checkpoints. It runs in
    `n_jobs` processes, or on the Dask scheduler at an address such as `tcp://host:8786`. A run that fails gets a record
    with the reason and does not stop the others; a file that cannot be read or written does.
    """
    if n_jobs < 1:
        raise InputError(f"Expected n_jobs of at least one process, got {n_jobs}.")
    out, known, n_done = Path(out), read_records(out), 0
    wanted = {run.identity: run for run in runs}
    missing = [run for identity, run in wanted.items() if known.get(identity, {}).get("status") != "done"]

    def report(label: str) -> None:
        log.info("%s", label)
        if on_progress is not None:
            on_progress(n_done, len(missing), label)

    if missing:
        make_folder(out)
        report("starts")
        groups: dict[str, list[RunSpec]] = {}
        for run in missing:
            groups.setdefault(run.posterior.identity, []).append(run)
        if dask is None and n_jobs == 1:
            finished: Any = (do_runs(group, out, on_epoch=report) for group in groups.values())
        else:
            finished = _in_parallel([*groups.values()], out, n_jobs, dask)
        for records in finished:
            statuses = set()
            for record in records:
                append_record(out, record)
                run, n_done = wanted[record["id"]], n_done + 1
                statuses.add(record["status"])
                report(f"{run} failed: {record['error']}" if record["status"] == "failed" else str(run))
            if statuses == {"done"}:
                shutil.rmtree(_checkpoints(out, run), ignore_errors=True)
                with suppress(OSError):  # others are still at work there
                    _checkpoints(out, run).parent.rmdir()
    return {identity: record for identity, record in read_records(out).items() if identity in wanted}


def _checkpoints(out: Path, run: RunSpec) -> Path:
    return out / "checkpoints" / run.posterior.identity


def _in_parallel(groups: list[list[RunSpec]], out: Path, n_jobs: int, dask: str | None) -> Iterator[list[Record]]:
    """Do the runs of each posterior in a process of their own; yield their records as they arrive."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # The machines of a cluster need not see our folder.
    own_out, threads = (None, 1) if dask else (out, max(1, (os.cpu_count() or 1) // n_jobs))
    tasks = (joblib.delayed(_do_all)(group, own_out, threads) for group in groups)
    cluster, backend = (connected(dask), "dask") if dask else (nullcontext(), "loky")
    try:
        with cluster, joblib.parallel_config(backend=backend):
            yield from joblib.Parallel(-1 if dask else n_jobs, return_as="generator_unordered", batch_size=1)(tasks)
    except TerminatedWorkerError as error:
        raise TrainingError(
            "A worker process was killed, perhaps because memory ran out. The records so far are kept; start again with"
            " fewer --n-jobs to do the rest."
        ) from error


def _do_all(*task: Any) -> list[Record]:
    return list(do_runs(*task))


def do_runs(
    runs: Sequence[RunSpec], out: Path | None, n_jobs: int | None = None, on_epoch: Callable[[str], None] = log.debug
) -> Iterator[Record]:
    """Do the runs of one posterior, with checkpoints below `out` if given, and yield their records."""
    posterior = None
    versions = {name: metadata.version(name) for name in ("dualt", "numpy", "torch")}
    versions = {"python": platform.python_version(), **versions}

    def report(stage: str, epoch: Any) -> None:
        on_epoch(f"{RunSpec(runs[0].posterior)} {stage}, epoch {epoch.epoch + 1}")

    for run in runs:
        record: Record = {"format": FORMAT, "id": run.identity, "spec": run.to_dict(), "versions": versions}
        try:
            posterior = posterior or Posterior(run.posterior, out and _checkpoints(out, run), n_jobs, report)
            record |= {"status": "done", **posterior.measure(run)}
        except FileError as error:  # such as a full disk, which is no fault of the run
            raise FileError(f"{error} {_KEPT}") from error
        except Exception as error:
            record |= {"status": "failed", "error": f"{type(error).__name__}: {error}"}
            record["traceback"] = "".join(traceback.format_exception(error))
        yield {**record, "finished": datetime.now(timezone.utc).isoformat(timespec="seconds")}
