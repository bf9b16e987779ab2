"""What can be done with found issues."""

import numpy as np
import pytest

import dualt
from dualt.errors import InputError


@pytest.fixture
def issues():
    probs, labels = [[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4, [1, 1, 0, 0, 1, 1, 1, 1]
    return dualt.find_label_issues(probs, labels, [[0.9, 0.1], [0.1, 0.9]], top=2)


def test_a_mask_names_the_rows_that_it_marks(issues):
    kept = np.arange(8) == issues.indices[1]
    assert issues.without(kept).indices.tolist() == [issues.indices[0]]
    assert issues.without(kept.tolist()).indices.tolist() == [issues.indices[0]]
    assert issues.without([]).indices.tolist() == issues.indices.tolist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones(7, bool), r"a mask of 8 rows, one per label, got shape \(7,\)"),
        ([-1], "row numbers from 0 to 7, got -1"),
        ([8], "row numbers from 0 to 7, got 8"),
        ([0.5], "row numbers as a list of integers, got dtype float64"),
    ],
)
def test_rows_that_are_not_there_are_refused(issues, rows, message):
    with pytest.raises(InputError, match=message):
        issues.without(rows)
