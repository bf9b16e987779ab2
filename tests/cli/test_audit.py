"""A few verified labels, from the draw to the estimate."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dualt
from dualt import noise
from dualt.cli import app
from dualt.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A classifier that is sure of itself but wrong about class 2: only verified labels can tell."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 3000)
    noisy = noise.corrupt(clean, noise.pair(3, 0.4), random_state=1)
    seen = np.where((clean == 2) & (rng.random(3000) < 0.5), 0, clean)
    np.save("clean.npy", clean)
    np.save("labels.npy", noisy)
    np.save("probs.npy", np.eye(3)[seen] * 0.9 + 0.1 / 3)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fill_in(path):
    clean = np.load("clean.npy")
    header, *rows = csv.reader(Path(path).read_text().splitlines())
    with Path(path).open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *([row[0], row[1], clean[int(row[0])]] for row in rows)])


def test_verified_labels_bring_the_estimate_nearer_to_the_truth(folder):
    assert run("audit", "labels.npy", "--size", "400", "-o", "audit.csv").exit_code == 0
    fill_in("audit.csv")
    plain = json.loads(run("estimate", "probs.npy", "labels.npy", "--json").output)
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit.csv", "--json")
    assert result.exit_code == 0, result.output
    helped = json.loads(result.output)
    assert helped["estimator"].endswith("+ 400 verified")
    truth = noise.pair(3, 0.4)
    assert dualt.l1_error(helped["transition"], truth) < 0.7 * dualt.l1_error(plain["transition"], truth)


def test_the_draw_is_random_and_repeatable(folder):
    first, second = (json.loads(run("audit", "labels.npy", "-o", "a.csv", "--json").output) for _ in range(2))
    assert first["indices"] == second["indices"]
    assert len(set(first["indices"])) == 200


def test_suspects_are_refused_as_an_audit(folder):
    probs, labels, clean = np.load("probs.npy"), np.load("labels.npy"), np.load("clean.npy")
    suspects = dualt.find_label_issues(probs, labels).indices[:200]
    with pytest.raises(InputError, match="Draw the rows to verify at random"):
        dualt.estimate_transition(probs, labels, verified=(suspects, clean[suspects]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("index,given,true\n0,0,\n", "fill some in"),
        ("index,old,new\n0,0,1\n", "header"),
        ("index,given,true\n9999,0,1\n", "9999"),
        ("index,given,true\nx,0,1\n", "row number"),
        ("index,given,true\n0,{other},1\n", "row 0"),
        ("", "audit"),
    ],
)
def test_bad_audits_get_one_clear_line(folder, content, message):
    other = (int(np.load("labels.npy")[0]) + 1) % 3
    (folder / "audit.csv").write_text(content.format(other=other))
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit.csv", "-o", "t.json")
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert not (folder / "t.json").exists()
