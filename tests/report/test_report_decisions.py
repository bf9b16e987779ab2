"""Decisions on the page: by which keys, about which examples, and where they are found again."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from report_samples import (
    CLASSES,
    downloaded,
    example,
    flagged,
    marks,
    report,
    sample_issues,
    sieve,
    tally,
    texts,
    with_ids,
)

from dualt.errors import InputError
from dualt.issues.review import read_review
from dualt.report import render_report
from tests.cli.commands import numbers_of

pytestmark = pytest.mark.browser
NUMBERS = [str(i) for i in range(14)]
LETTERS = list("abcdejkxu")


def ids_of(arguments):
    return [f"sku-{row}" for row in range(len(arguments["issues"]))]


@pytest.mark.parametrize("names", [CLASSES, NUMBERS, LETTERS, ["A", "b", "X"]])
def test_a_key_that_names_a_class_chooses_it(open_report, names):
    given = np.arange(8) % len(names)
    page = open_report(report(8, names, issues=sample_issues(8, names, given=given)))
    # The third example is labelled by the third class, and so on: its own key keeps it, another changes it.
    pressed = [name for name in names if len(name) == 1][:8]
    expected = []
    for place, name in enumerate(reversed(pressed)):
        page.keyboard.press(name.lower())
        expected.append("kept" if names[given[place]] == name else f"→ {name}")
    assert marks(page)[: len(pressed)] == expected


def test_classes_without_digits_answer_to_their_place_and_the_tenth_to_zero(open_report):
    names = [f"class {i}" for i in range(11)]
    page = open_report(report(8, names, issues=sample_issues(8, names, given=np.full(8, 10))))
    for key in ("1", "9", "0"):
        page.keyboard.press(key)
    assert marks(page)[:3] == ["→ class 0", "→ class 8", "→ class 9"]
    assert "1–9, 0" in page.locator(".keys").inner_text()


def test_every_class_is_found_by_typing(open_report):
    names = [f"class {i}" for i in range(50)]
    page = open_report(report(8, names, issues=sample_issues(8, names, given=np.zeros(8, int))))
    page.keyboard.press("/")
    page.keyboard.type("CLASS 4")
    field = page.get_by_role("combobox", name="Find a class")
    assert field.get_attribute("aria-expanded") == "true"
    found = page.locator(".found [role=option]").all_inner_texts()
    assert found == ["class 4", *(f"class {i}" for i in range(40, 50))]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert marks(page)[0] == "→ class 40"
    assert page.evaluate("document.activeElement.className") == "list"
    assert page.locator(".found").is_hidden()
    page.keyboard.press("/")
    page.keyboard.type("nothing of the kind")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert tally(page) == "1 of 8 reviewed: 1 changed, 0 kept."
    assert page.evaluate("document.activeElement.className") == "list"


def test_the_download_has_ids(open_report, tmp_path):
    data = report()
    rows = flagged(data)
    ids = ids_of(data)
    ids[rows.index[0]] = '=1+1, "quoted"\nnew line 🙂'
    page = open_report(with_ids(data, ids))
    page.keyboard.press("a")
    page.keyboard.press("x")
    path = downloaded(page, tmp_path)
    with path.open(newline="", encoding="utf-8") as stream:
        assert next(csv.reader(stream)) == ["index", "id", "old", "new"]
    decisions = read_review(path)
    assert [decision.id for decision in decisions] == [ids[row] for row in rows.index[:2]]
    assert [decision.new for decision in decisions] == [str(rows.suggested[0]), str(rows.given[1])]


def test_ids_and_files_are_shown(open_report, tmp_path):
    data = report()
    row = int(flagged(data).index[0])
    ids = ids_of(data)
    (tmp_path / "pictures" / "cat").mkdir(parents=True)
    names = [f"cat/{place}.gif" for place in range(len(ids))]
    for name in names:
        Image.new("L", (1, 1)).save(tmp_path / "pictures" / name)
    data["issues"] = replace(data["issues"], images=names)
    page = open_report(with_ids(data, ids) | {"images": tmp_path / "pictures"})
    assert page.locator(".card .ident").inner_text() == f"sku-{row} · cat/{row}.gif"
    assert page.locator(".list .about").first.inner_text().startswith(f"sku-{row} · cat/{row}.gif, ")


def reordered(data, ids):
    """Return the same examples as `data` in another order, with ids and texts."""
    issues, order = data["issues"], np.random.default_rng(1).permutation(len(ids))
    names = "given", "probability_right", "suggested", "suggested_probability", "is_issue"
    moved = replace(issues, **{name: getattr(issues, name)[order] for name in names})
    shuffled = [ids[row] for row in order]
    return with_ids(data | {"issues": moved, "texts": shuffled}, shuffled)


def test_a_page_made_again_keeps_what_was_decided_by_id_where_the_label_is_still_the_old_one(browser, tmp_path):
    data = report()
    ids = ids_of(data)
    first = with_ids(data | {"texts": ids}, ids)
    chosen = flagged(data).index[:3].tolist()
    context = browser.new_context()
    page = context.new_page()
    path = tmp_path / "report.html"
    path.write_text(render_report(**first), encoding="utf-8")
    page.goto(path.as_uri())
    for key in "aax":
        page.keyboard.press(key)
    page.wait_for_timeout(500)
    again = reordered(data, ids)
    given = again["issues"].given.copy()
    given[again["texts"].index(ids[chosen[0]])] += 1
    relabelled = again | {"issues": replace(again["issues"], given=given % 10)}
    for arguments, expected in ((again, chosen), (relabelled, chosen[1:])):
        path.write_text(render_report(**arguments), encoding="utf-8")
        page.goto(path.as_uri())
        decisions = read_review(downloaded(page, tmp_path))
        assert {decision.id for decision in decisions} == {ids[row] for row in expected}
        assert all(again["texts"][decision.index] == decision.id for decision in decisions)
    context.close()


def test_examples_that_are_twice_there_are_decided_one_by_one(open_report):
    data = report()
    same = ["twice"] * len(data["issues"])
    page = open_report(with_ids(data | {"texts": same}, same))
    page.keyboard.press("a")
    page.wait_for_timeout(500)
    page.reload()
    assert tally(page).startswith("1 of 40")


def test_a_page_opens_with_an_earlier_review(open_report, tmp_path):
    data = report()
    rows = flagged(data)
    unflagged = int(np.flatnonzero(~data["issues"].is_issue)[0])
    reviewed = {int(rows.index[0]): str(rows.given[0]), int(rows.index[1]): "7", unflagged: "3"}
    page = open_report(data | {"reviewed": reviewed})
    assert "3 of 41 reviewed" in tally(page)
    assert page.get_by_role("button", name="Undo").is_disabled()
    assert example(page) == rows.index[2]
    page.keyboard.press("a")
    decisions = {decision.index: decision.new for decision in read_review(downloaded(page, tmp_path))}
    assert decisions == {
        int(rows.index[0]): str(rows.given[0]),
        int(rows.index[1]): "7",
        int(rows.index[2]): str(rows.suggested[2]),
        unflagged: "3",
    }


def test_a_word_of_ones_own_outdoes_the_earlier_review_and_undo_brings_it_back(open_report):
    data = report()
    row = int(flagged(data).index[0])
    page = open_report(data | {"reviewed": {row: "7"}})
    page.locator(".list").focus()
    page.keyboard.press("Home")
    page.keyboard.press("5")
    assert marks(page)[0] == "→ 5"
    page.keyboard.press("u")
    assert marks(page)[0] == "→ 7"


@pytest.mark.parametrize(
    ("reviewed", "message"), [({0: "no class"}, "a class as the reviewed label"), ({10_000: "1"}, "among")]
)
def test_a_review_of_other_examples_is_refused(reviewed, message):
    with pytest.raises(InputError, match=message):
        render_report(**report(), reviewed=reviewed)


def test_reviewed_rows_are_listed_last():
    issues = sample_issues(2)
    page = render_report(None, issues, reviewed={0: "1", 1: "1"})
    assert numbers_of(page)["lists"][0]["index"] == [0, 3, 1]


@pytest.mark.parametrize(("wanted", "found"), [("SKU-6", 6), ("text of example 27", 27), ("33", 33)])
def test_a_search_finds_ids_texts_and_numbers(open_report, wanted, found):
    data = report(texts=texts(40))
    page = open_report(with_ids(data, [f"sku-{row}!" for row in range(len(data["issues"]))]))
    page.get_by_label("Search").fill(f"{wanted}!" if "SKU" in wanted else wanted)
    assert page.locator(".list [role=option]").count() == 1
    assert example(page) == found
    page.get_by_role("button", name="Clear filters").click()
    assert page.locator(".card .head").inner_text().endswith("of 40")
    assert page.get_by_role("button", name="Clear filters").is_hidden()


@pytest.mark.parametrize("by", ["click", "key"])
def test_a_cell_leads_to_its_labels(open_report, by):
    data = report(400)
    rows = flagged(data)
    page = open_report(data)
    cell = page.locator("#heatmap tbody tr").nth(3).locator("td").nth(4)
    if by == "click":
        cell.click()
    else:
        cell.focus()
        page.keyboard.press("Enter")
    n_pairs = int(((rows.given == 4) & (rows.suggested == 3)).sum())
    assert f"1 of {n_pairs}" in page.locator(".card .head").inner_text()
    page.locator("#heatmap tbody tr").nth(3).locator("td").nth(3).click()
    assert f"1 of {n_pairs}" in page.locator(".card .head").inner_text(), "no label to review is on the diagonal"


def two_groups():
    """Return a page of three labels that are probably wrong, and of two doubtful ones with a second-likeliest class."""
    given, suggested = np.array([0, 1, 2, 3, 4]), np.array([0, 2, 2, 1, 3])
    issues = sample_issues(5, given=given, suggested=suggested)
    rows = issues.indices.tolist()
    return report(5, issues=issues) | {"second": {rows[0]: (7, 0.25)}}


def test_probably_wrong_and_doubtful_labels_are_apart_and_each_has_another_class(open_report):
    page = open_report(two_groups())
    pairs = [text.split() for text in page.locator(".list .pair").all_inner_texts()]
    # The class that label 2 most often hides is 1, by the matrix of the samples.
    assert pairs == [["1", "→", "2"], ["3", "→", "1"], ["4", "→", "3"], ["0", "or", "7"], ["2", "or", "1"]]
    assert marks(page) == ["", "", "", "doubtful", "doubtful"]
    assert sieve(page, "Group").locator("option").all_inner_texts() == ["all (5)", "probably wrong (3)", "doubtful (2)"]
    sieve(page, "Group").select_option("doubtful")
    assert page.locator(".list [role=option]").count() == 2
    assert page.locator(".card .labels").inner_text().split("\n")[-3:] == ["Second likeliest", "7", "25.0% likely"]
    page.keyboard.press("a")
    assert marks(page)[0] == "→ 7"


def test_all_sure_suggestions_are_taken_at_once_and_undone_at_once(open_report):
    data = report()
    probability = data["issues"].suggested_probability[flagged(data).index]
    page = open_report(data)
    page.keyboard.press("x")
    n_sure = int((probability[1:] >= 0.8).sum())
    page.get_by_label("Least probability").select_option("80%")
    page.get_by_role("button", name=f"Take all {n_sure} suggestions").click()
    assert tally(page) == f"{n_sure + 1} of 40 reviewed: {n_sure} changed, 1 kept."
    page.wait_for_timeout(100)
    page.reload()
    page.keyboard.press("u")
    assert tally(page) == "1 of 40 reviewed: 0 changed, 1 kept."


def test_a_row_shows_its_columns_and_notes_and_is_found_by_them(open_report):
    data = report()
    n_rows, first = len(data["issues"]), int(flagged(data).index[0])
    columns = {"weight": [f"{row} kg" for row in range(n_rows)], "<b>": [""] * n_rows}
    page = open_report(data | {"columns": columns, "notes": {first: ["ann: 3", "bob: 4"]}})
    assert page.locator(".cells").inner_text().split("\n") == ["weight", f"{first} kg", "<b>", "–"]
    assert page.locator(".notes").inner_text().split("\n") == ["ann: 3", "bob: 4"]
    page.keyboard.press("j")
    assert page.locator(".notes").is_hidden()
    page.get_by_label("Search").fill("27 kg")
    assert example(page) == 27
    with pytest.raises(InputError, match=r"'weight'.*got 2"):
        render_report(**data | {"columns": {"weight": [1, 2]}})


def test_keys_bring_the_list_into_sight_before_they_decide_and_the_download_stays_in_sight(open_report):
    page = open_report(report(), viewport={"width": 1400, "height": 900})
    assert page.get_by_role("button", name="Download").bounding_box()["y"] < 860
    page.evaluate("scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
    page.keyboard.press("a")
    assert tally(page).startswith("0 of 40")
    assert page.evaluate("document.activeElement.className") == "list"
    assert page.get_by_role("button", name="Download").bounding_box()["y"] < 860
