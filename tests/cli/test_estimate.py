"""`dualt estimate`: from two files to a matrix, or to one line that says what is wrong."""

import json
import re

import numpy as np
import pytest

import dualt
from dualt.estimators import DEFAULT_ESTIMATOR, comparable
from tests.cli.commands import run

N = 300


@pytest.fixture
def files(tmp_path):
    """Probabilities and labels of three classes, a fifth of them wrong, and an empty folder for output."""
    clean = np.arange(N) % 3
    noisy = dualt.noise.corrupt(clean, dualt.noise.symmetric(3, 0.2), random_state=0, exact=True)
    np.save(tmp_path / "probs.npy", np.where(clean[:, None] == np.arange(3), 0.96, 0.02))
    np.save(tmp_path / "labels.npy", noisy)
    (tmp_path / "out").mkdir()
    return tmp_path


def refused(result, message, folder=None):
    """One line on stderr, no traceback, nothing on stdout and nothing written."""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert re.search(message, result.stderr), result.stderr
    assert folder is None or list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "absent/t.json"], "the folder absent does not exist"),
        (["-o", "out"], "it is a folder"),
        (["-o", "out/t.docx"], "ends in"),
        (["-e", "dual_t"], "Did you mean 'dual-t'"),
        (["-e", "oracle"], "clean_labels"),
        (["--set", "share"], "NAME=VALUE"),
        (["--set", "shares=0.5", "-e", "joint"], "no option 'shares'"),
        (["--set", "quantile=2", "-e", "t", "--set", "anchor=quantile"], r"quantile in \(0, 1\), got 2"),
        (["--set", "anchor=mean", "-e", "t"], "Unknown anchor 'mean'"),
        (["--classes", "absent.txt"], "No such file"),
        (["--label", "absent"], "absent"),
    ],
)
def test_wrong_options_are_refused(files, monkeypatch, options, message):
    monkeypatch.chdir(files)
    np.savez("labels.npz", labels=np.load("labels.npy"), others=[1])
    labels = "labels.npz" if "--label" in options else "labels.npy"
    output = [] if "-o" in options else ["-o", "out/t.json"]
    refused(run("estimate", "probs.npy", labels, *options, *output, code=2), message, files / "out")


def test_a_label_file_or_column_is_needed(files):
    refused(run("estimate", files / "probs.npy", code=2), "files of labels, or --label")
    refused(run("estimate", files / "prob.npy", code=2), "No such file")


@pytest.mark.parametrize("suffix", [".json", ".npy", ".csv"])
def test_the_estimate_is_written(files, suffix):
    path = files / "out" / f"t{suffix}"
    result = run("estimate", files / "probs.npy", files / "labels.npy", "-o", path)
    assert str(path) in result.stdout
    expected = dualt.estimate_transition(np.load(files / "probs.npy"), np.load(files / "labels.npy")).transition
    np.testing.assert_allclose(dualt.io.load_transition(path)[0], expected, atol=1e-9)
    assert [found.name for found in (files / "out").iterdir()] == [path.name]


def test_json_is_all_that_is_printed(files):
    result = run("estimate", files / "probs.npy", files / "labels.npy", "--json", "--compare")
    content = json.loads(result.stdout)
    assert result.stderr == ""
    assert content["estimator"] == DEFAULT_ESTIMATOR
    assert content["interval"]["level"] == 0.95
    assert content["compared"].keys() == {*comparable(3)}
    np.testing.assert_allclose(content["noise_rate"], 0.2, atol=0.05)
    for name, other in content["compared"].items():
        expected = dualt.estimate_transition(np.load(files / "probs.npy"), np.load(files / "labels.npy"), name)
        np.testing.assert_allclose(other["transition"], expected.transition)


def test_the_picture_says_the_main_things(files):
    (files / "c.txt").write_text("ant\nbee\ncat\n")
    result = run(
        "estimate", files / "probs.npy", files / "labels.npy", "-e", "spade", "--classes", files / "c.txt", "--compare"
    )
    assert "About 20 % of the labels look wrong by spade." in result.stdout
    assert "300 rows, 3 classes, estimator spade" in result.stdout
    for word in ("ant", "bee", "cat", *comparable(3)):
        assert word in result.stdout
