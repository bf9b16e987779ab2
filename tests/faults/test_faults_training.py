"""`dualt train` and `dualt reproduce` when the process, the disk or the clock fails them.

Kills at random moments are in `test_kills.py` and `tests/reproduce/test_sweep.py`.
"""

import json
import os

import numpy as np
import pytest
from faulty import content, dualt, one_line

pytest.importorskip("torch")

# Of a run that has ended after a checkpoint.
KEPT = ["checkpoints/ce.safetensors", "checkpoints/options.json"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small data set of two clouds of points."""
    path = tmp_path_factory.mktemp("data") / "points.npz"
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 120)
    np.savez(path, X=rng.normal(size=(120, 2)) + 3 * labels[:, None], y=labels)
    return path


def train(table, out, *more, **options):
    """Three epochs; a checkpoint is written after each, then the model, the run and the page."""
    settings = ("--method", "ce", "--network", "mlp-small", "--recipe", "paper", "--epochs", "3", "--n-jobs", "1")
    return dualt("train", table, *settings, "-o", out, *more, **options)


def weights(out):
    return (out / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    train(table, out)
    return out


def test_control_c_while_a_checkpoint_is_written(table, out, undisturbed):
    # What was asked, and a first checkpoint, are written.
    error = train(table, out, fault="interrupt-at-fsync", at=3, code=130)
    assert one_line(error).startswith("interrupted: ")
    assert list(content(out)) == KEPT, "the first one stands; nothing claims to be a model"
    train(table, out, "--resume")
    assert weights(out) == weights(undisturbed), "taken up where it was, it comes to the same"


def test_a_disk_that_is_really_full(table, small_disk):
    """There is room for what was asked and a first checkpoint, not for a second beside it."""
    os.truncate(small_disk / "before", (small_disk / "before").stat().st_size - 4096)
    error = train(table, small_disk, code=2)
    assert "No space left on device" in one_line(error)
    assert list(content(small_disk)) == ["before", *KEPT], "to be taken up with --resume"


def reproduce(out, **options):
    grid = ("--set", "sizes=60", "--set", "noise=sym-20", "--set", "seeds=2", "--set", "epochs=2")
    return dualt("reproduce", "figure2", "--profile", "smoke", *grid, "-o", out, **options)


def records(out):
    """Return the records by id, without what differs from run to run."""
    found = {}
    for record in map(json.loads, kept(out)):
        assert record["status"] == "done"
        found[record["id"]] = {key: value for key, value in record.items() if key not in ("seconds", "finished")}
    return found


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    reproduce(out)
    assert len(records(out)) == 10
    return out


def kept(out):
    return (out / "records.jsonl").read_text().splitlines()


def test_control_c_while_a_record_is_written(out, reproduced):
    error = reproduce(out, fault="interrupt-at-fsync", at=6, code=130)
    assert "run the same command" in error
    assert not [file for file in content(out) if file.endswith(".tmp")]
    before = kept(out)
    assert records(out).items() <= records(reproduced).items()
    reproduce(out)
    assert records(out) == records(reproduced)
    assert kept(out)[: len(before)] == before, "finished runs are not repeated"


def test_a_sweep_without_room_blames_no_run(out):
    """A record of failure would keep it from being done again."""
    error = reproduce(out, fault="limit-files", at=4000, code=2)
    assert "the same command continues" in one_line(error)
    assert content(out) == {}
