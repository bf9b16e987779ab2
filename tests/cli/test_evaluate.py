"""Accuracy from noisy test labels, from files to words."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt import noise
from tests.cli.commands import fill_in, run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 2000)
    truth = noise.pair(3, 0.3)
    given = noise.corrupt(clean, truth, random_state=1)
    np.save("clean.npy", clean)
    np.save("labels.npy", given)
    np.save("good.npy", np.where(rng.random(2000) < 0.95, clean, 0))
    np.save("bad.npy", np.eye(3)[np.where(rng.random(2000) < 0.6, clean, given)])
    np.save("t.npy", truth)
    dualt.estimate_transition(truth[clean] * 0.9 + 0.1 / 3, given).save("t.json")
    run("audit", "labels.npy", "--size", 300, "-o", "audit.csv")
    fill_in("audit.csv", clean)
    return tmp_path


def test_an_audit_gives_the_interval_and_the_better_model(folder):
    result = run("evaluate", "good.npy", "labels.npy", "--verified", "audit.csv", "--against", "bad.npy", "--json")
    found = json.loads(result.stdout)
    low, high = found["interval"]
    assert low <= (np.load("good.npy") == np.load("clean.npy")).mean() <= high
    assert (found["better"], found["n_verified"]) == ("first", 300)
    shown = run("evaluate", "good.npy", "labels.npy", "--verified", "audit.csv", "--against", "bad.npy")
    assert "measured on 300 verified labels" in shown.stdout
    assert "The first model is better" in shown.stdout
    assert "300 of 300 rows of audit.csv are verified" in shown.stderr


@pytest.mark.parametrize("matrix", ["t.json", "t.npy"])
def test_without_an_audit_the_bounds_come_first(folder, matrix):
    lines = run("evaluate", "good.npy", "labels.npy", "--transition", matrix).stdout.splitlines()
    assert lines[0].startswith("Accuracy between ")
    assert "dualt audit labels.npy -o audit.csv, then" in lines[-1]


@pytest.mark.parametrize("column", ["prediction", "predicted"])
def test_predictions_of_a_table(folder, column):
    names, good = np.array(["ant", "bee", "cow"]), np.load("good.npy")
    Path("names.txt").write_text("\n".join(names[np.load("labels.npy")]))
    write_table("p.csv", {"label": "cow", column: names[good], "probability": np.ones(2000)})
    wanted = json.loads(run("evaluate", "good.npy", "labels.npy", "--transition", "t.npy", "--json").stdout)
    result = run("evaluate", "p.csv", "names.txt", "--transition", "t.npy", "--json")
    assert json.loads(result.stdout) == wanted


NAMES = np.array(["mole", "ant", "zebra"])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]], ids=["as the estimate", "turned"])
def test_a_matrix_is_matched_by_the_names_of_its_header(folder, order):
    """Classes in another order than the alphabet: saved as .json, .csv or plain JSON, the answer is one."""
    estimate = dualt.estimate_transition(
        noise.pair(3, 0.3)[np.load("clean.npy")] * 0.9 + 0.1 / 3, NAMES[np.load("labels.npy")], class_names=NAMES
    )
    estimate.save("n.json")
    matrix, names = estimate.transition[np.ix_(order, order)], NAMES[order]
    Path("n.csv").write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in matrix.tolist())]))
    Path("m.json").write_text(json.dumps({"transition": matrix.tolist(), "class_names": names.tolist()}))
    write_table("l.csv", {"label": NAMES[np.load("labels.npy")]})
    write_table("p.csv", {"prediction": NAMES[np.load("good.npy")]})
    Path("names.txt").write_text("\n".join(sorted(NAMES)))
    found = {}
    for path in ("n.json", "n.csv", "m.json"):
        for more in ([], ["--classes", "names.txt"]):
            result = run("evaluate", "p.csv", "l.csv", "--transition", path, *more, "--json")
            found[path, len(more)] = json.loads(result.stdout)["bounds"][0]
    assert [*found.values()] == pytest.approx([found["n.json", 0]] * 6)


def write_table(path, columns):
    pd.DataFrame(columns).to_csv(path, index=False)


def test_rows_without_a_label_are_left_out(folder):
    """The same as without these rows, in labels, predictions and audit."""
    names, there = np.array(["ant", "bee", "cow"]), np.arange(2000) % 100 != 7
    clean, given = names[np.load("clean.npy")], names[np.load("labels.npy")]
    good, bad = names[np.load("good.npy")], names[np.load("bad.npy").argmax(axis=1)]
    write_table("all.csv", {"id": range(2000), "kind": np.where(there, given, "")})
    write_table("some.csv", {"id": range(there.sum()), "kind": given[there]})
    for name, model in (("good", good), ("bad", bad)):
        Path(f"{name}-all.txt").write_text("\n".join(model))
        Path(f"{name}-some.txt").write_text("\n".join(model[there]))
    found = {}
    for part, true in (("all", clean), ("some", clean[there])):
        run("audit", f"{part}.csv", "--label", "kind", "--size", 300, "-o", f"{part}-audit.csv")
        fill_in(f"{part}-audit.csv", true)
        models = [f"good-{part}.txt", f"{part}.csv", "--against", f"bad-{part}.txt"]
        found[part] = run("evaluate", *models, "--label", "kind", "--verified", f"{part}-audit.csv", "--json")
    assert json.loads(found["all"].stdout) == json.loads(found["some"].stdout)
    assert found["some"].stderr == ""
    assert found["all"].stderr.startswith("20 of 2,000 rows have no label and are left out: 7, 107,")
    assert found["all"].stderr.count("\n") == 1
    asked = ["all.csv", "--label", "kind", "--verified", "all-audit.csv"]
    short = run("evaluate", "good-some.txt", *asked, code=2)
    assert "one prediction per label, got 1,980 in good-some.txt and 2,000 in all.csv" in short.stderr
    write_table("all.csv", {"id": range(2000), "kind": np.where(there, given[::-1], "")})
    other = run("evaluate", "good-all.txt", *asked, code=2)
    assert "it is for other labels" in " ".join(other.stderr.split())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "ticket,pred\nT-0,ant\nT-1,bee\n",
            "classes in a column 'prediction' or 'predicted' of p.csv, got ticket, pred",
        ),
        ("id,prediction\n0,ant\n1,\n", "label in every row of p.csv, got none at row 1"),
    ],
)
def test_predictions_that_cannot_be_told_are_explained(folder, content, message):
    Path("p.csv").write_text(content)
    result = run("evaluate", "p.csv", "labels.npy", "--transition", "t.npy", code=2)
    assert re.search(message, result.stderr), result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.npy", "labels.npy"], "Expected --transition or --verified"),
        (["missing.npy", "labels.npy", "--transition", "t.npy"], "missing.npy"),
        (["good.npy", "clean.npy", "--verified", "audit.csv"], "it is for other labels"),
    ],
)
def test_wrong_use_gets_one_line(folder, arguments, message):
    result = run("evaluate", *arguments, code=2)
    assert message in result.output
    assert result.stderr.count("\n") == 1


def test_predictions_in_other_words_than_the_labels_are_refused(folder):
    write_table(Path("labels.csv"), {"label": np.array(["cat", "dog"])[np.arange(40) % 2]})
    write_table(Path("p.csv"), {"prediction": np.array(["Cat", "Dog"])[np.arange(40) % 2]})
    np.save("two.npy", noise.pair(2, 0.1))
    result = run("evaluate", "p.csv", "labels.csv", "--transition", "two.npy", code=2)
    said = " ".join(result.output.split())
    assert "classes of the labels ('cat', 'dog'), got other names only ('Cat', 'Dog')" in said


def test_the_model_that_does_not_fit_is_named(folder):
    np.save("short.npy", np.load("good.npy")[:1999])
    np.save("wide.npy", np.full((2000, 4), 0.25))
    np.save("odd.npy", np.full(2000, 7))
    asked = ["evaluate", "good.npy", "labels.npy", "--transition", "t.npy", "--against"]
    for other, message in {
        "short.npy": "one prediction per label, got 1,999 in short.npy and 2,000 in labels.npy.",
        "wide.npy": "In wide.npy: Expected probabilities of 3 classes, one column each, got 4 columns.",
        "odd.npy": "In odd.npy: Expected labels from 0 to 2, got 7 at row 0.",
    }.items():
        result = run(*asked, other, code=2)
        assert message in " ".join(result.stderr.split())
    # What both have in common is not the fault of one.
    np.save("two.npy", noise.pair(2, 0.1))
    result = run(*asked[:4], "two.npy", "--against", "bad.npy", code=2)
    assert not result.stderr.startswith("error: In ")
