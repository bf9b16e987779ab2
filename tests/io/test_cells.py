import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt.io.cells import guard_cell, unguard_cell

TRICKY = st.text(alphabet="'=+-@\t\r\n ＝aé1", max_size=6)


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_every_way_to_start_a_formula_is_guarded(first):
    assert guard_cell(f"{first}1+1") == f"'{first}1+1"


def test_a_formula_behind_spaces_is_guarded():
    assert guard_cell("  =1+1") == "'  =1+1"


@pytest.mark.parametrize("text", ["", "cat", "a=b", "'tis", "''", "1-2", " 4"])
def test_harmless_text_is_left_alone_both_ways(text):
    assert guard_cell(text) == text
    assert unguard_cell(text) == text


@given(TRICKY)
def test_unguard_undoes_guard(text):
    assert unguard_cell(guard_cell(text)) == text


@given(TRICKY)
def test_a_guarded_cell_never_starts_like_a_formula(text):
    assert guard_cell(text).lstrip(" ")[:1] not in set("=+-@\t\r\n＝")


@given(TRICKY, TRICKY)
def test_two_texts_never_share_a_cell(a, b):
    assert (guard_cell(a) == guard_cell(b)) == (a == b)
