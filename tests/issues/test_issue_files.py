import csv
import json

import numpy as np
import pytest

import dualt
from dualt.errors import FileError
from dualt.issues import issue_rows

NAMES = ["cat", "=dog()"]


@pytest.fixture
def issues():
    probs = [[0.9, 0.1]] * 5 + [[0.2, 0.8]] * 5
    return dualt.find_label_issues(probs, [0] * 4 + [1] * 6, [[0.9, 0.1], [0.2, 0.8]], class_names=NAMES)


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
    assert content["issues"] == list(issue_rows(issues))
    assert (content["n_samples"], content["flagged"]) == (10, len(issues.indices))
    np.testing.assert_allclose(content["by_pair"], issues.by_pair)
    parquet = pytest.importorskip("pyarrow.parquet")
    issues.save(tmp_path / "issues.parquet")
    assert parquet.read_table(tmp_path / "issues.parquet").to_pylist() == content["issues"]


def noise_everywhere(n_classes):
    matrix = 0.8 * np.eye(n_classes) + 0.2 * np.random.default_rng(0).dirichlet(np.ones(n_classes), n_classes)
    return dualt.find_label_issues(np.full((n_classes, n_classes), 1 / n_classes), np.arange(n_classes), matrix)


def test_of_more_than_a_hundred_classes_json_has_the_largest_pairs():
    assert "by_pair" in noise_everywhere(100).to_dict()
    found = noise_everywhere(101)
    content = found.to_dict()
    assert "by_pair" not in content
    pairs = [(pair["given"], pair["true"], pair["expected_count"]) for pair in content["largest_pairs"]]
    numbers = np.ndenumerate(found.by_pair)
    different = [(str(given), str(true), number) for (given, true), number in numbers if given != true]
    assert pairs == sorted(different, key=lambda pair: -pair[2])[:10_000]


def test_pairs_that_never_occur_are_left_out():
    labels, matrix = np.arange(150), np.eye(150)
    matrix[7, :9] = [0.1, 0, 0, 0, 0, 0, 0, 0.7, 0.2]
    content = dualt.find_label_issues(np.full((150, 150), 1 / 150), labels, matrix).to_dict()
    assert [(pair["given"], pair["true"]) for pair in content["largest_pairs"]] == [("8", "7"), ("0", "7")]


def test_another_ending_is_refused(issues, tmp_path):
    with pytest.raises(FileError, match=r"\.csv, \.json, \.parquet"):
        issues.save(tmp_path / "issues.txt")
    with pytest.raises(FileError, match="does not exist"):
        issues.save(tmp_path / "nowhere" / "issues.csv")
    assert list(tmp_path.iterdir()) == []
