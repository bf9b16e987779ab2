"""`dualt votes`: from a table of votes or an export to the consensus, and on to the other commands."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dualt.cli import app

WORDS = {"cat": ["purr", "meow", "paw"], "dog": ["bark", "bone", "tail"], "owl": ["hoot", "wing", "nest"]}


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    return result.stderr


@pytest.fixture
def truth(tmp_path, monkeypatch):
    """votes.csv in the working folder, a row per vote, and wide.csv, a column per annotator."""
    monkeypatch.chdir(tmp_path)
    rng, names = np.random.default_rng(0), list(WORDS)
    truth = pd.Series(rng.choice(names, 150), [f"x{row}" for row in range(150)])
    rows = []
    for who, right in (("ann", 0.9), ("bob", 0.75), ("cy", 0.6)):
        for item, true in truth.items():
            if rng.random() < 0.85:
                said = true if rng.random() < right else rng.choice(names)
                rows.append((item, who, said, f"{' '.join(WORDS[true][:2])} {item}"))
    votes = pd.DataFrame(rows, columns=["id", "who", "class", "text"])
    votes.to_csv("votes.csv", index=False)
    votes.pivot(index="id", columns="who", values="class").to_csv("wide.csv")
    return truth


LONG = ("votes.csv", "--item", "id", "--annotator", "who", "--label", "class")


def test_the_consensus_goes_on_into_the_other_commands(truth):
    shown = run("votes", *LONG, "--text", "text", "-o", "consensus.csv", "--annotators", "people.csv",
                "--report", "page.html", "--next", 10)  # fmt: skip
    assert "of the consensus looks wrong (at least" in shown
    assert "dualt audit consensus.csv --label class --id id --text text --design uniform" in shown
    consensus = pd.read_csv("consensus.csv")
    assert consensus.columns.tolist() == ["id", "class", "probability", "votes", "agreement", "text"]
    assert (consensus["class"].to_numpy() == truth[consensus.id]).mean() > 0.95
    people = pd.read_csv("people.csv")
    assert people.sort_values("quality").name.tolist() == ["cy", "bob", "ann"]
    assert "cy (" in Path("page.html").read_text(encoding="utf-8")
    run("issues", "consensus.csv", "--label", "class", "--text", "text", "--id", "id")
    run(
        "audit",
        "consensus.csv",
        "--label",
        "class",
        "--id",
        "id",
        "--design",
        "uniform",
        "--size",
        60,
        "-o",
        "audit.csv",
    )
    audit = pd.read_csv("audit.csv", dtype=str, keep_default_na=False)
    audit.assign(true=truth[audit.id].to_numpy()).to_csv("audit.csv", index=False)
    found = json.loads(run("votes", *LONG, "--verified", "audit.csv", "--json"))
    low, high = found["noise_rate_interval"]
    assert low <= found["noise_rate"] <= high < 0.3
    assert all(one["low"] <= one["quality"] <= one["high"] for one in found["annotators"])
    audit.assign(true=truth[audit.id].to_numpy()).drop(columns="id").to_csv("rows.csv", index=False)
    assert json.loads(run("votes", *LONG, "--verified", "rows.csv", "--json")) == found


def test_a_column_per_annotator_and_an_export_give_the_same(truth):
    plain = json.loads(run("votes", *LONG, "--json"))
    wide = json.loads(run("votes", "wide.csv", "--item", "id", "--json"))
    assert wide["noise_rate"] == pytest.approx(plain["noise_rate"])
    votes = pd.read_csv("votes.csv")
    tasks = [
        {"id": item, "data": {"text": group.text.iloc[0]}, "annotations": [
            {"completed_by": who, "result": [{"value": {"choices": [label]}}]}
            for who, label in zip(group.who, group["class"], strict=True)
        ]}
        for item, group in votes.groupby("id", sort=False)
    ]  # fmt: skip
    Path("export.json").write_text(json.dumps(tasks), encoding="utf-8")
    run("votes", "export.json", "--text", "text", "-o", "consensus.csv")
    assert {"item", "label", "text"} < {*pd.read_csv("consensus.csv").columns}
    assert json.loads(run("votes", "export.json", "--json"))["noise_rate"] == pytest.approx(plain["noise_rate"])


def test_probabilities_are_matched_by_item(truth):
    probs = pd.DataFrame(np.eye(3)[pd.Categorical(truth).codes] * 0.7 + 0.1, truth.index, list(WORDS))
    probs.rename_axis("id").sample(frac=1, random_state=0).to_csv("probs.csv")
    run("votes", *LONG, "--probs", "probs.csv", "-o", "consensus.csv")
    consensus = pd.read_csv("consensus.csv")
    assert (consensus["class"].to_numpy() == truth[consensus.id]).mean() > 0.97


def test_what_is_not_usable_is_refused(truth):
    pd.read_csv("votes.csv").drop_duplicates("id").to_csv("single.csv", index=False)
    assert "got one vote on each" in refused("votes", "single.csv", *LONG[1:])
    assert "Expected a column 'annotator'" in refused("votes", "votes.csv", "--item", "id", "--annotator", "annotator")
    pd.DataFrame({"id": ["x1", "x2"], "true": ["cat", "dog"], "probability": [0.1, 0.5]}).to_csv(
        "chosen.csv", index=False
    )
    assert "--settled" in refused("votes", *LONG, "--verified", "chosen.csv")
    run("votes", *LONG, "--settled", "chosen.csv")
