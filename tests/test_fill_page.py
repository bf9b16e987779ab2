"""Outputs of runs go between their marks, and nothing else changes."""

import pytest
from fill_page import PAGE, fill


def test_only_what_is_between_the_marks_changes():
    page = "a\n<!-- kills: begin -->\nold\n<!-- kills: end -->\nb\n"
    new = "a\n<!-- kills: begin -->\none\n\ntwo\n<!-- kills: end -->\nb\n"
    assert fill(page, "kills", ["one\n", "two\n"]) == new
    with pytest.raises(ValueError, match="Expected the marks"):
        fill(page, "other", ["x"])


@pytest.mark.parametrize("name", ["kills"])
def test_the_page_has_the_marks_and_no_failures_between_them(name):
    text = PAGE.read_text()
    found = text.partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0]
    rows = [line.strip("|").split("|") for line in found.splitlines() if line.startswith("| ")]
    header = [cell.strip() for cell in rows[0]]
    wrong = ["half-written", "lost", "mixed"]
    for row in rows:
        if row[0].strip() not in (header[0], "---"):
            assert {row[header.index(column)].strip() for column in wrong} == {"0"}, row
