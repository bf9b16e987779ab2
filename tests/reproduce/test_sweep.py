"""A sweep that is killed, in processes and on a cluster: always exactly the grid's records."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from dualt.errors import FileError, InputError
from dualt.reproduce import load_experiment, read_records, run_sweep, runs_of
from dualt.reproduce.runs import FORMAT
from dualt.reproduce.sweep import RECORDS, append_record
from dualt.rows import NoisyPosterior

# Three trainings per posterior: cross entropy, and forward through two matrices.
GRID = {"sizes": [200], "seeds": 4, "epochs": 6, "method_epochs": 6, "methods": ["forward"], "batch_size": 16,
        "estimators": ["t", "dual-t"]}  # fmt: skip
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


def lines(out):
    path = out / RECORDS
    return path.read_text().splitlines() if path.exists() else []


def without_times(records):
    """Return what two sweeps must agree in."""
    timed = ("seconds", "finished")
    return {key: {k: v for k, v in record.items() if k not in timed} for key, record in records.items()}


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_exactly_the_grid(tmp_path):
    rng = random.Random(0)
    kills = 0
    for _ in range(3):
        before = len(lines(tmp_path))
        process = start(tmp_path)
        while process.poll() is None and len(lines(tmp_path)) <= before:
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills >= 2
    kept = lines(tmp_path)
    runs = grid()
    records = run_sweep(runs, tmp_path)
    assert lines(tmp_path)[: len(kept)] == kept
    assert sorted(json.loads(line)["id"] for line in lines(tmp_path)) == sorted(run.identity for run in runs)
    undisturbed = run_sweep(runs, tmp_path / "other")
    assert without_times(records) == without_times(undisturbed)


def test_processes_give_the_same_records_as_one(tmp_path):
    runs = grid(seeds=2, epochs=2, method_epochs=2)
    alone = run_sweep(runs, tmp_path / "alone")
    shared = run_sweep(runs, tmp_path / "shared", n_jobs=2)
    assert without_times(alone) == without_times(shared)
    assert alone == read_records(tmp_path / "alone")


def test_a_record_has_spec_versions_and_results(tmp_path):
    runs = grid(seeds=1, noise=["sym-20"])
    records = run_sweep(runs, tmp_path)
    for run in runs:
        record = records[run.identity]
        assert record["spec"] == json.loads(json.dumps(run.to_dict()))
        assert {"format", "versions", "finished", "n_samples"} <= record.keys()
        assert ("l1_error" in record) == (run.estimator is not None)
        assert ("test_accuracy" in record) == (run.method is not None)
        if run.method is not None:
            assert len(record["curves"]["loss"]) == 6
            assert record["seconds"]["train"] > 0
    errors = {run.estimator: records[run.identity]["l1_error"] for run in runs if run.estimator}
    assert errors["t"] != errors["dual-t"]


def test_estimators_share_one_summary(tmp_path, monkeypatch):
    passes, summary = [], vars(NoisyPosterior)["summary"]
    summarize = summary.func

    def counted(self):
        passes.append(self)
        return summarize(self)

    monkeypatch.setattr(summary, "func", counted)
    names = ["t", "dual-t", "spade", "confident-joint", "oracle"]
    records = run_sweep(grid(seeds=1, noise=["sym-20"], methods=[], estimators=names), tmp_path)
    assert {record["status"] for record in records.values()} == {"done"}
    assert len(passes) == 1


def test_progress_counts_to_the_end(tmp_path):
    seen = []
    runs = grid(seeds=1, noise=["sym-20"])
    run_sweep(runs, tmp_path, on_progress=lambda *progress: seen.append(progress))
    assert [done for done, _, label in seen if "epoch" not in label] == list(range(len(runs) + 1))
    assert {total for _, total, _ in seen} == {len(runs)}
    assert seen[1] == (0, len(runs), "synthetic sym-20 n=200 seed 0 ce, epoch 1")
    again = []
    run_sweep(runs, tmp_path, on_progress=lambda *progress: again.append(progress))
    assert not again, "nothing is left to do"


def test_a_failure_is_recorded_stops_nothing_and_is_tried_again(tmp_path):
    good = grid(seeds=1, noise=["sym-20"])
    bad = grid(seeds=1, noise=["sym-20"], sizes=[0.5])
    records = run_sweep([*bad, *good], tmp_path)
    assert {records[run.identity]["status"] for run in good} == {"done"}
    assert all("number of samples" in records[run.identity]["error"] for run in bad)
    seen = []
    run_sweep([*bad, *good], tmp_path, on_progress=lambda *progress: seen.append(progress))
    assert seen[-1][:2] == (len(bad), len(bad))


def test_finished_runs_leave_no_checkpoints_and_failed_ones_keep_theirs(tmp_path, monkeypatch):
    runs = grid(seeds=1, noise=["sym-20"], estimators=["t"])
    run_sweep(runs, tmp_path)
    assert not (tmp_path / "checkpoints").exists()

    def fails(*_, **__):
        raise ValueError("on purpose")

    monkeypatch.setattr("dualt.reproduce.measuring.estimate_posterior", fails)
    run_sweep(runs, tmp_path / "other")
    assert list((tmp_path / "other" / "checkpoints").rglob("*.safetensors"))


def test_stopped_in_the_middle_it_continues_from_the_checkpoint(tmp_path):
    runs = grid(seeds=1, noise=["sym-20"], estimators=["t"])

    def stop(done, total, label):
        if label.endswith("forward, epoch 4"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(runs, tmp_path, on_progress=stop)
    assert list((tmp_path / "checkpoints").rglob("*.safetensors"))
    seen = []
    records = run_sweep(runs, tmp_path, on_progress=lambda *progress: seen.append(progress[2]))
    assert [label.rpartition(", ")[2] for label in seen if "epoch" in label] == ["epoch 5", "epoch 6"]
    assert not (tmp_path / "checkpoints").exists()
    assert without_times(records) == without_times(run_sweep(runs, tmp_path / "other"))


def test_a_torn_line_is_ignored_and_its_run_done_again(tmp_path):
    runs = grid(seeds=1, noise=["sym-20"], methods=[], estimators=["t"])
    records = run_sweep(runs, tmp_path)
    path = tmp_path / RECORDS
    path.write_bytes(path.read_bytes()[:-40])
    assert len(read_records(tmp_path)) == len(runs) - 1
    assert without_times(run_sweep(runs, tmp_path)) == without_times(records)
    assert len(read_records(tmp_path)) == len(runs)


def test_a_failure_never_replaces_a_success(tmp_path):
    (run, *_) = grid(seeds=1, methods=[])
    done = run_sweep([run], tmp_path)[run.identity]
    append_record(tmp_path, {**done, "status": "failed"})
    assert read_records(tmp_path)[run.identity] == done


def test_records_of_another_version_are_ignored_and_kept(tmp_path, caplog):
    path = tmp_path / RECORDS
    path.write_text(json.dumps({"format": FORMAT + 1, "id": "0123"}) + "\n")
    before = path.read_text()
    (run, *_) = grid(seeds=1, methods=[])
    assert [*run_sweep([run], tmp_path)] == [run.identity]
    assert path.read_text().startswith(before)
    assert "line 1 is no whole record of this version" in caplog.text


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(InputError, match="at least one process"):
        run_sweep(grid(seeds=1), tmp_path, n_jobs=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="name of a folder, got the file"):
        run_sweep(grid(seeds=1), tmp_path / "file")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_on_a_cluster_all_records_arrive_though_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    runs = grid(seeds=2, methods=[])
    killed = []

    def kill_one(*_):
        if not killed:
            pids = client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        records = run_sweep(runs, tmp_path, dask=cluster.scheduler_address, on_progress=kill_one)
    assert killed
    assert records.keys() == {run.identity for run in runs}
    assert {record["status"] for record in records.values()} == {"done"}
