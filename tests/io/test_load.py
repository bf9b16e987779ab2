"""From a path to probabilities, labels, class names and matrices."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt.errors import FileError, InputError, LabelsError, TransitionError, UnknownNameError
from dualt.io import load_class_names, load_labels, load_transition, open_table, save_corrected
from dualt.io.table_columns import choose_columns

PROBS = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
FRAME = pd.DataFrame(PROBS, columns=["cat", "dog"])
WORDS = ["cat", "dog", "cat"]


def load_probabilities(path, exclude=()):
    """Return the probabilities of a table, and the names of their classes."""
    table = open_table(path, next(iter(exclude), None))
    places, names = choose_columns(table, exclude)
    return table.read_numbers(places), names


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return path


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.parquet", "P.CSV"])
def test_tables_name_the_classes(tmp_path, name):
    values, names = load_probabilities(write(FRAME, tmp_path / name))
    np.testing.assert_allclose(values, PROBS)
    assert names == ("cat", "dog")


def test_numbered_columns_are_no_names(tmp_path):
    pd.DataFrame(PROBS).to_csv(tmp_path / "p.csv", index=False)
    assert load_probabilities(tmp_path / "p.csv")[1] is None
    np.savetxt(tmp_path / "q.csv", PROBS, delimiter=",")
    values, names = load_probabilities(tmp_path / "q.csv")
    assert names is None
    np.testing.assert_allclose(values, PROBS)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_index_of_a_data_frame_is_left_out(tmp_path, suffix):
    frame = FRAME.set_index(pd.Index([5, 6, 7]))
    path = tmp_path / f"p{suffix}"
    frame.to_csv(path) if suffix == ".csv" else frame.to_parquet(path)
    values, names = load_probabilities(path)
    np.testing.assert_allclose(values, PROBS)
    assert names == ("cat", "dog")


@pytest.mark.parametrize("columns", [["cat", "dog"], ["0", "1"]])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_label_column_beside_the_probabilities(tmp_path, suffix, columns):
    frame = FRAME.set_axis(columns, axis=1).assign(kind=WORDS)
    path = write(frame, tmp_path / f"p{suffix}")
    np.testing.assert_allclose(load_probabilities(path, ["kind"])[0], PROBS)
    assert load_labels(path, column="kind").tolist() == WORDS
    with pytest.raises((UnknownNameError, InputError), match="'kin'"):
        load_labels(path, column="kin")
    with pytest.raises(InputError, match="Name the column with --label"):
        load_labels(path)


def test_starred_columns_beside_the_labels_alone(tmp_path):
    """The label is enough of another column: the classes are those of a table that has ids too."""
    frame = FRAME.add_prefix("p_").assign(kind=WORDS)
    _, names = load_probabilities(write(frame, tmp_path / "p.csv"), ["kind"])
    assert names == tuple(FRAME.columns)


def test_a_table_of_nothing_else_is_refused(tmp_path):
    path = write(pd.DataFrame({"kind": WORDS}), tmp_path / "p.csv")
    with pytest.raises(InputError, match="none beside kind"):
        load_probabilities(path, ["kind"])


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("y.txt", "cat\ndog\ncat\n", WORDS),
        ("y.txt", "\ufeffcat\r\n dog \r\ncat\r\n\r\n", WORDS),
        ("y.txt", "10\n9\n", [10, 9]),
        ("y.csv", "label\ncat\ndog\ncat\n", WORDS),
        ("y.csv", "kind\ncat\ndog\ncat\ndog\n", ["kind", *WORDS, "dog"]),  # a label that occurs once
        ("y.csv", "label\ncat\nlabel\n", ["label", "cat", "label"]),
        ("y.csv", "Label\n007\n042\n", ["007", "042"]),
        ("y.csv", "cat\ndog\ncat\n", WORDS),
        ("y.csv", "y\nn\ny\n", ["y", "n", "y"]),
        ("y.csv", "y\ncat\ndog\ncat\n", WORDS),
        ("y.csv", "ant\nbee\ncat\n", ["ant", "bee", "cat"]),
        ("y.csv", "kind\n10\n9\n", [10, 9]),
        ("y.csv", "0\n1\n0\n", [0, 1, 0]),
        ("y.csv", "0\n1\n2\n", [0, 1, 2]),
        ("y.csv", "1.0\n2.0\n", [1, 2]),
        ("y.csv", ",0\n0,cat\n1,dog\n2,cat\n", WORDS),
        ("y.csv", ",kind\n0,cat\n1,dog\n2,cat\n", WORDS),
        ("y.csv", "name,given\nfelix,cat\nrex,dog\ntom,cat\n", WORDS),
        ("y.csv", "y,given\n1,cat\n2,dog\n3,cat\n", WORDS),
        ("y.tsv", "id\tclass\n1\tcat\n2\tdog\n3\tcat\n", WORDS),
    ],
)
def test_labels_of_text_files(tmp_path, name, content, labels):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert load_labels(tmp_path / name).tolist() == labels


def test_labels_of_arrays(tmp_path):
    np.save(tmp_path / "y.npy", np.array(WORDS))
    assert load_labels(tmp_path / "y.npy").tolist() == WORDS
    np.savez(tmp_path / "y.npz", labels=[1, 0], kind=[0, 0], ids=[7, 8])
    assert load_labels(tmp_path / "y.npz").tolist() == [1, 0]
    assert load_labels(tmp_path / "y.npz", column="kind").tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "content"),
    [("y.txt", "cat\n\ndog\n"), ("y.csv", 'label\ncat\n""\ndog\n'), ("y.csv", "id,label\n1,cat\n2,\n3,dog\n")],
)
def test_a_missing_label_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(LabelsError, match=r"y\..* got none at row 1"):
        load_labels(tmp_path / name)


def test_class_names(tmp_path):
    (tmp_path / "c.txt").write_text("\ufeffcat\n\n dog \n", encoding="utf-8")
    assert load_class_names(tmp_path / "c.txt") == ("cat", "dog")
    (tmp_path / "c.json").write_text('["cat", 7]')
    assert load_class_names(tmp_path / "c.json") == ("cat", "7")
    (tmp_path / "c.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"class names in .*as a list, got dict"):
        load_class_names(tmp_path / "c.json")
    (tmp_path / "c.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match=r"c\.txt as text"):
        load_class_names(tmp_path / "c.txt")


MATRIX = [[0.9, 0.1], [0.3, 0.7]]


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("t.json", json.dumps(MATRIX), None),
        ("t.json", json.dumps({"transition": MATRIX}), None),
        ("t.json", json.dumps({"transition": MATRIX, "class_names": ["dog", "cat"]}), ("dog", "cat")),
        ("t.csv", "dog,cat\n0.9,0.1\n0.3,0.7\n", ("dog", "cat")),
        ("t.csv", "0.9,0.1\n0.3,0.7\n", None),
        ("t.csv", ",dog,cat\ndog,0.9,0.1\ncat,0.3,0.7\n", ("dog", "cat")),
        ("t.csv", "true,dog,cat\ndog,0.9,0.1\ncat,0.3,0.7\n", ("dog", "cat")),  # of `to_frame`, by pandas
    ],
)
def test_matrices(tmp_path, name, content, names):
    (tmp_path / name).write_text(content)
    np.testing.assert_allclose(load_transition(tmp_path / name)[0], MATRIX)
    assert load_transition(tmp_path / name)[1] == names


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_saved_estimate_keeps_its_names(tmp_path, suffix):
    estimate = dualt.estimate_transition(PROBS, WORDS, class_names=["dog", "cat"])
    estimate.save(tmp_path / f"t{suffix}")
    matrix, names = load_transition(tmp_path / f"t{suffix}")
    np.testing.assert_allclose(matrix, estimate.transition, atol=1e-9)
    assert names == ("dog", "cat")


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("t.json", "[[0.9, 0.3], [0.1, 0.7]]", TransitionError, "pass the transpose"),
        ("t.csv", "0.9,0.3\n0.1,0.7\n", TransitionError, "pass the transpose"),
        ("t.json", "{}", TransitionError, r"square matrix in .*t\.json"),
        ("t.json", "[[1, 0], [1]]", TransitionError, r"got '\[\[1, 0\], \[1\]\]'"),
        ("t.json", '{"transition": [[1, 0], [0, 1]], "class_names": ["a"]}', LabelsError, "Expected 2 class names"),
        ("t.json", "[[1, 0], [0", FileError, r"t\.json as JSON"),
        ("t.json", "[" * 100_000, FileError, r"t\.json as JSON"),
        ("t.json", "[[1e999, 0], [0, 1]]", TransitionError, "finite"),
        ("t.txt", "1 0", FileError, "ends in .npy, .npz, .csv"),
    ],
)
def test_unusable_matrices_are_refused(tmp_path, name, content, error, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        load_transition(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "corrected", "expected"),
    [
        ("cat\ndog\n", ["dog", "dog"], "dog\ndog\n"),
        ("1\n2\n\n", [2, 2], "2\n2\n"),
        ("1\n\n2\n", [2, np.nan, 2], "2\n\n2\n"),
        ("1\n\n2\n", [3, np.nan, 2], "3\n\n2\n"),
        ("1.0\n2.0\n", [3.0, 2.0], "3.0\n2.0\n"),
        ("007\n=1\n", ["=1", "=1"], "=1\n=1\n"),
    ],
)
def test_corrected_lines(tmp_path, content, corrected, expected):
    (tmp_path / "y.txt").write_text(content)
    given = load_labels(tmp_path / "y.txt", missing=True)
    save_corrected(tmp_path / "new.txt", np.array(corrected), tmp_path / "y.txt", given)
    assert (tmp_path / "new.txt").read_text() == expected


@pytest.mark.parametrize("names", [["1", "2"], ["01", "02"], ["-1", "1"], ["0", "1"], ["cat", "=dog"]])
def test_a_matrix_in_a_table_is_read_with_the_names_it_was_saved_with(tmp_path, names):
    estimate = dualt.estimate_transition([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], [0, 1, 0], "spade")
    estimate = dataclasses.replace(estimate, class_names=tuple(names))
    estimate.save(tmp_path / "t.csv")
    matrix, found = load_transition(tmp_path / "t.csv")
    np.testing.assert_allclose(matrix, estimate.transition)
    assert list(found or ["0", "1"]) == names
