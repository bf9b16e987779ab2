"""Labels of every reasonable kind, and the columns they stand for."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualt
from dualt.errors import LabelsError
from dualt.labels import LabelCoder, as_label_array
from tests.strategies import read_only

CODES = [1, 0, 2, 1, 2, 0]
NAMES = ["ant", "bee", "cat"]
WORDS = [NAMES[code] for code in CODES]


def encode(labels, n_classes=3, class_names=None):
    array = as_label_array(labels)
    return LabelCoder.for_labels(array, n_classes, class_names).encode(array).tolist()


@pytest.mark.parametrize(
    "labels",
    [
        CODES,
        read_only(CODES),
        np.array(CODES, np.uint8),
        np.array(CODES, ">i4"),
        np.array(CODES, np.uint64),
        np.array(CODES, float),
        np.array(CODES, ">f4"),
        np.array(CODES, object),
        np.array([float(code) for code in CODES], object),
        np.array(CODES)[:, None],
        np.repeat(CODES, 2)[::2],
        np.ma.array(CODES),
        pd.Series(CODES),
        pd.Series(CODES, dtype="Int64"),
        pd.DataFrame({"label": CODES}),
        pd.Series(CODES, dtype="category"),
        np.eye(3)[CODES],
        np.eye(3, dtype=bool)[CODES],
        np.asfortranarray(np.eye(3, dtype=np.int8)[CODES]),
        np.eye(3)[CODES].tolist(),
        pd.DataFrame(np.eye(3)[CODES]),
        WORDS,
        np.array(WORDS),
        np.array(WORDS, ">U5"),
        np.array(WORDS, object),
        np.array(WORDS, "S"),
        np.array([word.encode() for word in WORDS], object),
        pd.Series(WORDS),
        pd.Series(WORDS, dtype="string"),
        pd.Series(WORDS, dtype="category"),
        pd.Categorical(WORDS, categories=NAMES[::-1]),
        pd.Index(WORDS),
        list(map(str, CODES)),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_labels_of_any_kind_mean_the_same(labels):
    assert encode(labels) == CODES


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has strings of any length")
def test_numpy_strings_of_any_length():
    strings = np.dtypes.StringDType
    assert encode(np.array(WORDS, strings())) == CODES
    assert encode(np.array(WORDS, strings(na_object=None))) == CODES
    with pytest.raises(LabelsError, match="nan at row 1"):
        encode(np.array(["a", np.nan, "b"], strings(na_object=np.nan)))


def test_bool_labels_are_the_two_columns():
    for labels in ([True, False, True], np.array([True, False, True], object), np.array([[True], [False], [True]])):
        assert encode(labels, 2) == [1, 0, 1]
        assert encode(labels, 2, ["no", "yes"]) == [1, 0, 1]
        assert encode(labels, 2, ["0", "1"]) == [1, 0, 1]


def test_bytes_of_labels_do_not_overflow():
    """300 classes, labels in a byte: class numbers and products with them need more."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 256, 2000)
    probs = rng.dirichlet(np.ones(300), 2000)
    for estimator in ("spade", "dual-t", "confident-joint"):
        narrow = dualt.estimate_transition(probs, labels.astype(np.uint8), estimator)
        wide = dualt.estimate_transition(probs, labels, estimator)
        np.testing.assert_array_equal(narrow.transition, wide.transition)


def test_names_set_the_order():
    assert encode(WORDS, 3, ["cat", "ant", "bee"]) == [2, 1, 0, 2, 0, 1]
    assert encode(CODES, 3, ["cat", "ant", "bee"]) == CODES
    assert encode([5, 9, 5], 2, ["9", "5"]) == [1, 0, 1]
    assert encode([5.0, 9.0, 5.0], 2, [9, 5]) == [1, 0, 1]
    assert encode([-1, 1, 1], 2, [-1, 1]) == [0, 1, 1]
    assert encode(["a", "b"], 3, ["a", "b", "c"]) == [0, 1]
    assert encode(np.array([0, 2, 1]), 3, ["cat", "1", "dog"]) == [0, 2, 1]  # columns: not all are among the names


def test_numbers_written_as_text_sort_as_numbers():
    """Twelve classes: as text, '10' and '11' would come between '1' and '2'."""
    numbers = np.arange(12)
    assert encode(numbers.astype(str), 12) == numbers.tolist()
    assert encode(list(map(str, numbers + 1)), 12) == numbers.tolist()


@given(st.lists(st.text(min_size=1, max_size=6).filter(lambda text: "\0" not in text), min_size=2, max_size=8,
                unique=True), st.data())  # fmt: skip
def test_any_names_are_found_again(names, data):
    codes = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=20))
    assert encode(np.array([names[code] for code in codes]), len(names), names) == codes


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, None, 1], "None at row 1. Drop"),
        (np.array([0, pd.NA, 1], object), "<NA> at row 1. Drop"),
        (np.array([pd.NaT, 0, 1], object), "NaT at row 0"),
        (np.array([0, Decimal("NaN"), 1], object), "NaN at row 1"),
        (pd.Series([0, None, 1], dtype="Int64"), "at row 1"),
        (pd.Series(["a", None, "b"]), "at row 1"),
        (["a", float("nan"), "b"], "nan at row 1. Drop"),
        (np.array([["a"], [None], ["b"]], object), "None at row 1"),
        (np.array([[1, 0], [None, 1]], object), "None at row 1"),
        (np.ma.array([0, 1, 1], mask=[0, 0, 1]), "masked entry at row 2"),
        ([[0], [0, 1], [1]], "labels as numbers, strings"),
        (np.array([np.zeros(2), np.zeros(3), 1], object), "one label per row"),
        ([10**30, 0, 1], "dtype object"),
        (np.array([1 + 2j, 0, 1]), "complex"),
        (None, r"shape \(\)"),
        ({0, 1}, r"shape \(\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.zeros(3, [("a", int)]), "dtype"),
        (pd.DataFrame({"cat": [1, 0, 0], "ant": [0, 1, 1]}), r"idxmax\(axis=1\)"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message):
    with pytest.raises(LabelsError, match=message):
        encode(labels, 2)


def test_rows_are_counted_from_the_start_of_the_data():
    coder = LabelCoder.for_labels(np.array([0, 1]), 2)
    for chunk in ([0, 5], [0.0, 0.5], [[1, 0], [1, 1]]):
        with pytest.raises(LabelsError, match="at row 1001"):
            coder.encode(np.array(chunk), start=1000)
    named = LabelCoder.for_labels(np.array(["a", "b"]), 2)
    with pytest.raises(LabelsError, match=r"'c' at row 1001"):
        named.encode(np.array(["a", "c"]), start=1000)


def test_integer_labels_are_looked_up_among_integer_names_without_becoming_texts():
    coder = LabelCoder.for_labels(np.array([3]), 3, ["10", "3", "07"])
    assert coder.encode(np.array([7, 10, 3], np.uint8)).tolist() == [2, 0, 1]
    assert coder.encode(np.array(["07", "10"])).tolist() == [2, 0]
    with pytest.raises(LabelsError, match="got '8' at row 6"):
        coder.encode(np.array([8]), start=6)


def test_names_are_looked_up_though_numbers_are_columns():
    coder = LabelCoder(("b", "a"))
    assert coder.encode(np.array(["a", "b"])).tolist() == [1, 0]
    assert coder.encode(np.array([1, 0])).tolist() == [1, 0]


@pytest.mark.parametrize(("n_classes", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_small_codes_are_the_codes(monkeypatch, n_classes, dtype):
    monkeypatch.setattr("dualt.labels._ROWS_AT_ONCE", 100)
    labels = np.random.default_rng(0).integers(n_classes, size=350)
    coder = LabelCoder(tuple(map(str, range(n_classes))))
    codes = coder.encode_small(labels)
    assert codes.dtype == dtype
    np.testing.assert_array_equal(codes, labels)
    labels[320] = n_classes
    with pytest.raises(LabelsError, match="at row 325"):
        coder.encode_small(labels, start=5)


@pytest.mark.parametrize("dtype", [bool, int, float])
@pytest.mark.parametrize("names", [[True, False], ["True", "False"], ["true", "false"], [1, 0], [1.0, 0.0], ["1", "0"]])
def test_truth_values_are_looked_up_among_names_of_truth_values(names, dtype):
    labels = np.array([1, 0, 0], dtype)
    assert encode(labels, 2, names) == [0, 1, 1]
    assert encode(labels, 2, names[::-1]) == [1, 0, 0]


def test_whole_floats_name_the_classes_that_the_numbers_name():
    """pandas makes floats of numbers beside missing ones, in columns and in labels."""
    for labels in ([5, 9, 5], [5.0, 9.0, 5.0], ["5", "9", "5"]):
        assert encode(labels, 2, [9.0, 5.0]) == [1, 0, 1]
    probs = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    frame = pd.DataFrame(probs, columns=[2.0, 1.0])
    assert dualt.estimate_transition(frame, [2.0, 1.0, 2.0], "spade").class_names == ("2", "1")
    np.testing.assert_array_equal(dualt.estimate_transition(frame, [2.0, 1.0, 2.0], "spade").transition, np.eye(2))


def test_an_empty_label_is_a_missing_one():
    for class_names in (None, ["a", "b"]):
        with pytest.raises(LabelsError, match=r"a label for every row, got '' at row 2\. Drop"):
            encode(["a", "b", ""], 2, class_names)
    with pytest.raises(LabelsError, match=r"2 different labels, .* got 1 \('a'\) and empty ones"):
        encode(["a", "", "a"], 2)
    assert encode(["", "a"], 2, ["a", ""]) == [1, 0]


@pytest.mark.parametrize("names", [["1", "2", "none"], ["1.0", "2.0", "3.0"], [1.0, 2.0, 3.0], ["01", "2", "none"]])
@pytest.mark.parametrize("dtype", [int, float])
def test_numbers_are_looked_up_among_names_of_which_some_are_numbers(names, dtype):
    labels = np.array([2, 1, 2], dtype)
    assert encode(labels, 3, names) == [1, 0, 1]
