"""Probabilities in one table, labels in another: rows belong together by their order, which ids confirm."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import refused, run

NAMES = np.array(["cat", "dog", "fox"])
N = 120


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The probabilities and the labels of the same rows, with their ids."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=N)
    given = np.where(rng.random(N) < 0.15, (true + 1) % 3, true)
    ids = [f"u{row}" for row in range(N)]
    probs = pd.DataFrame(np.eye(3)[true] * 0.8 + rng.dirichlet(np.ones(3), N) * 0.2, columns=NAMES)
    probs.insert(0, "uid", ids)
    labels = pd.DataFrame({"uid": ids, "label": NAMES[given]})
    probs.to_csv("p.csv", index=False)
    labels.to_csv("l.csv", index=False)
    return probs, labels


def moved(labels):
    """Rows 0 to 79 as they are, the others in the opposite order."""
    return pd.concat([labels[:80], labels[80:][::-1]])


COMMANDS = {
    "estimate": ["estimate", "p.csv", "l.csv"],
    "issues": ["issues", "p.csv", "l.csv"],
    "audit": ["audit", "l.csv", "--probs", "p.csv", "--size", 20, "-o", "a.csv"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_ids_in_another_order_are_refused(tables, command):
    asked = [*COMMANDS[command], "--label", "label", "--id", "uid"]
    run(*asked)
    Path("a.csv").unlink(missing_ok=True)
    moved(tables[1]).to_csv("l.csv", index=False)
    said = " ".join(run(*asked, code=2).stderr.split())
    assert said == (
        "error: Expected the same ids in the same order in p.csv and l.csv, got 'u80' and 'u119' at row 80."
        " Sort both by 'uid'."
    )


def test_class_names_do_not_move_columns_that_have_names(tables):
    """The names of the header in another order are refused; other names are new names of the columns."""
    tables[0].drop(columns="uid").to_csv("p.csv", index=False)
    named = ["p.csv", "l.csv", "--label", "label", "--classes", "names.txt"]
    Path("names.txt").write_text("fox\ndog\ncat\n")
    for command in (["estimate", *named], ["audit", "l.csv", "--probs", *named[:1], *named[2:], "-o", "a.csv"]):
        said = " ".join(run(*command, code=2).stderr.split())
        assert "in the order of the columns of p.csv ('cat', 'dog', 'fox'), got 'fox' elsewhere" in said
    Path("names.txt").write_text("cat\ndog\nfox\n")
    wanted = json.loads(run("estimate", *named[:-2], "--json").stdout)
    assert json.loads(run("estimate", *named, "--json").stdout) == wanted
    for number, name in enumerate(NAMES):
        tables[1].replace({"label": {name: str(number)}}, inplace=True)
    tables[1].to_csv("l.csv", index=False)
    Path("names.txt").write_text("Katze\nHund\nFuchs\n")
    found = json.loads(run("estimate", *named, "--json").stdout)
    assert found["class_names"] == ["Katze", "Hund", "Fuchs"]
    assert found["transition"] == wanted["transition"]


def test_a_table_of_probabilities_may_have_labels_of_its_own(tables):
    """As `dualt probs` writes them; those of the other table count."""
    plain = run("issues", "p.csv", "l.csv", "--label", "label", "--id", "uid", "--json").stdout
    tables[0].assign(label=NAMES[0]).to_csv("p.csv", index=False)
    assert run("issues", "p.csv", "l.csv", "--label", "label", "--id", "uid", "--json").stdout == plain
    tables[0].drop(columns="uid").to_csv("p.csv", index=False, header=False)
    run("issues", "p.csv", "l.csv", "--label", "label", "--json")


def test_a_second_model_is_not_taken_for_labels(tables):
    probs, labels = tables
    for name in ("one.csv", "two.csv"):
        probs.assign(label=labels["label"]).to_csv(name, index=False)
    words = "--label", "label", "--id", "uid"
    assert "Pass two models as one.csv,two.csv" in refused("issues", "one.csv", "two.csv", *words)
    for name, table in {"p.parquet": probs, "l.parquet": labels}.items():
        table.assign(uid=range(N)).to_parquet(name)
    run("issues", "p.parquet", "l.parquet", *words)
