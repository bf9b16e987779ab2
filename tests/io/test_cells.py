import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt.io.cells import guard_cell, unguard_cell, write_rows

TRICKY = st.text(alphabet="'=+-@\t\r\n ＝aé1", max_size=6)


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_every_way_to_start_a_formula_is_guarded(first):
    assert guard_cell(f"{first}1+1") == f"'{first}1+1"


def test_a_formula_behind_spaces_is_guarded():
    assert guard_cell("  =1+1") == "'  =1+1"


@pytest.mark.parametrize("text", ["", "cat", "a=b", "'tis", "''", "1-2", " 4", "-1", "+2.5"])
def test_harmless_text_is_left_alone_both_ways(text):
    assert guard_cell(text) == text
    assert unguard_cell(text) == text


@given(TRICKY)
def test_unguard_undoes_guard(text):
    assert unguard_cell(guard_cell(text)) == text


@given(TRICKY)
def test_a_guarded_cell_never_starts_like_a_formula(text):
    is_number = text[1:].isdigit() and text[0] in "+-"
    assert is_number or guard_cell(text).lstrip(" ")[:1] not in set("=+-@\t\r\n＝")


@given(TRICKY, TRICKY)
def test_two_texts_never_share_a_cell(a, b):
    assert (guard_cell(a) == guard_cell(b)) == (a == b)


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1)))
def test_written_rows_come_back(rows):
    """Python's own writer leaves a lone carriage return bare, and its reader then ends the row there."""
    stream = io.StringIO(newline="")
    write_rows(stream, rows)
    assert list(csv.reader(io.StringIO(stream.getvalue(), newline=""))) == rows


def test_a_carriage_return_stays_in_its_cell():
    stream = io.StringIO(newline="")
    write_rows(stream, [["id", "n"], ["a\rb", 1], ["c", 2]])
    assert stream.getvalue() == 'id,n\n"a\rb","1"\nc,2\n'
