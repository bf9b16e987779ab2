"""`dualt train` killed within the stage of its own method, whatever the method, and resumed."""

import json
import os
import signal

import numpy as np
import pytest
from kills import finish, spawn
from typer.testing import CliRunner

from dualt.cli import app
from dualt.nn import loop
from dualt.nn.checkpoint import read_checkpoint
from dualt.nn.methods import METHODS

pytestmark = pytest.mark.slow
EPOCHS, KILLED_IN = 4, 2


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small data set of two clouds of points that overlap, so that two networks disagree."""
    path = tmp_path_factory.mktemp("data") / "points.npz"
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 160)
    np.savez(path, X=rng.normal(size=(160, 4)) + labels[:, None], y=labels)
    # Once here, or every process would have to import all that it uses.
    assert CliRunner().invoke(app, [str(each) for each in command(path, path.parent / "first", "ce")]).exit_code == 0
    return path


def command(table, out, method, *more):
    settings = (
        "--network",
        "mlp-small",
        "--recipe",
        "paper",
        "--epochs",
        EPOCHS,
        "--set",
        "batch_size=16",
        "--n-jobs",
        1,
    )
    return ("train", table, "--method", method, *settings, "--noise", "pair-0.2", "-o", out, "--json", *more)


@pytest.mark.parametrize("method", METHODS)
def test_killed_within_its_own_stage_and_resumed(method, table, tmp_path, monkeypatch):
    """Same weights, bit for bit, and the time of both parts."""
    whole, out = tmp_path / "whole", tmp_path / "killed"
    finish(*command(table, whole, method))
    save, limits = loop.save_checkpoint, loop.batch_limits
    stage = None

    def notice(path, *state):
        nonlocal stage
        save(path, *state)
        stage = (path.stem, len(state[3]))

    def kill_in_the_third_epoch(total, batch_size):
        if stage == (method, KILLED_IN):
            os.kill(os.getpid(), signal.SIGKILL)
        return limits(total, batch_size)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", notice)
        patch.setattr(loop, "batch_limits", kill_in_the_third_epoch)
        child = spawn(*command(table, out, method))
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not (out / "model.safetensors").exists()
    before = read_checkpoint(out / "checkpoints" / f"{method}.safetensors")[2].records
    assert len(before) == KILLED_IN
    finish(*command(table, out, method, "--resume"))
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    run = json.loads((out / "run.json").read_text())
    seconds = run["stages"][method]["history"]["seconds"]
    assert seconds[:KILLED_IN] == [record.seconds for record in before], "what the first part took counts"
    assert run["seconds"][method] == pytest.approx(sum(seconds))
    assert run["total_seconds"] == pytest.approx(sum(run["seconds"].values()))
