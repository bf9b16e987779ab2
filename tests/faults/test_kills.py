"""Killed at random moments, commands leave old or new files, never half of one; run again, they reach the same."""

import signal
import time
from random import Random
from shutil import copytree

import numpy as np
import pytest
from faulty import content, dualt

KILLS = 4


def whole(folder):
    """Return the files below a folder but for temporary ones, which a kill may leave."""
    return {name: text for name, text in content(folder).items() if ".tmp" not in name}


def timed(*command):
    began = time.monotonic()
    dualt(*command)
    return time.monotonic() - began


def killed(seconds, *command):
    """Kill a command at a random moment; it may have ended by then."""
    dualt(*command, fault="kill-after", at=Random(seconds).uniform(0.1, seconds), code=(0, -signal.SIGKILL))


def test_issues_over_those_of_other_labels(inputs, tmp_path):
    def command(out, labels="labels.npy"):
        return ("issues", inputs / "probs.npy", inputs / labels, "-o", out / "i.csv", "--report", out / "r.html")

    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    dualt(*command(before, "other.npy"))
    seconds = timed(*command(after))
    for number in range(KILLS):
        out = copytree(before, tmp_path / str(number))
        killed(seconds * (number + 1) / KILLS, *command(out))
        left = whole(out)
        assert left.keys() == whole(before).keys()
        assert all(left[name] in (whole(before)[name], whole(after)[name]) for name in left)
        dualt(*command(out))
        assert whole(out) == whole(after)


def test_a_review_that_is_applied(tmp_path):
    table = "\n".join(["id,label,text", *(f"{n},{'abc'[n % 3]},{'x' * 60}" for n in range(40_000)), ""])
    reviewed = [f"{n},{'abc'[n % 3]},{'abc'[(n + 1) % 3]}" for n in range(0, 40_000, 9)]
    (tmp_path / "review.csv").write_text("\n".join(["index,old,new", *reviewed, ""]))
    (tmp_path / "t.csv").write_text(table)

    def command(name):
        (tmp_path / name).mkdir(exist_ok=True)
        out = tmp_path / name / "new.csv"
        return ("apply-review", tmp_path / "t.csv", tmp_path / "review.csv", "--label", "label", "-o", out)

    seconds = timed(*command("after"))
    after = whole(tmp_path / "after")
    for number in range(KILLS):
        killed(seconds * (number + 1) / KILLS, *command(str(number)))
        assert whole(tmp_path / str(number)) in ({}, after)
        dualt(*command(str(number)))
        assert whole(tmp_path / str(number)) == after
    assert (tmp_path / "t.csv").read_text() == table


def test_a_training_is_resumed(tmp_path):
    pytest.importorskip("torch")
    labels = np.arange(120) % 2
    points = np.random.default_rng(0).normal(size=(120, 2)) + 3 * labels[:, None]
    np.savez(tmp_path / "points.npz", X=points, y=labels)
    settings = ("--method", "ce", "--network", "mlp-small", "--recipe", "paper", "--epochs", 8, "--n-jobs", 1)

    def command(name, *more):
        return ("train", tmp_path / "points.npz", *settings, "-o", tmp_path / name, *more)

    seconds = timed(*command("after"))
    after = (tmp_path / "after" / "model.safetensors").read_bytes()
    for number in range(KILLS):
        killed(seconds * (number + 1) / KILLS, *command(str(number)))
        model = tmp_path / str(number) / "model.safetensors"
        assert not model.exists() or model.read_bytes() == after
        dualt(*command(str(number), "--resume"))
        assert model.read_bytes() == after
