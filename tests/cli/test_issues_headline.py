"""What `dualt issues` claims of the share of wrong labels: no more than `dualt estimate` does."""

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dualt.cli import app


def run(folder) -> str:
    """Return what is printed of 900 examples, a third of them unsure, with labels that follow the probabilities."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 900)
    probs = np.full((900, 3), 0.01)
    probs[np.arange(900), labels] = 0.98
    probs[::3] = rng.dirichlet(np.ones(3), 300)
    labels[::3] = (probs[::3].cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(0, 2)
    np.save(folder / "probs.npy", probs)
    np.save(folder / "labels.npy", labels)
    result = CliRunner().invoke(app, ["issues", str(folder / "probs.npy"), str(folder / "labels.npy")])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def test_a_share_that_the_data_cannot_support_is_not_headlined(tmp_path):
    printed = run(tmp_path)
    assert "look wrong (at least 0 %: overlapping classes may explain them)" in printed
    assert " of 900 labels another class is likelier" in printed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two classes that the classifier knows, and one label in five wrong."""
    monkeypatch.chdir(tmp_path)
    clean = np.arange(200) % 2
    np.save("probs.npy", np.eye(2)[clean] * 0.96 + 0.02)
    np.save("labels.npy", np.where(np.arange(200) % 5 == 0, 1 - clean, clean))
    np.save("matrix.npy", [[0.8, 0.2], [0.2, 0.8]])
    return tmp_path


def shown(command, *options):
    result = CliRunner().invoke(app, [command, "probs.npy", "labels.npy", *options])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("options", [["-e", "spade"], ["-e", "spade", "--level", "0.8"], []])
def test_the_headline_is_that_of_the_estimate(folder, options):
    headline = shown("estimate", *options).split(". ")[0]
    assert shown("issues", *options).startswith(headline)


def test_a_given_matrix_is_taken_at_its_word(folder):
    assert shown("issues", "--transition", "matrix.npy").startswith("About 40 of 200 labels look wrong.")


def test_labels_without_a_likelier_class_are_doubtful(folder):
    """Of unsure examples, a label may be more probably wrong than others and yet the likeliest."""
    text = shown("issues", "--transition", "matrix.npy", "--top", "60", "-o", "issues.csv")
    with Path("issues.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    n_doubtful = sum(row["given"] == row["suggested"] for row in rows)
    assert n_doubtful == 20
    assert "For 40 of 200 labels another class is likelier; 20 are doubtful, with no clear alternative." in text
    assert "doubtful" not in shown("issues", "--transition", "matrix.npy")
    np.save("labels.npy", np.load("probs.npy").argmax(axis=1))
    text = shown("issues", "--transition", "matrix.npy", "--top", "3")
    assert text.count("doubtful") == 4
