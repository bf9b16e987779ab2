"""Training sets by hand: what is replaced, dropped, kept and weighed."""

import numpy as np
import pytest

from dualt.errors import InputError
from dualt.issues import LabelIssues
from dualt.issues.corrections import training_set


def found(given, suggested, sureness, is_issue, transition=((0.8, 0.2), (0.4, 0.6))):
    given, suggested, sureness = np.array(given), np.array(suggested), np.array(sureness)
    right, n_classes = np.where(given == suggested, sureness, 1 - sureness), len(transition)
    pairs, names = np.zeros((n_classes, n_classes)), tuple(map(str, range(n_classes)))
    issues = LabelIssues(
        given, right, suggested, sureness, pairs, np.array(is_issue, bool), names, np.array(transition), None
    )
    return issues, given, right


def test_clear_suggestions_replace_labels_and_unclear_ones_drop_the_row():
    made = found([0, 0, 1, 1], [0, 1, 0, 0], [0.9, 0.5, 0.49, 0.7], [0, 1, 1, 0])
    rows, labels, importance = training_set("clean", *made)
    assert (rows.tolist(), labels.tolist(), importance) == ([0, 1, 3], [0, 1, 1], 1)


def test_no_class_vanishes():
    made = found([0, 0, 1, 1], [0, 0, 0, 0], [0.9, 0.9, 0.95, 0.8], [0, 0, 1, 1])
    rows, labels, _ = training_set("clean", *made)
    assert rows.tolist() == [0, 1, 2, 3]
    assert labels.tolist() == [0, 0, 0, 1], "the likeliest of its labels stays"


def test_weights_are_the_chance_to_be_right_over_the_share_that_is_kept():
    made = found([0, 1, 1], [0, 1, 0], [0.4, 0.3, 1.0], [0, 0, 1], ((0.8, 0.2), (0.99, 0.01)))
    rows, labels, importance = training_set("reweight", *made)
    assert (rows, labels.tolist()) == (None, [0, 1, 1])
    np.testing.assert_allclose(importance, [0.4 / 0.8, 10, 0])
    with pytest.raises(InputError, match="all are wrong"):
        training_set("reweight", *found([0], [1], [1.0], [1]))


def test_the_posterior_leaves_labels_as_they_are():
    rows, labels, importance = training_set("posterior", *found([0, 1], [1, 1], [0.9, 0.9], [1, 0]))
    assert (rows, labels.tolist(), importance) == (None, [0, 1], 1)
