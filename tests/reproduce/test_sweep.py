"""A sweep that is killed, run twice at once, in processes and on a cluster: always exactly the grid's records."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from dualt.errors import FileError, InputError
from dualt.reproduce import Store, SweepOptions, load_experiment, run_sweep, runs_of
from dualt.reproduce.spec import FORMAT
from dualt.rows import NoisyPosterior

# Three trainings per posterior in all: cross entropy, and forward through two matrices.
GRID = {
    "together": False, "sizes": [200], "seeds": 4, "epochs": 6, "method_epochs": 6, "methods": ["forward"],
    "batch_size": 16,
}  # fmt: skip
SCRIPT = f"""
import torch
from dualt.reproduce import load_experiment, run_sweep, runs_of
torch.set_num_threads(1)
run_sweep(runs_of(load_experiment("figure2", "smoke", {GRID!r})), "OUT")
"""


def grid(**changes):
    return runs_of(load_experiment("figure2", "smoke", {**GRID, **changes}))


def start(out):
    return subprocess.Popen([sys.executable, "-c", SCRIPT.replace("OUT", str(out))])


def files(out):
    return sorted(path.name for path in (out / "records").glob("*.json"))


def names(runs):
    return sorted(f"{run.identity}.json" for run in runs)


def without_times(records):
    """Return what two sweeps must agree in."""
    timed = ("seconds", "finished")
    return {key: {k: v for k, v in record.items() if k not in timed} for key, record in records.items()}


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_exactly_the_grid(tmp_path):
    rng = random.Random(0)
    kills = 0
    for _ in range(3):
        before = len(files(tmp_path))
        process = start(tmp_path)
        while process.poll() is None and len(files(tmp_path)) <= before:
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        # None torn: every file is whole JSON.
        assert len(Store(tmp_path).read_all()) == len(files(tmp_path))
    assert kills >= 2
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").glob("*.json")}
    runs = grid()
    records = run_sweep(runs, tmp_path)
    assert files(tmp_path) == names(runs)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items()), "what was done is not done again"
    undisturbed = run_sweep(runs, tmp_path / "other")
    assert without_times(records) == without_times(undisturbed)


@pytest.mark.slow
def test_two_sweeps_at_once_do_not_spoil_each_other(tmp_path):
    processes = [start(tmp_path), start(tmp_path)]
    assert [process.wait() for process in processes] == [0, 0]
    records = Store(tmp_path).read_all()
    assert files(tmp_path) == names(grid())
    assert {record["status"] for record in records.values()} == {"done"}


def test_processes_give_the_same_records_as_one(tmp_path):
    runs = grid(seeds=2)
    alone = run_sweep(runs, tmp_path / "alone")
    shared = run_sweep(runs, tmp_path / "shared", options=SweepOptions(n_jobs=2))
    assert without_times(alone) == without_times(shared)


def test_together_gives_the_same_as_one_by_one(tmp_path):
    runs = runs_of(load_experiment("figure2", "smoke"))
    alone = run_sweep(runs, tmp_path / "alone")
    together = run_sweep(runs, tmp_path / "together", together=True)
    assert alone.keys() == together.keys()
    for key, record in alone.items():
        for name in ("l1_error", "test_accuracy", "delta1", "posterior_error"):
            assert together[key].get(name) == pytest.approx(record.get(name), abs=1e-4)


def test_a_record_says_everything(tmp_path):
    runs = grid(seeds=1, noise=["sym-20"])
    records = run_sweep(runs, tmp_path)
    for run in runs:
        record = records[run.identity]
        assert record == json.loads(Store(tmp_path).path(run.identity).read_text())
        assert record["spec"] == json.loads(json.dumps(run.to_dict()))
        assert {"format", "seed", "versions", "git_revision", "seconds", "finished", "n_samples"} <= record.keys()
        assert ("l1_error" in record) == (run.estimator is not None)
        assert ("test_accuracy" in record) == (run.method is not None)
        if run.method is not None:
            assert len(record["curves"]["loss"]) == 6
    # T and dual-T differ, so what is trained through them does.
    errors = {run.estimator: records[run.identity]["l1_error"] for run in runs if run.estimator}
    assert errors["t"] != errors["dual-t"]


def test_estimators_share_one_summary(tmp_path, monkeypatch):
    passes, summary = [], vars(NoisyPosterior)["summary"]
    summarize = summary.func

    def counted(self):
        passes.append(self)
        return summarize(self)

    monkeypatch.setattr(summary, "func", counted)
    names = ["t", "dual-t", "spade", "confident-joint", "oracle", "t-in-sample"]
    records = run_sweep(grid(seeds=1, noise=["sym-20"], methods=[], estimators=names, folds=2), tmp_path)
    assert {record["status"] for record in records.values()} == {"done"}
    assert len(passes) == 2, "one of the probabilities out of fold, one of those in sample"


def test_progress_counts_to_the_end(tmp_path):
    seen = []
    runs = grid(seeds=1, noise=["sym-20"])
    run_sweep(runs, tmp_path, on_progress=seen.append)
    assert [progress.done for progress in seen if progress.finished] == list(range(1, len(runs) + 1))
    assert {progress.total for progress in seen} == {len(runs)}, "known from the start"
    assert (seen[0].done, seen[0].share, seen[0].seconds_left) == (0, 0.0, None)
    assert seen[1].label == "synthetic sym-20 n=200 seed 0 ce, epoch 1 of 6"
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)
    # Five trainings of equal cost: cross entropy, and forward through four matrices; reading matrices costs nothing.
    assert next(p.share for p in seen if p.finished) == pytest.approx(1 / 5)
    assert (seen[-1].share, seen[-1].seconds_left) == (1.0, 0)
    again = []
    run_sweep(runs, tmp_path, on_progress=again.append)
    assert not again, "nothing is left to do"


def test_a_failure_is_recorded_and_stops_nothing(tmp_path):
    good = grid(seeds=1, noise=["sym-20"])
    bad = grid(seeds=1, noise=["sym-20"], batch_size=16, sizes=[0.5])
    records = run_sweep([*bad, *good], tmp_path)
    assert {records[run.identity]["status"] for run in good} == {"done"}
    assert all("number of samples" in records[run.identity]["error"] for run in bad)
    seen = []
    run_sweep([*bad, *good], tmp_path, on_progress=seen.append)
    assert not seen, "failures are not tried again unless asked for"
    run_sweep([*bad, *good], tmp_path, options=SweepOptions(retry_failed=True), on_progress=seen.append)
    assert sum(progress.finished for progress in seen) == len(bad)


def test_finished_runs_leave_no_checkpoints_and_failed_ones_keep_theirs(tmp_path, monkeypatch):
    runs = grid(seeds=1, noise=["sym-20"], estimators=["t"])
    run_sweep(runs, tmp_path)
    assert not (tmp_path / "checkpoints").exists()

    def fails(*_):
        raise ValueError("on purpose")

    monkeypatch.setattr("dualt.reproduce.measuring.estimate_posterior", fails)
    run_sweep(runs, tmp_path / "other")
    assert list((tmp_path / "other" / "checkpoints").glob("*/ce.safetensors"))


@pytest.mark.parametrize("at", ["ce, epoch 2", "forward, epoch 2"])
def test_a_sweep_that_ends_leaves_the_checkpoints_of_others_alone(tmp_path, at):
    runs = grid(seeds=2, noise=["sym-20"], estimators=["t"], methods=["forward"])
    others = grid(seeds=2, noise=["sym-20"], estimators=["t"], methods=["reweighting"])
    begun = []

    def end_another(progress):
        if at in progress.label and not begun:
            begun.append(progress.label)
            run_sweep(others, tmp_path)

    def stop(progress):
        end_another(progress)
        if "forward, epoch 4" in progress.label:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(runs, tmp_path, on_progress=stop)
    assert begun
    assert list((tmp_path / "checkpoints").glob("*/t/forward.safetensors"))
    records = run_sweep([*runs, *others], tmp_path)
    assert {record["status"] for record in records.values()} == {"done"}
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("changes", [{"methods": ["forward"]}, {"methods": ["revision"], "together": True}])
def test_a_sweep_that_was_stopped_and_finished_leaves_no_checkpoints(tmp_path, changes):
    runs = grid(seeds=2, noise=["sym-20"], estimators=["t", "dual-t"], **changes)

    def stop(progress):
        if progress.finished and progress.label.endswith(f" t {changes['methods'][0]}"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(runs, tmp_path, together=changes.get("together", False), on_progress=stop)
    assert list((tmp_path / "checkpoints").glob("*/t/*.safetensors"))
    run_sweep(runs, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


def test_a_sweep_that_has_nothing_to_do_removes_old_checkpoints_and_none_that_are_in_use(tmp_path):
    runs = grid(seeds=1, noise=["sym-20"], estimators=["t"])
    run_sweep(runs, tmp_path)
    folder = tmp_path / "checkpoints" / runs[0].posterior.identity
    (folder / "t").mkdir(parents=True)
    old, new = folder / "ce.safetensors", folder / "t" / "forward.safetensors"
    for path in (old, new):
        path.write_bytes(b"")
    os.utime(old, (0, 0))
    run_sweep(runs, tmp_path)
    assert not old.exists()
    assert new.exists()
    os.utime(new, (0, 0))
    run_sweep(runs, tmp_path)
    assert not (tmp_path / "checkpoints").exists()


def test_the_time_of_a_training_is_summed_over_resumes(tmp_path, monkeypatch):
    (run, *_) = runs = grid(seeds=1, noise=["sym-20"], methods=[], estimators=["t"])
    seen = []

    def stop(progress):
        seen.append(progress)
        if "epoch 3" in progress.label:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(runs, tmp_path, on_progress=stop)
    (checkpoint,) = (tmp_path / "checkpoints").glob("*/ce.safetensors")
    assert checkpoint.stat().st_size > 0
    clock = [1000.0]

    def slow():
        clock[0] += 1.0
        return clock[0]

    monkeypatch.setattr("dualt.nn.training.loop.perf_counter", slow)
    record = run_sweep(runs, tmp_path)[run.identity]
    # Three epochs of one second each by the slow clock, and three real ones before them.
    assert 3.0 < record["seconds"]["train"] < 6.0
    assert len(record["curves"]["loss"]) == 6


def test_a_failure_never_replaces_a_success(tmp_path):
    store, run = Store(tmp_path), grid(seeds=1)[0]
    run_sweep([run], tmp_path)
    done = store.read_all()[run.identity]
    store.write({**done, "status": "failed"})
    assert store.read_all()[run.identity] == done


def test_records_of_another_version_are_refused_and_kept(tmp_path):
    store, runs = Store(tmp_path), grid(seeds=1)
    store.open()
    other = store.folder / "0123.json"
    other.write_text(json.dumps({"format": FORMAT + 1, "id": "0123"}))
    with pytest.raises(FileError, match=f"format {FORMAT + 1}.*--out"):
        run_sweep(runs, tmp_path)
    assert json.loads(other.read_text())["format"] == FORMAT + 1
    other.write_text("{")
    with pytest.raises(FileError, match=r"0123\.json"):
        run_sweep(runs, tmp_path)


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(InputError, match="at least one process"):
        SweepOptions(n_jobs=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="Cannot make the folder"):
        run_sweep(grid(seeds=1), tmp_path / "file")


def test_an_unreachable_scheduler_is_an_error_and_loses_nothing(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("dualt.rows.cluster._TIMEOUT", "1s")
    with pytest.raises(InputError, match=r"tcp://127\.0\.0\.1:9"):
        run_sweep(grid(seeds=1), tmp_path, options=SweepOptions(dask="tcp://127.0.0.1:9"))
    assert files(tmp_path) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_on_a_cluster_all_records_arrive_though_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    runs = grid(seeds=2, methods=[])
    killed = []

    def kill_one(progress):
        if not killed:
            pids = client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        options = SweepOptions(dask=cluster.scheduler_address)
        records = run_sweep(runs, tmp_path, options=options, on_progress=kill_one)
    assert killed
    assert files(tmp_path) == names(runs)
    assert {record["status"] for record in records.values()} == {"done"}
