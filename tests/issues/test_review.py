import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt.errors import FileError, InputError, LabelsError
from dualt.io.tables import guard_cell
from dualt.issues import Decision, apply_review, read_review
from dualt.issues.review import decided_labels


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        (
            'index,old,new\r\n7,cat,dog\r\n9,"a, ""b""\nc",cat\r\n12,dog,dog\r\n',
            [(7, "cat", "dog", "row 1"), (9, 'a, "b"\nc', "cat", "row 2"), (12, "dog", "dog", "row 3")],
        ),
        (b"\xef\xbb\xbfIndex,Old,New\n0,'=1+1,'-1\n\n", [(0, "=1+1", "-1", "row 1")]),  # saved by a spreadsheet
        ("id,note,new,index,old,labels\n'=1,seen,dog,3,cat,a1\n", [(3, "cat", "dog", "row 1", "=1")]),
        ("index,old,new\n3,cat,\n4,cat,dog\n", [(4, "cat", "dog", "row 2")]),  # the first is undecided
    ],
)
def test_decisions_are_read_with_their_place(tmp_path, text, decisions):
    assert read_review(write(tmp_path / "review.csv", text)) == [Decision(*each) for each in decisions]


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), max_size=5))
def test_any_class_name_survives_the_file(tmp_path_factory, pairs):
    pairs = [(a.replace("\x00", "0"), b.replace("\x00", "0")) for a, b in pairs]
    buffer = io.StringIO()
    rows = [(i, guard_cell(a), guard_cell(b)) for i, (a, b) in enumerate(pairs)]
    csv.writer(buffer).writerows([("index", "old", "new"), *rows])
    path = write(tmp_path_factory.mktemp("review") / "r.csv", buffer.getvalue())
    assert [(d.index, (d.old, d.new)) for d in read_review(path)] == list(enumerate(pairs))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("index,given,suggested\n1,a,b\n", "header index,old,new"),
        ("index,old,new\n1,a,b\nx,a,b\n", "row number as index in row 2 .* got 'x'"),
        ("index,old,new\n-1,a,b\n", "row number as index in row 1"),
        ("index,old,new\n²,a,b\n", "row number as index in row 1"),
        ("index,old,new\n1,a,b\n2,a,b\n1,a,c\n", "two for example 1 .* row 1 and row 3"),
        ('index,old,new\n1,a,"b\n', "never closed"),
        (b"index,old,new\n1,\xff,b\n", "UTF-8"),
    ],
)
def test_another_file_is_refused_with_the_line(tmp_path, text, message):
    with pytest.raises((InputError, FileError), match=message):
        read_review(write(tmp_path / "review.csv", text))


def test_numbers_keep_their_dtype_and_the_input_is_untouched():
    labels = np.array([4, 9, 4, 7], dtype=np.int8)
    corrected = apply_review(labels, [Decision(0, "4", "9", "row 2"), Decision(3, "7", "7", "row 3")])
    assert corrected.dtype == np.int8
    assert corrected.tolist() == [9, 9, 4, 7]
    assert labels.tolist() == [4, 9, 4, 7]


@pytest.mark.parametrize(
    ("labels", "decision", "names", "expected"),
    [
        ([0, 1, 1], Decision(2, "dog", "cat", "row 2"), ["cat", "dog"], [0, 1, 0]),
        ([10, 20, 20], Decision(1, "20", "30", "row 2"), ["10", "20", "30"], [10, 30, 20]),  # values, not columns
        ([0, 1, 1], Decision(2, "1.0", "0.0", "row 2"), None, [0, 1, 0]),  # a review that pandas has written
    ],
)
def test_names_are_put_into_numbered_labels(labels, decision, names, expected):
    assert apply_review(labels, [decision], class_names=names).tolist() == expected


def test_bool_float_and_one_hot_labels_stay_what_they_are():
    decision = [Decision(1, "0", "1", "row 2")]
    assert apply_review(np.array([True, False]), decision).tolist() == [True, True]
    assert apply_review(np.array([1.0, 0.0]), decision).tolist() == [1.0, 1.0]
    one_hot = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    turned = [Decision(1, "0", "2", "row 2"), Decision(2, "1", "0", "row 3")]
    assert apply_review(one_hot, turned).tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(("no", "yes"), [("0", "1"), ("False", "True")])
@pytest.mark.parametrize("names", [None, ["False", "True"], ["True", "False"]])
def test_truth_values_are_numbers_or_words(no, yes, names):
    decisions = [Decision(1, no, yes, "row 2"), Decision(2, yes, no, "row 3")]
    corrected = apply_review(np.array([True, False, True]), decisions, class_names=names)
    assert corrected.dtype == bool
    assert corrected.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (Decision(3, "a", "b", "row 7"), "example 3 to be labelled 'a' as in row 7 .* got 'no such row'"),
        (Decision(0, "b", "a", "row 7"), "example 0 to be labelled 'b' as in row 7 .* got 'a'"),
        (Decision(0, "a", "z", "row 7"), "one of the classes 'a', 'b', got 'z' in row 7"),
        (Decision(0, "z", "a", "row 7"), "one of the classes 'a', 'b', got 'z' in row 7"),
    ],
)
def test_decisions_for_other_labels_are_refused_with_the_line(decision, message):
    with pytest.raises(LabelsError, match=message):
        apply_review(["a", "b", "a"], [Decision(1, "b", "a", "row 2"), decision])


def test_a_decision_follows_its_id_and_needs_its_old_label():
    decisions = [Decision(0, "cat", "dog", "row 1", "b")]
    assert apply_review(["dog", "cat"], decisions, ids=["a", "b"]).tolist() == ["dog", "dog"]
    for labels, ids, message in (
        (["cat", "dog"], ["a", "b"], "labelled 'cat'"),
        (["cat", "dog"], ["a", "c"], "no such row"),
        (["dog", "cat", "cat"], ["a", "b", "b"], "one example with the id 'b'"),
    ):
        with pytest.raises(LabelsError, match=message):
            apply_review(labels, decisions, ids=ids)


def test_decided_labels_are_found_by_id_where_there_are_ids():
    decisions = [
        Decision(0, "cat", "dog", "row 2", "b"),
        Decision(1, "dog", "dog", "row 3", "a"),
        Decision(2, "cat", "dog", "row 4", "gone"),
    ]
    assert decided_labels(decisions, ["dog", "cat"], ids=["a", "b"]) == {1: "dog", 0: "dog"}
    assert decided_labels(decisions[:2], ["cat", "dog"]) == {0: "dog", 1: "dog"}
    assert decided_labels(decisions[:2], ["dog", "dog"]) == {0: "dog", 1: "dog"}, "as after the review was applied"
    with pytest.raises(LabelsError, match="Is it the review of another table"):
        decided_labels(decisions, ["dog", "cat"], ids=["c", "d"])


@pytest.mark.parametrize("given", [["cow", "dog"], ["cat"]])
def test_decisions_on_other_labels_are_refused(given):
    decisions = [Decision(0, "cat", "dog", "row 2"), Decision(1, "dog", "dog", "row 3")]
    with pytest.raises(LabelsError, match="made for other labels"):
        decided_labels(decisions, given)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_stay_so(missing):
    names = apply_review(pd.Series(["cat", "dog", missing, "cat"], dtype=object), [Decision(0, "cat", "dog", "row 2")])
    assert names.tolist() == ["dog", "dog", "", "cat"]
    numbers = apply_review(np.array([1, 2, missing, 1], dtype=object), [Decision(0, "1", "2", "row 2")])
    np.testing.assert_array_equal(numbers, [2, 2, np.nan, 1])


def test_two_decisions_that_end_in_one_row_are_refused():
    decisions = [Decision(1, "cat", "dog", "row 1", "b"), Decision(0, "cat", "dog", "row 2")]
    with pytest.raises(LabelsError, match="one decision per example"):
        apply_review(["cat", "cat"], decisions, class_names=["cat", "dog"], ids=["b", "a"])
