"""The commands that a command prints to go on with: they run as they are, on the same data, with the same matrix."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dualt import noise
from tests.cli.commands import fill_in, run

NAMES = np.array(["c", "a", "b"])
WORDS = {"c": "cup milk", "a": "fox hen", "b": "ship wave"}


def steps(result):
    """Return the printed commands as lists of words, without `dualt` and the remark behind them."""
    lines = [line.split("   ")[0].strip() for line in result.stdout.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("dualt ")]


@pytest.fixture
def true(tmp_path, monkeypatch):
    """Names in an order of their own, as arrays, as a table of texts and numbers, and as pictures."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 240)
    given = NAMES[noise.corrupt(clean, noise.pair(3, 0.25), random_state=1)]
    np.save("probs.npy", np.eye(3)[clean] * 0.7 + rng.dirichlet(np.ones(3), 240) * 0.3)
    Path("labels.txt").write_text("\n".join(given))
    Path("names.txt").write_text("\n".join(NAMES))
    rows = [[f"t{row}", WORDS[NAMES[code]], given[row], code + rng.normal() / 9] for row, code in enumerate(clean)]
    with Path("tickets.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["ticket", "text", "queue", "x_1"], *rows])
    for row in range(60):
        Path("digits", given[row]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((6, 6), 80 * clean[row], np.uint8)).save(Path("digits", given[row], f"{row:03}.png"))
    return NAMES[clean]


def test_class_names_are_not_forgotten(true):
    named = ["probs.npy", "labels.txt", "--classes", "names.txt"]
    shown = steps(run("estimate", *named))
    assert shown[0] == ["issues", *named]
    assert json.loads(run(*shown[0], "--json").stdout)["class_names"] == NAMES.tolist()
    for step in shown[1:]:
        assert step[1:5] == named
    (step,) = steps(run("audit", "labels.txt", "--probs", "probs.npy", *named[2:], "-o", "a.csv", "--size", 50))
    assert step == ["estimate", *named, "--verified", "a.csv"]


def test_how_the_matrix_is_found_is_not_forgotten(true):
    named = ["probs.npy", "labels.txt", "--classes", "names.txt"]
    run("audit", "labels.txt", "--size", 60, "-o", "audit.csv")
    fill_in("audit.csv", true)
    chosen = ["-e", "t", "--set", "anchor=quantile", "--verified", "audit.csv"]
    for command in ("estimate", "issues"):
        for step in steps(run(command, *named, *chosen)):
            assert step[1:11] == [*named, *chosen]
    run("estimate", *named, "-o", "t.json")
    more = ["--transition", "t.json", "--top", "5"]
    for step in steps(run("issues", *named, *more)):
        assert step[1:9] == [*named, *more]


@pytest.mark.parametrize(
    ("audited", "next_step"),
    [
        (["tickets.csv", "--label", "queue", "--id", "ticket", "--text", "text"], ["tickets.csv", "--label", "queue",
         "--id", "ticket", "--text", "text"]),
        (["digits"], ["digits"]),
        (["labels.txt"], ["PROBS", "labels.txt"]),
        (["tickets.csv", "--label", "queue"], ["tickets.csv", "--label", "queue"]),
    ],
)  # fmt: skip
def test_an_audit_without_probabilities_leads_to_an_estimate(true, audited, next_step):
    (step,) = steps(run("audit", *audited, "--size", 40, "-o", "an audit.csv"))
    assert step == ["estimate", *next_step, "--verified", "an audit.csv"]
    fill_in("an audit.csv", true if audited[0] != "digits" else images_true(true))
    run(*(word.replace("PROBS", "probs.npy") for word in step), "--classes", "names.txt")


def images_true(true):
    return [true[int(path.stem)] for path in sorted(Path("digits").glob("*/*.png"))]


def test_made_probabilities_lead_to_issues(true):
    for kind, answer in ((["--features", "x_*"], "--overlapping"), (["--text", "text"], "--determined")):
        raw = ["tickets.csv", "--label", "queue", *kind, "--quick"]
        (step,) = steps(run("probs", *raw, "--id", "ticket", "-o", "p.npy"))
        assert step == ["issues", "p.npy", "tickets.csv", "--label", "queue", "--id", "ticket", answer]
        found = json.loads(run(*step, "--json").stdout)
        alone = json.loads(run("issues", *raw, "--json").stdout)
        assert found["summary"] == alone["summary"]
        assert [row["index"] for row in found["issues"]] == [row["index"] for row in alone["issues"]]


def test_paths_with_blanks_are_quoted(true):
    Path("probs.npy").rename("my probs.npy")
    for step in steps(run("estimate", "my probs.npy", "labels.txt", "--classes=names.txt", "-o", "t.json")):
        assert step[1:4] == ["my probs.npy", "labels.txt", "--classes=names.txt"]
        assert "t.json" not in step
    pytest.importorskip("torch")
    fast = ["--method", "ce", "--epochs", 1, "--set", "folds=1", "--n-jobs", 1]
    (step,) = steps(run("train", "digits", *fast, "-o", "my [b] model"))
    assert step == ["predict", "my [b] model", "DATA", "-o", "predictions.csv"]
