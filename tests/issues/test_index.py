"""The index of a data frame or series travels: into `to_frame`, and to bring labels into the order of probabilities."""

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt.errors import InputError, TransitionError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 200)
    index = pd.Index(rng.permutation(1000)[:200], name="row")
    probs = pd.DataFrame(np.eye(3)[clean] * 0.7 + 0.1, index=index, columns=["cat", "dog", "owl"])
    names = np.array(probs.columns)
    given = np.where(rng.random(200) < 0.1, (clean + 1) % 3, clean)
    return probs, pd.Series(names[given], index=index, name="label")


def test_the_frame_of_issues_has_the_index_of_the_data(data):
    probs, labels = data
    of_both = dualt.find_label_issues(probs, labels).to_frame()
    assert of_both.index.equals(probs.index)
    assert (labels.to_frame().join(of_both)["given"] == labels).all()
    of_labels = dualt.find_label_issues(probs.to_numpy(), labels, class_names=probs.columns).to_frame()
    of_probs = dualt.find_label_issues(probs, labels.to_numpy()).to_frame()
    pd.testing.assert_frame_equal(of_both, of_labels)
    pd.testing.assert_frame_equal(of_both, of_probs)
    of_neither = dualt.find_label_issues(probs.to_numpy(), labels.to_numpy(), class_names=probs.columns).to_frame()
    assert of_neither.index.tolist() == list(range(200))


def test_classes_may_have_the_names_of_what_cross_fit_returns(data):
    probs, labels = data
    renamed = dict(zip(probs.columns, ("texts", "members", "determined"), strict=True))
    found = dualt.find_label_issues(probs.rename(columns=renamed), labels.map(renamed))
    assert found.listed().columns.tolist() == dualt.find_label_issues(probs, labels).listed().columns.tolist()


def test_labels_are_brought_into_the_order_of_the_probabilities(data):
    probs, labels = data
    straight = dualt.find_label_issues(probs, labels).to_frame()
    shuffled = dualt.find_label_issues(probs, labels.sample(frac=1, random_state=0)).to_frame()
    pd.testing.assert_frame_equal(straight, shuffled)
    estimates = [dualt.estimate_transition(probs, given) for given in (labels, labels.sort_index())]
    np.testing.assert_array_equal(*(estimate.transition for estimate in estimates))


@pytest.mark.parametrize("change", [lambda s: s.reset_index(drop=True), lambda s: s.set_axis([1] * len(s))])
def test_labels_of_other_rows_are_refused(data, change):
    probs, labels = data
    with pytest.raises(InputError, match=r"index of the probabilities.*to_numpy"):
        dualt.find_label_issues(probs, change(labels))


def test_an_estimate_is_matched_by_name(data):
    probs, labels = data
    estimate = dualt.estimate_transition(probs, labels)
    turned = probs[["owl", "cat", "dog"]]
    straight = dualt.find_label_issues(probs, labels, estimate)
    other = dualt.find_label_issues(turned, labels, estimate)
    np.testing.assert_allclose(other.transition[1:, 1:], straight.transition[:2, :2])
    np.testing.assert_array_equal(other.ranking, straight.ranking)
    assert straight.transition_estimate is estimate
    assert other.transition_estimate is None, "its figures are in another order"
    framed = pd.DataFrame(estimate.transition, estimate.class_names, estimate.class_names)
    np.testing.assert_array_equal(dualt.find_label_issues(turned, labels, framed).transition, other.transition)
    with pytest.raises(TransitionError, match="'cat', 'fox'"):
        dualt.find_label_issues(probs.rename(columns={"cat": "fox"}), labels.replace("cat", "fox"), estimate)
