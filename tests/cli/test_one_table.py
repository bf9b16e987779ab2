"""One table in: labels, ids, texts and probabilities are columns of it, and row numbers are those of the file."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import read_rows, run

NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """300 rows of three clear classes, one in ten labels wrong, one in twenty missing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    clean = rng.integers(0, 3, 300)
    given = np.where(rng.random(300) < 0.1, (clean + 1) % 3, clean)
    labels = np.array(NAMES, dtype=object)[given]
    labels[rng.random(300) < 0.05] = None
    labels[0] = None
    probs = np.eye(3)[clean] * 0.8 + rng.dirichlet(np.ones(3), 300) * 0.2
    titles = [f'text, "{i}"\n🦊' for i in range(300)]
    frame = pd.DataFrame({"sku": [f"s{i // 2:03}" for i in range(300)], "title": titles, "label": labels})
    frame[[f"p_{name}" for name in NAMES]] = probs
    frame["price"] = rng.random(300)
    frame.attrs["wrong"] = [i for i in range(300) if labels[i] is not None and given[i] != clean[i]]
    return frame


OPTIONS = ["--label", "label", "--id", "sku", "--text", "title", "--probs", "p_*"]


def write(frame, name):
    if name.endswith(".parquet"):
        frame.to_parquet(name)
    elif name.endswith(".jsonl"):
        frame.to_json(name, orient="records", lines=True)
    elif name == "comma.csv":
        frame.to_csv(name, index=False, sep=";", decimal=",")
    else:
        frame.to_csv(name, index=False, sep="\t" if name.endswith(".tsv") else "|" if "pipe" in name else ",")
    return name


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.parquet", "data.jsonl", "comma.csv", "pipe.csv"])
def test_issues_of_one_table(tmp_path, table, name):
    write(table, name)
    result = run("issues", name, *OPTIONS, "--json", "-o", "issues.csv", "--report", "page.html")
    found = json.loads(result.stdout)
    missing = np.flatnonzero(table["label"].isna())
    assert f"{len(missing)} of 300 rows have no label and are left out: 0, {missing[1]}" in result.stderr
    assert found["n_samples"] == 300 - len(missing)
    assert {row["index"] for row in found["issues"]} == {*table.attrs["wrong"]}
    for row in found["issues"]:
        at = row["index"]
        assert (row["given"], row["id"], row["text"]) == tuple(table.loc[at, ["label", "sku", "title"]])
    assert [(int(row["index"]), row["id"], row["text"]) for row in read_rows("issues.csv")] == [
        (row["index"], row["id"], row["text"]) for row in found["issues"]
    ]
    assert found["issues"][0]["text"].splitlines()[0].replace('"', '\\"') in (tmp_path / "page.html").read_text()


def test_columns_may_be_listed_and_need_no_common_name(table):
    renamed = table.rename(columns={f"p_{name}": name for name in NAMES})
    write(renamed, "data.csv")
    write(table, "starred.csv")
    one = run("issues", "data.csv", "--label", "label", "--probs", "owl, cat,dog", "--json")
    other = run("issues", "starred.csv", "--label", "label", "--probs", "p_*", "--json")
    one, other = (json.loads(result.stdout) for result in (one, other))
    assert one["class_names"] == ["owl", "cat", "dog"]
    assert [row["index"] for row in one["issues"]] == [row["index"] for row in other["issues"]]


def test_a_matrix_is_matched_by_name(table):
    write(table, "data.csv")
    run("estimate", "data.csv", *OPTIONS[:2], "--probs", "p_*", "-o", "t.json")
    turned = ["--label", "label", "--probs", "p_owl,p_cat,p_dog"]
    Path("names.txt").write_text("owl\ncat\ndog\n")
    one = run("issues", "data.csv", *OPTIONS[:2], "--probs", "p_*", "--transition", "t.json", "--json")
    other = run("issues", "data.csv", *turned, "--classes", "names.txt", "--transition", "t.json", "--json")
    one, other = (json.loads(result.stdout) for result in (one, other))
    assert [row["index"] for row in one["issues"]] == [row["index"] for row in other["issues"]]
    content = json.loads(Path("t.json").read_text())
    content["class_names"] = ["cat", "fox", "owl"]
    Path("t.json").write_text(json.dumps(content))
    result = run("issues", "data.csv", *OPTIONS[:2], "--probs", "p_*", "--transition", "t.json", code=2)
    assert "'dog', 'fox'" in result.output
