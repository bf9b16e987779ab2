"""CSV, TSV and Parquet tables, with a header or without."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt.errors import FileError, InputError, LabelsError, MissingExtraError, UnknownNameError
from dualt.files import read_text
from dualt.io import save_corrected
from dualt.io.load import load_labels
from dualt.io.table_columns import choose_columns, labels_of, open_table
from dualt.io.tables import guard_cell, read_table, unguard_cell, write_table


def table_of(tmp_path, content, name="t.csv", column=None):
    (tmp_path / name).write_text(content, encoding="utf-8")
    return open_table(tmp_path / name, column)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("cat,dog\n0.5,0.5\n", ("cat", "dog")),
        (" cat , dog \n0.5,0.5\n", ("cat", "dog")),
        ('"a,b","c ""d"""\n0.5,0.5\n', ("a,b", 'c "d"')),
        ("\ufeffcat,dog\n0.5,0.5\n", ("cat", "dog")),
        ("\n\ncat,dog\n0.5,0.5\n", ("cat", "dog")),
        ("'=cat,'-dog\n0.5,0.5\n", ("=cat", "-dog")),
        ("0,1,2\n0.2,0.3,0.5\n", ("0", "1", "2")),
        (",0,1\n0,0.5,0.5\n", ("", "0", "1")),
        ("0,1,label\n0.5,0.5,cat\n", ("0", "1", "label")),
        ("name,label\nfelix,cat\n", ("name", "label")),
        ("0.5,0.5\n0.4,0.6\n", None),
        ("0.5,0.5\n", None),
        ("1,0\n0,1\n", None),
        ("1e-3,9.99e-1\n0.4,0.6\n", None),
        ("nan,1\n0.4,0.6\n", None),
        ("0.9,0.1,y\n0.2,0.8,n\n", None),
        ("y,0.9,0.1\nn,0.2,0.8\n", None),
        ("y\nn\ny\n", None),
        ("y\ncat\ndog\n", ("y",)),
        ("kind\ncat\ncat\n", None),
    ],
)
def test_headers_are_told_from_data(tmp_path, content, names):
    assert table_of(tmp_path, content).names == names


@pytest.mark.parametrize(
    ("content", "column", "names"),
    [
        ("a,kind\nb,c\n", "kind", ("a", "kind")),
        ("kind\nb\nc\n", "kind", ("kind",)),
        ("0.9,0.1\n0.2,0.8\n", "id", None),
        ("0,9;0,1\n0,2;0,8\n", "id", None),
    ],
)
def test_a_column_that_is_asked_for_makes_a_header_unless_there_are_numbers(tmp_path, content, column, names):
    assert table_of(tmp_path, content, column=column).names == names


WIDE = tuple(f"p_{number:05d}" for number in range(12_000))  # longer than the start of a file that is looked at


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ('"two\nlines",b\n1,2\n3,4\n', ("two\nlines", "b")),
        ('id;"text, \n";label;p_1\n;;a;0.1\n;"0""";"a, b";0.9\n', ("id", "text,", "label", "p_1")),
        ("text;given\n" + 40 * ('"' + "first, second\n" * 300 + '";b\n'), ("text", "given")),
        (f"{','.join(WIDE)}\n{','.join(['0.25'] * len(WIDE))}\n", WIDE),
        (f"text,given,note\n{'x' * 200_000},a,\nshort,b,n\n", ("text", "given", "note")),
    ],
    ids=["a break in a name", "a break in a header", "breaks in texts", "a long header", "a long text"],
)
def test_long_cells_and_line_breaks_hide_no_delimiter(tmp_path, content, names):
    assert table_of(tmp_path, content).names == names


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.TSV", "\t")])
def test_numbers_and_labels_by_column(tmp_path, name, delimiter, end):
    rows = [["a", "b", "label"], ["1", "0.5", "x y"], ["2", "-1e3", "z"]]
    table = table_of(tmp_path, end.join(delimiter.join(row) for row in rows) + end, name)
    assert table.n_columns == 3
    np.testing.assert_array_equal(table.read_numbers([1, 0]), [[0.5, 1], [-1000, 2]])
    assert table.read_column(table.position("label")).tolist() == ["x y", "z"]
    with pytest.raises(UnknownNameError, match="Did you mean 'label'"):
        table.position("labl")
    with pytest.raises(InputError, match=r"Expected one column 'x' in .*, got several"):
        table_of(tmp_path, "x,x,label\n1,2,a\n").read_texts("x")


def test_guarded_cells_come_back_as_they_were(tmp_path):
    table = table_of(tmp_path, "x,label\n1,'=evil\n2,'tis\n3,'-1\n")
    assert table.read_column(1).tolist() == ["=evil", "'tis", "-1"]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["10", "9"], np.array([10, 9])),
        (["-1", "1"], np.array([-1, 1])),
        (["1.0", "10.0"], np.array([1.0, 10.0])),  # as data frames write them
        (["1.0", "2.5"], np.array(["1.0", "2.5"])),
        (["1.0", "2"], np.array([1.0, 2.0])),
        (["2", "nan"], np.array([2, np.nan])),
        (["nan", "inf"], np.array(["nan", "inf"])),
        (["007", "42"], np.array(["007", "42"])),
        (["01", "1", "001"], np.array(["01", "1", "001"])),
        (["1_0", "2"], np.array(["1_0", "2"])),
        (["1e1", "2"], np.array(["1e1", "2"])),
        (["+1", "2"], np.array(["+1", "2"])),
        (["-0", "2"], np.array(["-0", "2"])),
        (["1 ", "2"], np.array(["1 ", "2"])),
        (["٣", "2"], np.array(["٣", "2"])),
        (["9007199254740993", "9007199254740992"], np.array([9007199254740993, 9007199254740992])),
        (["1", "x"], np.array(["1", "x"])),
        (["1", ""], np.array([1, np.nan])),
        (["x", ""], np.array(["x", ""])),
        (["99999999999999999999", "1"], np.array(["99999999999999999999", "1"])),
    ],
)
def test_texts_are_numbers_where_all_are(texts, numbers):
    found = labels_of(texts)
    assert found.dtype.kind == numbers.dtype.kind
    np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", FileError, "it is empty"),
        (b"\n\n", FileError, "it is empty"),
        (b"cat,label\n", InputError, "rows below the header"),
        (b"a,b\n\n1,2\n3,y,x,4\n", FileError, r"t\.csv: Expected 2 fields in line 4, saw 4\. Quote"),
        (b"a,b\n1,2,3\n3,y,4\n", InputError, r"2 cells in every row of .*t\.csv.*got 3 in the next\. Quote"),
        (b'a,b\n1,2\n3,"x\n4,5\n', FileError, r"t\.csv.*A quote is opened and never closed"),
        (b"a,b\n1,2\n3,x\n", InputError, "numbers in column 'b' .*'x' in row 1"),
        (b'a,"b\nc"\n1,2\n3,x\n', InputError, r"numbers in column 'b\\nc' .*'x' in row 1"),
        (b"1,2\n3,x\n", InputError, "numbers in column 1 .*'x' in row 1"),
        (b"a;b\n1,5;2\n3;x,5\n", InputError, "numbers in column 'b' .*'x.5' in row 1"),
        (b"a,b\n1,\xff\n", FileError, r"t\.csv as text.*Save it as UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), FileError, r"t\.csv as text.*Save it as UTF-8"),
        (b"a,b\n" + b"1,2\n" * 30_000 + b"1,\xff\n", FileError, r"t\.csv as text.*Save it as UTF-8"),
    ],
)
def test_unusable_text_is_refused(tmp_path, content, error, message):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(error, match=message):
        open_table(tmp_path / "t.csv").read_numbers([0, 1])


def parquet(tmp_path, table):
    pq.write_table(table, tmp_path / "t.parquet")
    return open_table(tmp_path / "t.parquet")


def test_parquet_by_column(tmp_path):
    table = parquet(tmp_path, pa.table({"a": pa.array([1, 2], pa.int8()), "b": [0.5, 1.5], "label": ["x", None]}))
    assert table.names == ("a", "b", "label")
    np.testing.assert_array_equal(table.read_numbers([1, 0]), [[0.5, 1], [1.5, 2]])
    assert table.read_column(2).tolist() == ["x", ""]
    with pytest.raises(LabelsError, match=r"t\.parquet, got none at row 1"):
        load_labels(tmp_path / "t.parquet", column="label")
    assert table.read_column(0).tolist() == [1, 2]
    with pytest.raises(InputError, match=r"numbers in column 'label'.*'x' in row 0"):
        table.read_numbers([0, 2])


def test_parquet_of_categories_and_of_missing_numbers(tmp_path):
    frame = pd.DataFrame({"label": pd.Categorical(["x", "y", "x"]), "n": pd.array([1, None, 3], dtype="Int64")})
    frame.to_parquet(tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    assert table.read_column(0).tolist() == ["x", "y", "x"]
    np.testing.assert_array_equal(table.read_numbers([1]), [[1], [np.nan], [3]])


def test_lists_of_numbers_are_no_texts(tmp_path):
    table = parquet(tmp_path, pa.table({"embedding": [[0.5, 1.5], [1.0, 2.0]], "tags": [["a"], ["b", "c"]]}))
    with pytest.raises(InputError, match=r"one value per cell in column 'embedding'.*pass --features features\.npy"):
        table.read_texts("embedding")
    assert len(table.read_texts("tags")) == 2


def test_damaged_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({"a": np.arange(1000.0)}), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "t.parquet"
    for damaged in (b"", b"PAR1 no", content[:-9], content[: len(content) // 2], b"\0" * 200 + content[200:]):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"t\.parquet"):
            open_table(path).read_numbers([0])


def test_parquet_needs_its_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"\[tables\]: pip install 'dualt\[tables\]'"):
        open_table(tmp_path / "t.parquet")


@pytest.mark.parametrize("rest", ["a,b\nc,d\n", "x,1\n"])
def test_a_misspelt_column_is_told_from_a_missing_header(tmp_path, rest):
    with pytest.raises(UnknownNameError, match=r"'Kind'\. Did you mean 'kind'"):
        table_of(tmp_path, f"text,kind\n{rest}", column="Kind").position("Kind")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": 1,}', "line 4"),
        (b"[1]", "an object on line 4"),
        (b"[" * 100_000, "line 4"),
        (b'{"a": ' + b"1" * 5000 + b"}", "line 4"),
        (b'{"a": "\xff"}', "Save it as UTF-8"),
        (b'{"a": "x"}', "numbers in column 'a' .*'x' in row 2"),
    ],
)
def test_the_line_of_unusable_json_is_told(tmp_path, line, message):
    (tmp_path / "t.jsonl").write_bytes(b'{"a": 1}\n{"a": 2}\n\n' + line + b"\n")
    with pytest.raises((InputError, FileError), match=message):
        open_table(tmp_path / "t.jsonl").read_numbers([0])


def test_a_table_without_header_names_no_column(tmp_path):
    with pytest.raises(InputError, match="a header that names 'label'"):
        table_of(tmp_path, "1,2\n3,4\n").position("label")


def test_a_label_that_is_no_number_is_missing_among_texts_in_json_lines(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"label": "cat"}\n{"label": NaN}\n{"label": null}\n{"label": "dog"}\n')
    assert load_labels(tmp_path / "t.jsonl", missing=True).tolist() == ["cat", "", "", "dog"]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_truth_values_beside_missing_ones_go_there_and_back(tmp_path, suffix):
    truths = [True, None, False, True]
    if suffix == ".parquet":
        pq.write_table(pa.table({"label": truths}), tmp_path / "t.parquet")
    else:
        (tmp_path / "t.jsonl").write_text("".join(json.dumps({"label": value}) + "\n" for value in truths))
    labels = load_labels(tmp_path / f"t{suffix}", missing=True)
    assert labels.tolist() == ["True", "", "False", "True"]
    corrected = labels.copy()
    corrected[[0, 2]] = ["False", "True"]
    save_corrected(tmp_path / f"o{suffix}", corrected, tmp_path / f"t{suffix}", labels)
    if suffix == ".parquet":
        found = pq.read_table(tmp_path / "o.parquet")["label"].to_pylist()
    else:
        found = [json.loads(line)["label"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert found == [False, None, True, True]


def test_rows_of_nothing_are_rows_without_a_label(tmp_path):
    """As spreadsheets leave them at the end."""
    (tmp_path / "t.csv").write_text("label,p_a,p_b\na,0.9,0.1\n,,\nb,0.2,0.8\n,,\n")
    table = open_table(tmp_path / "t.csv")
    values, labels = table.read_numbers([1, 2]), table.read_column(0)
    assert labels.tolist() == ["a", "", "b", ""]
    np.testing.assert_array_equal(np.isnan(values).all(axis=1), [False, True, False, True])


FRAME = pd.DataFrame({"id": ["007", "1.50", "=1+1"], "y": ['a,"\nb', "", "NA"], "": ["c\rd", " x ", "'"]})


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "feather"])
def test_a_table_comes_back_as_it_was_written(tmp_path, ending, guarded):
    write_table(tmp_path / f"t.{ending}", FRAME, guarded=guarded)
    pd.testing.assert_frame_equal(read_table(tmp_path / f"t.{ending}", guarded=guarded), FRAME)


def test_no_cell_of_a_guarded_table_is_a_formula(tmp_path):
    write_table(tmp_path / "t.csv", FRAME, guarded=True)
    assert read_table(tmp_path / "t.csv")["id"].tolist() == ["007", "1.50", "'=1+1"]


@given(st.text())
def test_guarded_cells_come_back(text):
    assert unguard_cell(guard_cell(text)) == text


def test_numbers_keep_every_digit_and_texts_every_character(tmp_path):
    table = table_of(tmp_path, "id,p\n1.50,0.1000000000000000055\n2.0,0.25\n", column="id")
    assert table.read_texts(0) == ["1.50", "2.0"]
    assert table.read_numbers([1]).tolist() == [[0.1], [0.25]]
    assert table_of(tmp_path, "0.5,0.5\n0.25,0.75\n").read_numbers([0]).tolist() == [[0.5], [0.25]]


def test_numbers_that_stop_being_numbers_below_the_first_rows(tmp_path):
    table = table_of(tmp_path, "a,y\n" + "0.5,x\n" * 60 + "n/a,y\n")
    assert table.read_texts(0)[-2:] == ["0.5", "n/a"]
    with pytest.raises(InputError, match=r"numbers in column 'a' .*'n/a' in row 60"):
        table.read_numbers([0])


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "feather"])
def test_a_corrected_table_keeps_rows_columns_ids_and_cells(tmp_path, ending):
    frame = pd.DataFrame({
        "id": ["007", "1.50", "=1", ""], "label": ["a", "b", "", "a"], "note": ['x,"y"', "line\nbreak", " ", "NA"],
    })  # fmt: skip
    source, target = tmp_path / f"t.{ending}", tmp_path / f"o.{ending}"
    write_table(source, frame)
    given = load_labels(source, column="label", missing=True)
    corrected = given.copy()
    corrected[0] = "b"
    save_corrected(target, corrected, source, given, column="label")
    pd.testing.assert_frame_equal(read_table(target), frame.assign(label=["b", "b", "", "a"]))


def test_a_corrected_table_keeps_its_delimiter_its_names_and_how_numbers_are_written(tmp_path):
    (tmp_path / "t.csv").write_text("a;a;label\n1,5;;2\n2;3;\n4;5;1\n")
    given = load_labels(tmp_path / "t.csv", missing=True)
    save_corrected(tmp_path / "o.csv", np.array([1, np.nan, 1]), tmp_path / "t.csv", given)
    assert (tmp_path / "o.csv").read_text() == "a;a;label\n1,5;;1\n2;3;\n4;5;1\n"
    (tmp_path / "t.jsonl").write_text('{"label": "1"}\n{"label": ""}\n{"label": 1.0}\n{"label": "2"}\n')
    given = load_labels(tmp_path / "t.jsonl", missing=True)
    save_corrected(tmp_path / "o.jsonl", np.array([2, np.nan, 2, 3]), tmp_path / "t.jsonl", given)
    expected = '{"label": "2"}\n{"label": ""}\n{"label": 2.0}\n{"label": "3"}\n'
    assert (tmp_path / "o.jsonl").read_text() == expected


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_corrected_table_is_still_a_file_of_the_same_spreadsheet(tmp_path, mark, end):
    """Excel takes ü for two characters where there is no byte-order mark."""
    (tmp_path / "t.csv").write_bytes(mark + end.join([b"note;label", '"ü\n1,5";x'.encode(), b";y", b""]))
    given = load_labels(tmp_path / "t.csv", missing=True)
    save_corrected(tmp_path / "o.csv", given, tmp_path / "t.csv", given)
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()


@pytest.mark.parametrize("start", ["", "given,note\na,b\n", '{"given": "a"}\n'])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "txt"])
def test_a_line_without_end_is_refused_before_it_is_in_memory(tmp_path, monkeypatch, kind, start):
    path = tmp_path / f"t.{kind}"
    path.write_text(start)
    os.truncate(path, 256 << 30)
    with pytest.raises(FileError, match=r"null characters|line 1 of"):
        load_labels(path)
    monkeypatch.setattr("dualt.files.LONGEST_LINE", 1 << 17)
    path.write_text(start + "x" * (1 << 20))
    with pytest.raises(FileError, match=r"131,072|line 1 of"):
        load_labels(path)
    assert read_text(path, limit=path.stat().st_size) == start + "x" * (1 << 20)  # JSON with a limit may be one line


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [("x_*,y", ["x_1", "x_2", "y"]), ("y, x_?", ["y", "x_1", "x_2"]), ("x_*,x_1", ["x_1", "x_2"]), ("*,y", None)],
)
def test_a_list_of_columns_may_have_patterns(tmp_path, pattern, chosen):
    (tmp_path / "t.csv").write_text("x_1,y,x_2,label\n1,2,3,a\n4,5,6,b\n")
    _, names = choose_columns(open_table(tmp_path / "t.csv", "label"), ["label"], pattern)
    assert list(names) == (chosen or ["x_1", "y", "x_2"])
