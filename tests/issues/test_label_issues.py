"""What can be done with found issues."""

from dataclasses import replace

import numpy as np
import pytest

import dualt
from dualt.errors import InputError


@pytest.fixture
def issues():
    probs, labels = [[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4, [1, 1, 0, 0, 1, 1, 1, 1]
    return dualt.find_label_issues(probs, labels, [[0.9, 0.1], [0.1, 0.9]], top=2)


def test_labels_can_be_flagged_again(issues):
    for top in range(9):
        assert sorted(issues.rethreshold(top=top).indices) == sorted(issues.ranking[:top])
    right = issues.probability_right
    np.testing.assert_array_equal(issues.rethreshold(0.5).is_issue, right < 0.5)
    limit = float(right.max())  # a label exactly at the threshold stays
    np.testing.assert_array_equal(issues.rethreshold(limit).is_issue, right < np.float32(limit))
    wide = issues.spread(np.arange(8) * 2, 20)
    assert wide.rethreshold(top=20).is_issue.sum() == wide.n_labelled == 8
    for wrong in ({}, {"threshold": 0.5, "top": 1}, {"top": -1}, {"threshold": 1.5}):
        with pytest.raises(InputError, match=r"threshold|top"):
            issues.rethreshold(**wrong)


def test_a_notebook_shows_the_most_suspect_with_their_texts(issues):
    texts = [f"<b>text {row}</b>" for row in range(8)]
    page = replace(issues.rethreshold(top=3), texts=texts, class_names=("cat", "<dog>"))._repr_html_()
    assert "flagged=3" in page
    assert [page.count(f"text {row}") for row in issues.ranking[:4]] == [1, 1, 1, 0]
    assert "<b>" not in page
    assert "&lt;dog&gt;" in page
