"""`partial_fit` on chunks is `fit` on the whole, for the estimators that read the data once; the others have none."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualt
from dualt.errors import DualtWarning, InputError, LabelsError, ProbabilitiesError
from dualt.estimators import ESTIMATORS
from dualt.estimators import sklearn as classes
from tests.strategies import posteriors

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(3), 90)
LABELS = RNG.integers(0, 3, 90)
WORDS = np.array(["cow", "ant", "bee"])
ONCE = [classes.TEstimator, classes.DualTEstimator, classes.SpadeEstimator]
AGAIN = [
    classes.ConfidentJointEstimator, classes.CleanCountEstimator, classes.JointEstimator,
    classes.HocEstimator,
]  # fmt: skip


def same(a, b):
    """Everything that an estimate says is equal to the last bit."""
    assert a.summary == b.summary
    assert a.to_dict() == b.to_dict()
    np.testing.assert_array_equal(a.transition, b.transition)


@pytest.mark.parametrize("kind", ONCE)
@settings(max_examples=20)
@given(data=posteriors(), cuts=st.sets(st.integers(1, 119), max_size=4))
def test_chunks_equal_the_whole(kind, data, cuts):
    probs, labels = data
    estimator = kind()
    for rows in np.split(np.arange(len(probs)), sorted(cut for cut in cuts if cut < len(probs))):
        assert estimator.partial_fit(probs[rows], labels[rows]) is estimator
        seen = slice(rows[-1] + 1)
        np.testing.assert_array_equal(estimator.transition_, kind().fit(probs[seen], labels[seen]).transition_)
    same(estimator.estimate_, kind().fit(probs, labels).estimate_)


def test_options_and_a_sample_smaller_than_the_data():
    probs = np.random.default_rng(1).dirichlet(np.full(200, 0.1), 12_000).astype(np.float32)
    labels = np.arange(12_000) % 200
    chunked = classes.DualTEstimator(anchor="quantile")
    for part in np.array_split(np.arange(12_000), 3):
        chunked.partial_fit(probs[part], labels[part])
    assert len(chunked.estimate_.summary.sample_rows) < 12_000
    same(chunked.estimate_, classes.DualTEstimator(anchor="quantile").fit(probs, labels).estimate_)


@pytest.mark.parametrize("kind", AGAIN)
def test_estimators_that_read_twice_have_none(kind):
    assert not hasattr(kind(), "partial_fit")
    assert not ESTIMATORS[kind.estimator].reads_once


def test_names_are_given_once_and_kept():
    estimator = classes.SpadeEstimator().partial_fit(PROBS[:1], WORDS[LABELS[:1]], classes=WORDS)
    estimator.partial_fit(PROBS[1:], WORDS[LABELS[1:]])
    same(estimator.estimate_, classes.SpadeEstimator().fit(PROBS, WORDS[LABELS], class_names=WORDS).estimate_)
    assert estimator.class_names_ == ("cow", "ant", "bee")


def test_named_columns_are_names():
    frame = pd.DataFrame(PROBS, columns=WORDS)
    estimator = classes.SpadeEstimator().partial_fit(frame[:5], WORDS[LABELS[:5]])
    same(
        estimator.partial_fit(frame[5:], WORDS[LABELS[5:]]).estimate_,
        classes.SpadeEstimator().fit(PROBS, LABELS, class_names=WORDS).estimate_,
    )
    with pytest.raises(LabelsError, match="cow, ant, bee, got bee, cow, ant"):
        estimator.partial_fit(frame[["bee", "cow", "ant"]], WORDS[LABELS])


def test_numbers_as_classes():
    years = np.array([2003, 2001, 2002])
    estimator = classes.SpadeEstimator()
    for part in (slice(0, 2), slice(2, None)):
        estimator.partial_fit(PROBS[part], years[LABELS[part]], classes=years)
    same(estimator.estimate_, classes.SpadeEstimator().fit(PROBS, years[LABELS], class_names=years).estimate_)


def test_it_goes_on_after_fit_and_fit_begins_anew():
    estimator = classes.DualTEstimator().fit(PROBS[:40], LABELS[:40]).partial_fit(PROBS[40:], LABELS[40:])
    same(estimator.estimate_, classes.DualTEstimator().fit(PROBS, LABELS).estimate_)
    same(
        estimator.fit(PROBS[:40], LABELS[:40]).estimate_,
        classes.DualTEstimator().fit(PROBS[:40], LABELS[:40]).estimate_,
    )


@pytest.mark.parametrize(
    ("probs", "labels", "names", "message"),
    [
        (PROBS, WORDS[LABELS], WORDS[::-1], "cow, ant, bee, got bee, ant, cow"),
        (PROBS[:, :2] / PROBS[:, :2].sum(axis=1, keepdims=True), LABELS % 2, None, "Expected 2 class names"),
        (PROBS, np.full(90, "cat"), None, "'cat' at row 90"),
        (PROBS, LABELS[:3], None, "90 rows and 3 labels"),
        (2 * PROBS, LABELS, None, "sum to 1"),
    ],
)
def test_an_unusable_chunk_changes_nothing(probs, labels, names, message):
    estimator = classes.DualTEstimator().partial_fit(PROBS, WORDS[LABELS], WORDS)
    before = estimator.estimate_
    with pytest.raises(ValueError, match=message):
        estimator.partial_fit(probs, labels, names)
    assert estimator.estimate_ is before


def test_the_first_call_needs_the_names_of_string_labels():
    with pytest.raises(LabelsError, match=r"Expected classes on the first call.*order of the columns"):
        classes.DualTEstimator().partial_fit(PROBS, WORDS[LABELS])
    with pytest.raises(ProbabilitiesError, match="shape"):
        classes.DualTEstimator().partial_fit(PROBS[0], LABELS)


def test_classes_take_what_the_function_takes():
    rng = np.random.default_rng(0)
    clean = rng.integers(3, size=900)
    probs, labels = np.eye(3)[clean] * 0.9 + 1 / 30, np.where(rng.random(900) < 0.2, (clean + 1) % 3, clean)
    known = {
        "class_names": ["a", "b", "c"],
        "verified": (np.arange(100), clean[:100]),
        "n_jobs": 2,
        "out_of_fold": True,
    }
    fitted = dualt.SpadeEstimator().fit(probs, labels, **known)
    wanted = dualt.estimate_transition(probs, labels, "spade", **known)
    np.testing.assert_array_equal(fitted.transition_, wanted.transition)
    assert fitted.estimate_.out_of_fold is True
    assert fitted.estimate_.estimator == wanted.estimator == "spade + 100 verified"


def test_labels_are_aligned_by_index():
    frame, labels = pd.DataFrame(PROBS, columns=WORDS), pd.Series(WORDS[LABELS])
    wanted = classes.SpadeEstimator().fit(PROBS, LABELS, class_names=WORDS).estimate_
    same(classes.SpadeEstimator().partial_fit(frame, labels.sample(frac=1, random_state=0)).estimate_, wanted)
    with pytest.raises(InputError, match="another index"):
        classes.SpadeEstimator().partial_fit(frame, labels.set_axis(range(1, 91)))


def test_probabilities_of_two_decimals_are_scaled_as_by_fit():
    rounded = np.round(PROBS, 2)
    with pytest.warns(DualtWarning, match="rounded to two decimals"):
        wanted = classes.TEstimator().fit(rounded, LABELS).estimate_
    with pytest.warns(DualtWarning, match="rounded to two decimals"):
        same(classes.TEstimator().partial_fit(rounded, LABELS).estimate_, wanted)


def test_columns_of_other_names_are_refused():
    frame = pd.DataFrame(PROBS, columns=WORDS)
    estimator = classes.SpadeEstimator().partial_fit(frame, LABELS)
    with pytest.raises(LabelsError, match="cow, ant, bee, got x, y, z"):
        estimator.partial_fit(frame.set_axis(["x", "y", "z"], axis=1), LABELS)
    estimator.partial_fit(frame.set_axis(["x", "y", "z"], axis=1), LABELS, classes=WORDS)
    classes.SpadeEstimator().partial_fit(PROBS, LABELS).partial_fit(frame, LABELS)
    floats = classes.SpadeEstimator().partial_fit(PROBS, LABELS + 1, classes=[1, 2, 3])
    floats.partial_fit(PROBS, LABELS + 1, classes=[1.0, 2.0, 3.0])
