"""What looks like probabilities and labels becomes a posterior: aligned, without the rows that have no label."""

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.rows import as_posterior
from dualt.rows.entry import positions, row_ids, row_numbers
from tests.strategies import same_summary

RNG = np.random.default_rng(0)
CLEAN = RNG.integers(0, 3, 600)
PROBS = RNG.dirichlet(np.full(3, 0.3), 600) * 0.4 + 0.6 * np.eye(3)[CLEAN]
GIVEN = np.where(RNG.random(600) < 0.2, (CLEAN + 1) % 3, CLEAN)
MISSING = np.array([0, 7, 8, 300, 599])
NAMES = np.array(["ant", "bee", "cat"])


def without_some(kind):
    if kind == "NaN":
        labels = GIVEN.astype(float)
        labels[MISSING] = np.nan
        return labels
    labels = NAMES[GIVEN].astype(object)
    labels[MISSING] = None if kind == "None" else ""
    return pd.Series(labels) if kind == "series" else labels.astype(str) if kind == "text" else labels


@pytest.mark.parametrize("kind", ["NaN", "None", "empty", "text", "series"])
def test_rows_without_a_label_are_left_out(kind):
    labels, names = without_some(kind), None if kind == "NaN" else NAMES
    kept = np.delete(np.arange(600), MISSING)
    posterior = as_posterior(PROBS, labels, names)
    np.testing.assert_array_equal(posterior.labelled, kept)
    assert posterior.n_given == 600
    assert same_summary(posterior.summary, as_posterior(PROBS[kept], GIVEN[kept]).summary)
    estimate = dualt.estimate_transition(PROBS, labels, class_names=names)
    np.testing.assert_array_equal(estimate.transition, dualt.estimate_transition(PROBS[kept], GIVEN[kept]).transition)
    issues = dualt.find_label_issues(PROBS, labels, class_names=names)
    assert len(issues) == 600
    assert not issues.is_issue[MISSING].any()
    np.testing.assert_array_equal(issues.is_issue[kept], dualt.find_label_issues(PROBS[kept], GIVEN[kept]).is_issue)


def test_verified_rows_are_positions_among_all_rows_that_were_passed():
    kept = np.delete(np.arange(600), MISSING)
    rows = RNG.permutation(kept)[:200]
    found = dualt.estimate_transition(PROBS, without_some("NaN"), verified=(rows, CLEAN[rows]))
    places = np.searchsorted(kept, rows)
    wanted = dualt.estimate_transition(PROBS[kept], GIVEN[kept], verified=(places, CLEAN[rows]))
    np.testing.assert_allclose(found.transition, wanted.transition)
    with pytest.raises(LabelsError, match="row 0, which has none"):
        dualt.estimate_transition(PROBS, without_some("NaN"), verified=(np.arange(100), CLEAN[:100]))


def test_more_classes_than_a_matrix_can_have_are_refused_before_any_work():
    probs = np.broadcast_to(np.float32(1 / 20_000), (6_000, 20_000))
    with pytest.raises(InputError, match=r"at most 10,000 classes, got 20,000.*3\.2 GB"):
        dualt.estimate_transition(probs, np.zeros(6_000, int))


def test_errors_say_how_rows_are_counted_where_labels_are_missing():
    probs, labels = np.full((20, 2), 0.5), [None, *[0, 1] * 9, 0]
    probs[10] = 0.9
    with pytest.raises(ProbabilitiesError, match=r"row 9.*without a label are not counted"):
        dualt.estimate_transition(probs, labels)


def test_several_models_are_kept_and_their_mean_is_read():
    members = RNG.dirichlet(np.ones(3), (2, 600)).astype(np.float32)
    labels = without_some("NaN")
    kept = np.delete(np.arange(600), MISSING)
    for given in (members, list(members), [pd.DataFrame(one) for one in members], members.tolist()):
        posterior = as_posterior(given, labels)
        np.testing.assert_array_equal(posterior.members, members[:, kept])
        np.testing.assert_allclose(posterior.take(np.arange(len(kept)))[0], members.mean(axis=0)[kept], rtol=1e-6)
    for alone in (members[:1], dualt.cross_fit(PROBS, labels, quick=True)):
        assert as_posterior(alone, labels).members is None


def test_models_that_do_not_fit_together_are_refused():
    members, given = RNG.dirichlet(np.ones(3), (2, 100)), GIVEN[:100]
    with pytest.raises(InputError, match=r"same probabilities from models 1 and 3 of 3"):
        dualt.estimate_transition([members[0], members[1], 0.995 * members[0] + 0.005 * members[1]], given)
    dualt.estimate_transition([members[0], 0.95 * members[0] + 0.05 * members[1]], given)
    with pytest.raises(InputError, match=r"from model 2 of 2, \(99, 3\)"):
        dualt.estimate_transition([members[0], members[1][:99]], given)
    spoiled = members.copy()
    spoiled[1, 7, 0] = np.nan
    with pytest.raises(ProbabilitiesError, match=r"^In model 2 of 2: Expected finite probabilities, got nan at row 7"):
        dualt.estimate_transition(spoiled, given)
    frames = [pd.DataFrame(one, columns=NAMES) for one in members]
    with pytest.raises(InputError, match="one order, got others from model 2 of 2"):
        as_posterior([frames[0], frames[1][NAMES[::-1]]], NAMES[given])
    with pytest.raises(InputError, match="different indices"):
        as_posterior([frames[0], frames[1][::-1]], NAMES[given])
    with pytest.raises(InputError, match=r"several models: pass several files \(one\.npy,"):
        dualt.estimate_transition(members[0], given, "views", determined=True)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ([np.eye(2), [[0.5, 0.5], [0.25, 0.5]]], "got 0.75 at row 1"),
        (np.array([[[1.5, 0.5]], [[-0.5, 0.5]]]), "row 0"),
        ([[None, []]], "probabilities"),
        ([], "shape"),
        (np.empty((0, 0, 0)), "shape"),
        (np.empty((2, 0, 2)), "at least one row"),
    ],
)
def test_what_one_model_cannot_say_is_refused_though_the_mean_could_be(probs, message):
    with pytest.raises(ProbabilitiesError, match=message):
        dualt.estimate_transition(probs, [0, 1])


@pytest.mark.parametrize(
    ("index", "numbers", "ids"),
    [
        (None, None, None),
        (pd.RangeIndex(2), [0, 1], None),
        (pd.Index([7, 3]), [7, 3], None),
        (pd.Index([7, 3], name="sku"), None, ["7", "3"]),
        (pd.Index([7, 7]), None, ["7", "7"]),
        (pd.Index([-1, 3]), None, ["-1", "3"]),
        (pd.Index([1, 2**53]), None, ["1", str(2**53)]),
        (pd.Index([1, None], dtype="Int64"), None, ["1", "<NA>"]),
        (pd.Index(["a", "b"]), None, ["a", "b"]),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), None, ["('a', 1)", "('b', 2)"]),
        (pd.RangeIndex(0), None, []),
    ],
)
def test_whole_numbers_without_a_name_are_row_numbers(index, numbers, ids):
    found = row_numbers(index)
    assert (None if found is None else found.tolist()) == numbers
    assert row_ids(index) == ids


def test_positions_are_those_of_a_search_one_by_one():
    rng = np.random.default_rng(0)
    numbers = rng.permutation(50)[:30]
    wanted = np.arange(50)
    slow = [numbers.tolist().index(number) if number in numbers else -1 for number in wanted]
    assert positions(numbers, wanted).tolist() == slow
