"""The file that a person fills in: what is written comes back, and whatever was done to it is refused in one line."""

import csv

import numpy as np
import pandas as pd
import pytest

from dualt.audit import Audit, as_audit, new_sheet, read_audit, read_sheet
from dualt.errors import FileError, InputError
from dualt.io import write_table
from tests.cli.commands import read_rows, write_rows

LABELS = np.array(["cat", "=dog", "cat", "bird", "=dog", "=dog"])
DRAWN = np.array([4, 0, 3])


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "audit.csv"
    write_table(target, new_sheet(DRAWN, LABELS, ids="abcdef"), guarded=True)
    return target


def test_what_is_written_comes_back(path):
    assert path.read_text().splitlines()[0] == "index,id,given,true"
    sheet = read_sheet(path)
    assert sheet["index"].tolist() == [4, 0, 3]
    assert sheet["given"].tolist() == ["=dog", "cat", "bird"]
    assert sheet["id"].tolist() == ["e", "a", "d"]
    assert sheet["true"].tolist() == [""] * 3


def test_only_what_was_filled_in_counts_and_sorting_does_no_harm(path):
    write_rows(path, [{**row, "true": "cat" if row["index"] != "3" else ""} for row in read_rows(path)])
    path.write_text("\n".join([*path.read_text().splitlines()[:1], *sorted(path.read_text().splitlines()[1:])]))
    found = read_audit(path)
    assert sorted(found.rows.tolist()) == [0, 4]
    assert found.true.tolist() == ["cat", "cat"]


def test_files_of_index_given_true_alone_are_random_samples(tmp_path):
    (tmp_path / "a.csv").write_text("True,Index,given,note\ncat,3,bird,x\n,1,cat,\n\n1,2,cat,y\n")
    found = read_audit(tmp_path / "a.csv")
    assert repr(found) == "Audit(n_verified=2)"
    assert found.true.tolist() == ["cat", "1"], "beside names, a number is a name"
    assert found.rows.tolist() == [3, 2]


def test_a_row_that_was_pasted_twice_counts_once(path):
    write_rows(path, [{**row, "true": "cat"} for row in read_rows(path)])
    header, *lines = path.read_text().splitlines()
    unfilled = lines[1].replace(",cat,cat", ",cat,")
    path.write_text("\n".join([header, unfilled, *lines, lines[0]]))
    sheet = read_sheet(path)
    assert sheet["index"].tolist() == [4, 0, 3]
    assert sheet["true"].tolist() == ["cat"] * 3
    assert sheet["id"].tolist() == ["e", "a", "d"]


def test_a_file_without_the_given_labels_is_refused(path):
    write_rows(path, [{"index": row["index"], "true": "cat"} for row in read_rows(path)])
    with pytest.raises(InputError, match="the header index,given,true"):
        read_audit(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("index,given,true\n", "rows of an audit below the header"),
        ("index,given,true\n0,cat,cat\n1,cat,dog,?\n", "3 (fields|cells)"),
        ('index,given,true\n0,cat,cat\n1,"cat,dog\n', "never closed"),
        ("index,given,true,true\n0,cat,cat,dog\n", "each column once"),
        ("index,given,true\n0,cat,\n", "fill some in"),
        ("index,given,true\n-1,cat,cat\n", "whole number as index in line 2"),
    ],
)
def test_malformed_files_are_refused(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises((InputError, FileError), match=message):
        read_audit(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Audit([0.5], [1]), "list of integers"),
        (lambda: Audit([0, 1], [1]), "2 rows and 1 values"),
        (lambda: as_audit(3), "as an `Audit`, got int"),
    ],
)
def test_audits_that_cannot_be_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_sheet_that_a_spreadsheet_saved_otherwise_is_the_same(path, delimiter):
    before = read_sheet(path)
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    with path.open("w", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows(rows)
    after = read_sheet(path)
    pd.testing.assert_frame_equal(after, before)
