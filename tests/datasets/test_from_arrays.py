"""Arrays, .npz files and tables as data sets."""

import numpy as np
import pandas as pd
import pytest

from dualt.datasets import from_arrays, load_dataset
from dualt.errors import FileError, InputError, LabelsError, UnknownNameError

X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("y", "names", "codes"),
    [
        ([0, 1, 2, 0, 1, 2], ("0", "1", "2"), [0, 1, 2, 0, 1, 2]),
        ([1, 2, 10, 1, 2, 10], ("1", "2", "10"), [0, 1, 2, 0, 1, 2]),
        ([-1, 1, -1, 1, -1, 1], ("-1", "1"), [0, 1, 0, 1, 0, 1]),
        ([2.0, 3.0, 2.0, 3.0, 2.0, 3.0], ("2", "3"), [0, 1, 0, 1, 0, 1]),
        (["b", "a", "b", "a", "c", "c"], ("a", "b", "c"), [1, 0, 1, 0, 2, 2]),
        (np.array([True, False] * 3), ("False", "True"), [1, 0] * 3),
        (np.eye(3)[[0, 1, 2, 0, 1, 2]], ("0", "1", "2"), [0, 1, 2, 0, 1, 2]),
    ],
)
def test_labels_of_any_kind(y, names, codes):
    data = from_arrays(X, y)
    assert data.class_names == names
    assert data.train_y.tolist() == codes
    assert data.train_y.dtype == np.int64
    assert data.train_x.dtype == np.float64


def test_bytes_stay_images_and_channels_go_first():
    pixels = np.random.default_rng(0).integers(256, size=(4, 5, 6, 3), dtype=np.uint8)
    data = from_arrays(pixels, [0, 1, 0, 1])
    assert data.train_x.dtype == np.uint8
    np.testing.assert_array_equal(data.train_x, pixels.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(from_arrays(pixels[..., 0], [0, 1, 0, 1]).train_x, pixels[..., 0])
    assert from_arrays(pixels[:, 0, :, 0], [0, 1, 0, 1]).train_x.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, [0, 1]), InputError, "6 rows and 2 labels"),
        ((X[:, 0], [0, 1] * 3), InputError, r"got \(6,\)"),
        ((X[:, :0], [0, 1] * 3), InputError, r"got \(6, 0\)"),
        ((X.astype(str), [0, 1] * 3), InputError, "Expected numbers in X"),
        ((np.where(X == 5, np.nan, X), [0, 1] * 3), InputError, "row 2"),
        ((np.where(X == 5, 1e300, X), [0, 1] * 3), InputError, "row 2"),
        ((X, [1] * 6), LabelsError, r"at least two classes, got only \[1\]"),
        ((np.ones((60, 2)), [f"{k}.5" for k in range(60)]), LabelsError, "60 different ones in 60 rows"),
        ((X, [0, 1, 0.5, 1, 0, 1]), LabelsError, "0.5 at row 2"),
        ((X, [0, 1, np.nan, 1, 0, 1]), LabelsError, "nan at row 2"),
        ((X, ["a", "b", "", "b", "a", "b"]), LabelsError, "got '' at row 2"),
        ((np.ma.masked_equal(X, 5), [0, 1] * 3), InputError, "masked entry at row 2"),
    ],
)
def test_unusable_arrays_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        from_arrays(*arguments)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    path = tmp_path / "mine.npz"
    save(path, X=X, y=["n", "y"] * 3)
    data = load_dataset(path)
    np.testing.assert_array_equal(data.train_x, X)
    assert (data.name, data.class_names) == ("mine", ("n", "y"))
    assert load_dataset(str(path)).test_x is None


def test_npz_with_other_names_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", features=X, y=[0, 1] * 3)
    with pytest.raises(FileError, match=r"arrays named X and y in .*a\.npz, got features, y"):
        load_dataset(tmp_path / "a.npz")


FRAME = pd.DataFrame({"a": [1, 2, 3], "kind": ["x", "y", "x"], "b": [0.5, 1.5, -2.0]})


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_tables(tmp_path, suffix):
    path = tmp_path / f"mine.{suffix}"
    if suffix == "parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, sep={"csv": ",", "tsv": "\t"}[suffix], index=False)
    data = load_dataset(path, label="kind")
    np.testing.assert_array_equal(data.train_x, FRAME[["a", "b"]].to_numpy())
    assert data.train_y.tolist() == [0, 1, 0]
    assert data.class_names == ("x", "y")
    assert data.test_x is None
    with pytest.raises(UnknownNameError, match=r"'kin'.*Did you mean 'kind'.*a, kind, b"):
        load_dataset(path, label="kin")
    with pytest.raises(InputError, match="Expected numbers in column 'kind'"):
        load_dataset(path, label="b")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_missing_number_is_refused(tmp_path, suffix):
    frame = FRAME.assign(a=[1, None, 3])
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, index=False, na_rep="nan") if suffix == "csv" else frame.to_parquet(path)
    with pytest.raises(InputError, match="row 1"):
        load_dataset(path, label="kind")


def test_number_labels_of_a_csv_sort_as_numbers(tmp_path):
    (tmp_path / "t.csv").write_text('\ufeff"x","label"\n1,10\n2,9\n')
    data = load_dataset(tmp_path / "t.csv")
    assert data.class_names == ("9", "10")
    assert data.train_y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2\n3,4\n", "Expected a header that names 'label'"),
        ("label\n1\n", "columns of numbers beside"),
        ("x,label\n1,a\ntwo,b\n", "numbers in column 'x' .*'two'"),
        ("x,label\n,a\n2,b\n", "row 0"),
    ],
)
def test_bad_tables_are_refused(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises((InputError, FileError), match=message):
        load_dataset(tmp_path / "t.csv")
