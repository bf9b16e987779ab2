"""What estimators refuse, with which words, and what they take."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualt
from dualt.errors import InputError, LabelsError, ProbabilitiesError, TransitionError
from dualt.estimators import DEFAULT_ESTIMATOR
from dualt.rows import as_posterior
from dualt.validation import (
    as_probability_table,
    check_fraction,
    check_n_classes,
    check_n_jobs,
    check_probability_chunk,
    check_transition,
)
from tests.bad_input import BAD_INPUT, LABELS, PROBS
from tests.strategies import posteriors, read_only


@pytest.mark.parametrize("bad", BAD_INPUT)
def test_unusable_input_is_refused_in_words(bad):
    with pytest.raises(bad.error, match=bad.message):
        dualt.estimate_transition(bad.probs, bad.labels, class_names=bad.class_names)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ([[0.5, 0.5], [1.0]], "shape"),
        (None, "numeric"),
        ("probs.npy", "numeric"),
        ({}, "numeric"),
        (np.ma.array(PROBS, mask=PROBS == 0.8), "masked entry at row 1"),
        (pd.DataFrame({"a": [0.5], "b": ["x"]}), "only the columns of probabilities"),
        (scipy.sparse.csr_matrix(PROBS), r"got csr_matrix.*toarray\(\)"),
        ((row for row in PROBS), "got generator"),
        (dualt.TrainingDynamics(3), "got TrainingDynamics"),
    ],
)
def test_objects_that_are_no_table_are_refused(probs, message):
    with pytest.raises(ProbabilitiesError, match=message):
        dualt.estimate_transition(probs, LABELS)


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda probs: tuple(map(tuple, probs.tolist())),
        read_only,
        np.asfortranarray,
        lambda probs: probs.astype(">f8"),
        lambda probs: probs.astype("<f4"),
        lambda probs: probs.astype(">f4"),
        lambda probs: probs.astype(np.float16),
        lambda probs: probs.astype(np.longdouble),
        lambda probs: np.repeat(probs, 2, axis=0)[::2],
        lambda probs: probs[:, ::-1].copy()[:, ::-1],
        np.ma.array,
        pd.DataFrame,
        lambda probs: pd.DataFrame(probs).astype("Float64"),
    ],
)
def test_probabilities_of_any_kind_give_the_same_estimate(convert):
    """Multiples of 1/256 are exact in every type."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 257, 400) / 256
    probs, labels = np.stack([first, 1 - first], axis=1), (rng.random(400) > first).astype(int)
    expected = dualt.estimate_transition(probs, labels)
    found = dualt.estimate_transition(convert(probs), labels)
    np.testing.assert_allclose(found.transition, expected.transition, atol=1e-6)
    assert found.class_names == ("0", "1")


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
def test_certain_predictions_may_be_whole_numbers(dtype):
    predicted = np.array([0, 1, 1, 0])
    estimate = dualt.estimate_transition(np.eye(2)[predicted].astype(dtype), [0, 1, 0, 0], "spade")
    np.testing.assert_allclose(estimate.transition, [[1, 0], [0.5, 0.5]])


def test_columns_of_a_data_frame_name_the_classes():
    frame = pd.DataFrame(PROBS, columns=["dog", "cat"])
    estimate = dualt.estimate_transition(frame, ["dog", "cat", "dog"], "spade")
    assert estimate.class_names == ("dog", "cat")
    np.testing.assert_allclose(estimate.transition, np.eye(2))
    with pytest.raises(InputError, match="'cat' twice"):
        dualt.estimate_transition(pd.DataFrame(PROBS, columns=["cat", "cat"]), LABELS)
    assert dualt.estimate_transition(frame, LABELS, class_names=["a", "b"]).class_names == ("a", "b")


def test_a_memory_map_is_read_in_place(tmp_path):
    np.save(tmp_path / "p.npy", PROBS)
    np.save(tmp_path / "y.npy", LABELS)
    probs, labels = (np.load(tmp_path / name, mmap_mode="r") for name in ("p.npy", "y.npy"))
    (block,) = as_posterior(probs, labels).blocks
    ((read_probs, read_labels),) = block.source()
    assert np.shares_memory(read_probs, probs)
    assert np.shares_memory(read_labels, labels)
    np.testing.assert_array_equal(
        dualt.estimate_transition(probs, labels).transition, dualt.estimate_transition(PROBS, LABELS).transition
    )


def test_arrays_are_not_copied():
    for array in (PROBS, np.asfortranarray(PROBS), PROBS.astype(">f4")):
        assert np.shares_memory(as_probability_table(array)[0], array)


def test_a_bad_row_far_down_is_found_by_number():
    probs = np.full((200_000, 3), 1 / 3, np.float32)
    probs[150_001, 2] = np.nan
    with pytest.raises(ProbabilitiesError, match="nan at row 150001, column 2"):
        dualt.estimate_transition(probs, np.zeros(len(probs), int))


@given(posteriors(max_classes=8), st.sampled_from([np.float32, np.float64]), st.data())
def test_the_check_of_a_chunk_refuses_what_a_check_of_every_entry_refuses(data, dtype, draw):
    chunk = np.ascontiguousarray(data[0].astype(dtype))
    if draw.draw(st.booleans()):
        place = draw.draw(st.integers(0, len(chunk) - 1)), draw.draw(st.integers(0, chunk.shape[1] - 1))
        chunk[place] = draw.draw(st.sampled_from([np.nan, -np.nan, np.inf, -np.inf, -1e-30, -0.0, 1.5, 1e38]))
    with np.errstate(all="ignore"):
        sums = chunk.sum(axis=1, dtype=np.float64)
        good = np.isfinite(chunk).all() and (chunk >= 0).all() and (np.abs(sums - 1) <= 0.01 - 1e-5).all()
        bad = not np.isfinite(chunk).all() or (chunk < 0).any() or (np.abs(sums - 1) > 0.01 + 1e-5).any()
    if good:
        check_probability_chunk(chunk, 0)
    elif bad:
        with pytest.raises(ProbabilitiesError):
            check_probability_chunk(chunk, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_negative_zero_hides_no_anchor(dtype):
    """The compiled pass is in doubt of it; the surest row of its column is in the same, later chunk."""
    probs = np.eye(40, dtype=dtype)[np.arange(30_000) % 40]
    probs[probs[:, 0] == 1, :2] = [0.6, 0.4]
    probs[20_000], probs[20_001] = probs[0], probs[1]
    probs[20_000, :2], probs[20_001, 0] = [0.9, 0.1], -0.0
    estimate = dualt.estimate_transition(probs, np.arange(30_000) % 40, "t")
    assert estimate.anchors[0] == 20_000
    np.testing.assert_allclose(estimate.transition[0, :2], [0.9, 0.1], atol=1e-6)


JUNK_CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(),
    st.text(max_size=3), st.binary(max_size=3), st.just(pd.NA), st.just(pd.NaT), st.tuples(st.integers(0, 1)),
)  # fmt: skip
JUNK_SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
JUNK_ARRAYS = st.one_of(
    hnp.arrays(st.one_of(hnp.scalar_dtypes(), hnp.unicode_string_dtypes(max_len=3)), JUNK_SHAPES),
    hnp.arrays(np.dtype(object), JUNK_SHAPES, elements=JUNK_CELLS),
    st.recursive(JUNK_CELLS, lambda inner: st.lists(inner, max_size=4), max_leaves=12),
)


def estimate_or_refuse(probs, labels):
    """Either a row-stochastic matrix or an `InputError`; any other exception, or warning, fails."""
    try:
        estimate = dualt.estimate_transition(probs, labels)
    except InputError:
        return
    assert estimate.transition.shape == (len(estimate.class_names),) * 2
    assert estimate.transition.min() >= 0
    np.testing.assert_allclose(estimate.transition.sum(axis=1), 1)
    assert isinstance(estimate.warnings, tuple)
    assert np.isfinite(estimate.confidence_interval()).all()


@given(posteriors(max_rows=6), JUNK_ARRAYS, st.data())
def test_good_and_junk_probabilities_with_junk_labels(data, junk, draw):
    probs, _ = data
    cells = st.one_of(JUNK_CELLS, st.sampled_from(["a", "b", 0, 1]))
    labels = draw.draw(st.one_of(JUNK_ARRAYS, st.lists(cells, min_size=len(probs), max_size=len(probs))))
    estimate_or_refuse(probs, labels)
    estimate_or_refuse(junk, labels)


@given(posteriors(max_rows=6), JUNK_ARRAYS, st.floats(), st.integers(0, 5))
def test_junk_probabilities_with_good_labels(data, junk, value, row):
    probs, labels = data
    estimate_or_refuse(junk, labels)
    probs[row % len(probs), 0] = value
    estimate_or_refuse(probs, labels)


@given(posteriors(dtype=np.float16))
def test_half_precision_is_near_enough_to_one(data):
    estimate_or_refuse(*data)
    dualt.estimate_transition(*data, DEFAULT_ESTIMATOR)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.9, 0.3], [0.1, 0.7]], "columns do: pass the transpose"),
        ([[0.9, 0.3], [0.2, 0.7]], r"got 1\.2 in row 0"),
        ([["a", "b"], ["c", "d"]], "numeric"),
        ([[10**400, 0], [0, 1]], "too large"),
        ([[1, 0], [1]], "numeric"),
        (np.ma.array(np.eye(2), mask=np.eye(2)), "masked"),
        ({}, "numeric"),
        (np.eye(3)[:2], "square"),
        ([[1.0]], "2×2"),
        ([[1, 0], [np.inf, 1]], r"inf at \[1, 0\]"),
        ([[1, 0], [-0.5, 1.5]], r"-0\.5 at \[1, 0\]"),
    ],
)
def test_unusable_matrices_are_refused(matrix, message):
    with pytest.raises(TransitionError, match=message):
        check_transition(matrix)


def test_rows_that_miss_one_by_rounding_are_put_right():
    given_matrix = np.array([[0.3333, 0.6666], [0.1, 0.9]])
    before = given_matrix.copy()
    found = check_transition(given_matrix)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_array_equal(given_matrix, before)


@pytest.mark.parametrize("value", [-0.1, 0, 1, 1.1, float("nan"), "half", None, [0.5]])
def test_what_is_no_share_is_refused(value):
    with pytest.raises(InputError, match=r"share in \(0, 1\), got"):
        check_fraction(value, "share")
    assert check_fraction(1, "share", inclusive=True) == 1.0


@pytest.mark.parametrize("value", [1, 0, -3, 2.5, float("nan"), float("inf"), "ten", None])
def test_what_counts_no_classes_is_refused(value):
    with pytest.raises(InputError, match=r"n_classes.*at least 2"):
        check_n_classes(value)
    assert check_n_classes(np.int8(3)) == 3


def test_n_jobs_is_what_scikit_learn_users_expect(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert [check_n_jobs(n_jobs) for n_jobs in (None, 1, np.int64(3), -1, -2, -9, 10**6)] == [1, 1, 3, 4, 3, 1, 4]


@pytest.mark.parametrize("name", ["determined", "out_of_fold"])
def test_yes_and_no_of_numpy_are_those_of_python(name):
    models = np.random.default_rng(0).dirichlet(np.ones(3), (2, 90))
    labels = np.arange(90) % 3
    plain, own = (dualt.estimate_transition(models, labels, **{name: no}) for no in (False, np.False_))
    assert own.to_dict() == plain.to_dict()
    with pytest.raises(InputError, match=f"Expected {name} True, False or None, got 0"):
        dualt.estimate_transition(models, labels, **{name: 0})


def test_labels_of_another_number_of_index_levels_are_refused():
    frame, labels = pd.DataFrame(PROBS), pd.Series(LABELS)
    levels = pd.MultiIndex.from_product([["x"], range(3)])
    for probs, given_labels in ((frame, labels.set_axis(levels)), (frame.set_axis(levels), labels)):
        with pytest.raises(InputError, match="got another index"):
            dualt.estimate_transition(probs, given_labels)
    np.testing.assert_array_equal(
        dualt.estimate_transition(frame.set_axis(levels), labels.set_axis(levels)[::-1], "spade").transition,
        dualt.estimate_transition(PROBS, LABELS, "spade").transition,
    )


@pytest.mark.parametrize(("names", "got"), [({0: "x", 1: "y"}, "dict"), ({"x", "y"}, "set"), (2, "int")])
def test_class_names_without_an_order_of_columns_are_refused(names, got):
    with pytest.raises(LabelsError, match=f"order of the columns, got a {got}"):
        dualt.estimate_transition(PROBS, LABELS, class_names=names)


@pytest.mark.parametrize("names", [np.array(["x", "y"]), pd.Index(["x", "y"]), {"x": 0, "y": 1}.keys(), iter("xy")])
def test_class_names_come_in_any_ordered_kind(names):
    assert dualt.estimate_transition(PROBS, LABELS, class_names=names).class_names == ("x", "y")
