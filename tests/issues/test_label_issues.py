"""What can be done with issues: files of them, other thresholds, a table in a notebook."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import dualt
from dualt.errors import FileError, InputError

NAMES = ["cat", "=dog()"]


@pytest.fixture
def issues():
    probs = [[0.9, 0.1]] * 5 + [[0.2, 0.8]] * 5
    return dualt.find_label_issues(probs, [0] * 4 + [1] * 6, [[0.9, 0.1], [0.2, 0.8]], class_names=NAMES)


@pytest.fixture
def flagged():
    probs, labels = [[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4, [1, 1, 0, 0, 1, 1, 1, 1]
    return dualt.find_label_issues(probs, labels, [[0.9, 0.1], [0.1, 0.9]], top=2)


def test_a_table_holds_the_flagged_labels_most_suspect_first(issues, tmp_path):
    issues.save(tmp_path / "issues.csv")
    with (tmp_path / "issues.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["index"]) for row in rows] == issues.indices.tolist()
    assert rows[0]["index"] == "4"
    assert (rows[0]["given"], rows[0]["suggested"]) == ("'=dog()", "cat")
    assert float(rows[0]["probability_right"]) == pytest.approx(issues.probability_right[4], abs=1e-6)


def test_json_holds_everything_and_parquet_the_table(issues, tmp_path):
    issues.save(tmp_path / "issues.json")
    content = json.loads((tmp_path / "issues.json").read_text())
    assert content == issues.to_dict()
    assert content["issues"] == issues.listed().to_dict("records")
    assert (content["n_samples"], content["flagged"]) == (10, len(issues.indices))
    np.testing.assert_allclose(content["by_pair"], issues.by_pair)
    parquet = pytest.importorskip("pyarrow.parquet")
    issues.save(tmp_path / "issues.parquet")
    assert parquet.read_table(tmp_path / "issues.parquet").to_pylist() == content["issues"]


@pytest.mark.parametrize("n_classes", [100, 101])
def test_json_has_every_pair_of_up_to_a_hundred_classes(n_classes):
    probs = np.full((n_classes, n_classes), 1 / n_classes)
    found = dualt.find_label_issues(probs, np.arange(n_classes), dualt.noise.symmetric(n_classes, 0.2))
    assert ("by_pair" in found.to_dict()) == (n_classes == 100)


def test_another_ending_is_refused(issues, tmp_path):
    with pytest.raises(FileError, match=r"\.csv, \.json, \.parquet"):
        issues.save(tmp_path / "issues.txt")
    with pytest.raises(FileError, match="does not exist"):
        issues.save(tmp_path / "nowhere" / "issues.csv")
    assert list(tmp_path.iterdir()) == []


def test_labels_can_be_flagged_again(flagged):
    for top in range(9):
        assert sorted(flagged.rethreshold(top=top).indices) == sorted(flagged.ranking[:top])
    right = flagged.probability_right
    np.testing.assert_array_equal(flagged.rethreshold(0.5).is_issue, right < 0.5)
    limit = float(right.max())  # a label exactly at the threshold stays
    np.testing.assert_array_equal(flagged.rethreshold(limit).is_issue, right < np.float32(limit))
    wide = flagged.spread(np.arange(8) * 2, 20)
    assert wide.rethreshold(top=20).is_issue.sum() == wide.n_labelled == 8
    for wrong in ({}, {"threshold": 0.5, "top": 1}, {"top": -1}, {"threshold": 1.5}):
        with pytest.raises(InputError, match=r"threshold|top"):
            flagged.rethreshold(**wrong)


def test_a_notebook_shows_the_most_suspect_with_their_texts(flagged):
    texts = [f"<b>text {row}</b>" for row in range(8)]
    page = replace(flagged.rethreshold(top=3), texts=texts, class_names=("cat", "<dog>"))._repr_html_()
    assert "flagged=3" in page
    assert [page.count(f"text {row}") for row in flagged.ranking[:4]] == [1, 1, 1, 0]
    assert "<b>" not in page
    assert "&lt;dog&gt;" in page
