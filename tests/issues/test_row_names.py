"""Files and pages call rows what the data frame calls them: a review finds its way back to the table."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt.errors import LabelsError
from dualt.issues import apply_review, read_review
from dualt.report import render_report
from tests.cli.commands import numbers_of, run

NAMES = ["cat", "dog", "fox"]
UNLABELLED = [0, 5, 17, 199]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A CSV of 200 rows, of which some have no label, and the last is one of these."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=200)
    given = np.where(rng.random(200) < 0.2, (true + 1) % 3, true)
    probs = (0.2 * rng.dirichlet(np.ones(3), 200) + 0.8 * np.eye(3)[true]).round(4)
    frame = pd.DataFrame(probs, columns=NAMES)
    frame.insert(0, "label", np.array(NAMES, object)[given])
    frame.insert(0, "uid", [f"u{row}" for row in range(200)])
    frame.loc[UNLABELLED, "label"] = None
    frame.to_csv("data.csv", index=False)
    return frame


def shown_of(issues, **options):
    return numbers_of(render_report(issues.transition_estimate, issues, **options))["lists"][0]


def write_review(issues, path="review.csv"):
    """Write what the page's button downloads once every suggestion is taken."""
    shown = shown_of(issues)
    ids = shown["ids"] or [""] * len(shown["index"])
    names = np.array(issues.class_names)
    columns = {"index": shown["index"], "id": ids, "old": names[shown["given"]], "new": names[shown["suggested"]]}
    pd.DataFrame(columns).to_csv(path, index=False)


@pytest.mark.parametrize("order", [lambda frame: frame, lambda frame: frame.sample(frac=1, random_state=0)])
def test_from_a_table_with_missing_labels_to_the_corrected_one(table, order):
    frame = order(pd.read_csv("data.csv").dropna(subset="label"))
    issues = dualt.find_label_issues(frame[NAMES], frame["label"])
    issues.save("issues.csv")
    issues.save("issues.json")
    saved = pd.read_csv("issues.csv").set_index("index")
    assert len(saved) > 20
    assert frame["label"].loc[saved.index].tolist() == saved["given"].tolist()
    assert issues.to_frame()["suggested"].loc[saved.index].tolist() == saved["suggested"].tolist()
    assert [row["index"] for row in json.loads(Path("issues.json").read_text())["issues"]] == saved.index.tolist()
    assert [row["index"] for row in issues.to_dict()["issues"]] == saved.index.tolist()
    shown = shown_of(issues)
    assert shown["index"] == saved.index.tolist()
    assert [NAMES[code] for code in shown["given"]] == saved["given"].tolist()
    write_review(issues)
    run("apply-review", "data.csv", "review.csv", "--label", "label", "-o", "corrected.csv")
    # A doubtful label keeps its class in the table; the page offers the second-likeliest.
    review = pd.read_csv("review.csv").set_index("index")["new"]
    doubtful = saved["suggested"] == saved["given"]
    assert (review[~doubtful] == saved["suggested"][~doubtful]).all()
    assert (review[doubtful] != saved["given"][doubtful]).all()
    expected = table["label"].copy()
    expected.loc[review.index] = review
    pd.testing.assert_series_equal(pd.read_csv("corrected.csv")["label"], expected, check_dtype=False)


def test_a_review_is_put_into_the_series_it_was_made_for(table):
    labels = table["label"].dropna().sample(frac=1, random_state=1)
    issues = dualt.find_label_issues(table[NAMES].loc[labels.index], labels)
    write_review(issues)
    decisions = read_review("review.csv")
    corrected = pd.Series(apply_review(labels, decisions), labels.index)
    assert corrected[[decision.index for decision in decisions]].tolist() == [decision.new for decision in decisions]
    assert (corrected != labels).sum() == sum(decision.new != decision.old for decision in decisions)
    with pytest.raises(LabelsError, match="made for other labels"):
        apply_review(labels.to_numpy(), decisions)
    with pytest.raises(LabelsError, match=r"example 17 .* 'no such row'"):
        apply_review(labels, [replace(decisions[0], index=17)])
    numbers = [decision.index for decision in decisions[:3]]
    shown = shown_of(issues.rethreshold(top=1), reviewed=dict.fromkeys(numbers, "fox"))
    assert {shown["index"][place] for place, _ in shown["known"]} == {*numbers}


def test_an_index_of_names_is_a_column_of_ids(table):
    frame = table.dropna(subset="label").set_index("uid")
    issues = dualt.find_label_issues(frame[NAMES], frame["label"])
    issues.save("issues.csv")
    saved = pd.read_csv("issues.csv")
    assert frame["label"].loc[saved["id"]].tolist() == saved["given"].tolist()
    assert saved["index"].tolist() == issues.indices.tolist()
    assert shown_of(issues)["ids"] == saved["id"].tolist()
