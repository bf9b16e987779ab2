"""The page in a real browser. Every test also fails on a console message or a request (conftest)."""

import csv
import io

import numpy as np
import pytest
from report_samples import (
    CLASSES,
    downloaded,
    example,
    flagged,
    remarks,
    report,
    sample_issues,
    sieve,
    tally,
)  # fmt: skip

from dualt.io.tables import guard_cell
from dualt.issues import apply_review, read_review
from dualt.report import write_report

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\u202eright to left",
    "\"quotes\" & 'apostrophes'",
    "two\nlines",
    "=HYPERLINK(1)",
    "'-1, and a comma",
    "  ",
    "{{ 7 * 7 }}",
    "${alert(3)}",
    "javascript:alert(4)",
    "-1",
    "\u2028",
    "@x\r\n",
)


def reload(page):
    page.wait_for_timeout(100)  # storage is written by another process of the browser
    page.reload()


def fits(page):
    # Not innerWidth: a phone's browser zooms out, and widens that, when a page does not fit.
    return page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_arrow_keys_move_through_the_matrix(open_report):
    page = open_report(report())
    page.locator("#heatmap td[tabindex='0']").focus()
    assert "True 0, given 0" in page.locator("#tip").inner_text()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    said = "True 1, given 2\n15.00%\n95% interval 14.00% to 16.25%"
    assert page.locator("#tip").inner_text().startswith(said)
    label = page.locator(":focus").get_attribute("aria-label")
    assert label.startswith("True 1, given 2, 15.0 percent, 95% interval 14.00% to 16.25%")
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowRight")
    assert "True 9, given 9" in page.locator("#tip").inner_text()
    assert page.locator("#heatmap td[tabindex='0']").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_a_review_by_keyboard_comes_back_as_corrected_labels(open_report, tmp_path):
    data = report()
    rows = flagged(data)
    labels = data["issues"].given.astype(np.int32)
    page = open_report(data)
    other = next(code for code in (3, 5, 7) if code not in (rows.given[3], rows.suggested[3]))
    for key in ("a", "x", "x", str(other), "j", "j", "k", "a"):
        page.keyboard.press(key)
    assert tally(page) == "5 of 40 reviewed: 3 changed, 2 kept."
    decisions = read_review(downloaded(page, tmp_path))
    assert [decision.index for decision in decisions] == rows.index[[0, 1, 2, 3, 5]].tolist()
    expected = labels.copy()
    expected[rows.index[[0, 5]]] = rows.suggested[[0, 5]]
    expected[rows.index[3]] = other
    np.testing.assert_array_equal(apply_review(labels, decisions), expected)


def test_a_review_by_mouse(open_report):
    page = open_report(report())
    rows = flagged(report())
    page.locator(".card").get_by_role("button", name="Take").click()
    page.locator(".list [role=option]").nth(4).click()
    assert example(page) == rows.index[4]
    page.get_by_role("button", name="Keep", exact=False).click()
    page.get_by_role("group", name="Choose a class").get_by_role("button").nth((rows.given[5] + 3) % 10).click()
    assert tally(page) == "3 of 40 reviewed: 2 changed, 1 kept."
    page.get_by_role("button", name="Previous").click()
    assert page.locator(".list [aria-selected=true]").count() == 1


def test_undo_goes_back_to_the_example_and_to_the_choice_before(open_report):
    page = open_report(report())
    page.keyboard.press("a")
    page.keyboard.press("k")
    page.keyboard.press("x")
    assert tally(page) == "1 of 40 reviewed: 0 changed, 1 kept."
    page.keyboard.press("u")
    assert tally(page) == "1 of 40 reviewed: 1 changed, 0 kept."
    assert example(page) == 0
    page.keyboard.press("u")
    assert tally(page) == "0 of 40 reviewed: 0 changed, 0 kept."
    assert page.get_by_role("button", name="Undo").is_disabled()


def test_choices_and_undo_survive_a_reload(open_report):
    page = open_report(report())
    for key in "aax":
        page.keyboard.press(key)
    reload(page)
    assert tally(page) == "3 of 40 reviewed: 2 changed, 1 kept."
    assert example(page) == flagged(report()).index[3]
    page.keyboard.press("u")
    assert tally(page) == "2 of 40 reviewed: 2 changed, 0 kept."


@pytest.mark.parametrize(
    "saved", ['"nonsense"', "{", "[[1e9,0],[0,99],[-1,0],null,[0.5,1],['x',0],[KEY,99],[KEY,'1'],[KEY,'1','2']]"]
)
def test_damaged_storage_is_ignored(open_report, saved):
    page = open_report(report())
    page.keyboard.press("a")
    page.evaluate(
        """(damaged) => {
        const key = Object.keys(localStorage).find((key) => key.startsWith("dualt-review"));
        const [[example]] = JSON.parse(localStorage.getItem(key));
        localStorage.setItem(key, damaged.replaceAll("KEY", `"${example}"`).replaceAll("'", '"'));
    }""",
        saved,
    )
    reload(page)
    assert tally(page) == "0 of 40 reviewed: 0 changed, 0 kept."


def test_without_storage_the_review_works_and_says_so(open_report):
    page = open_report(report())
    page.add_init_script("Storage.prototype.setItem = () => { throw new DOMException('full'); }")
    reload(page)
    page.keyboard.press("a")
    assert tally(page).startswith("1 of 40 reviewed: 1 changed, 0 kept.")
    assert "download before you close it" in tally(page)


def test_filters_by_pair_and_state(open_report):
    page = open_report(report(400))
    rows = flagged(report(400))
    sieve(page, "Given").select_option("4")
    n_four = int((rows.given == 4).sum())
    assert f"1 of {n_four}" in page.locator(".card .head").inner_text()
    sieve(page, "Suggested").select_option("3")
    page.keyboard.press("a")
    sieve(page, "Show").select_option("open")
    assert f"of {n_four - 1}" in page.locator(".card .head").inner_text()
    sieve(page, "Show").select_option("done")
    assert "1 of 1" in page.locator(".card .head").inner_text()
    page.keyboard.press("u")
    assert sieve(page, "Show").input_value() == "all"


def test_hostile_names_and_texts_stay_text(open_report, tmp_path):
    n_rows = len(HOSTILE)
    codes = np.arange(n_rows)
    issues = sample_issues(n_rows, HOSTILE, given=codes, suggested=np.roll(codes, 1), step=1)
    data = report(n_rows, HOSTILE, HOSTILE, issues=issues, title=HOSTILE[1], estimator=HOSTILE[0])
    page = open_report(data)
    assert page.locator("img").count() == 0
    assert page.locator("body script").count() == 2
    for _ in range(n_rows):
        page.keyboard.press("a")
    table = list(csv.reader(io.StringIO(downloaded(page, tmp_path).read_bytes().decode(), newline="")))
    old_new = [(HOSTILE[i], HOSTILE[i - 1]) for i in range(n_rows)]
    assert table[0] == ["index", "id", "old", "new"]
    assert [line[2:4] for line in table[1:]] == [[guard_cell(old), guard_cell(new)] for old, new in old_new]
    decisions = read_review(tmp_path / "suspects-review.csv")
    assert [(decision.old, decision.new) for decision in decisions] == old_new
    corrected = apply_review(np.arange(n_rows), decisions, class_names=HOSTILE)
    assert corrected.tolist() == np.roll(np.arange(n_rows), 1).tolist()


def test_markup_that_got_in_could_neither_run_nor_load(browser, tmp_path):
    path = tmp_path / "report.html"
    write_report(path, **report())
    smuggled = "<script>window.ran = 1</script><img src='https://example.org/x.png' onerror='window.ran = 1'>"
    path.write_text(path.read_text().replace("</main>", f"{smuggled}</main>"))
    context = browser.new_context()
    page = context.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(path.as_uri())
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert sum("Content Security Policy" in text for text in refused) >= 3
    context.close()


def test_a_thousand_classes_and_ten_thousand_labels(open_report):
    names = [f"class {i}" for i in range(1000)]
    page = open_report(report(10_000, names))
    assert page.locator("#heatmap tbody tr").count() == 30
    assert page.locator("#heatmap tbody tr").first.locator("td").count() == 31
    assert page.locator("#bars tbody tr").count() == 30
    page.get_by_role("button", name="Show all 1,000 classes").click()
    assert page.locator("#bars tbody tr").count() == 1000
    page.locator(".list").focus()
    page.keyboard.press("End")
    assert "10,000 of 10,000" in page.locator(".card .head").inner_text()
    assert page.locator(".list [role=option]").count() < 40
    page.locator(".list").evaluate("(box) => { box.scrollTop = box.scrollHeight / 2 }")
    page.locator(".list [aria-posinset='5001']").wait_for()
    assert page.locator(".list [role=option]").count() < 40
    page.get_by_role("combobox", name="Find a class").fill("class 77")
    page.get_by_role("option", name="class 77", exact=True).click()
    assert tally(page) == "1 of 10,000 reviewed: 1 changed, 0 kept."
    assert fits(page)


def test_number_keys_offer_the_likeliest_of_many_classes(open_report):
    names = [f"class {i}" for i in range(50)]
    data = report(20, names)
    rows = flagged(data)
    page = open_report(data)
    buttons = page.get_by_role("group", name="Choose a class").get_by_role("button")
    assert buttons.first.inner_text().split("\n")[-1].removeprefix("1") == names[rows.suggested[0]]
    second = buttons.nth(1).locator("bdi").inner_text()
    page.keyboard.press("2")
    assert page.locator(".list .mark").first.inner_text() == f"→ {second}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_follows_the_system_and_the_toggle(open_report, scheme):
    page = open_report(report(warnings=remarks()), color_scheme=scheme)
    brightness = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert (page.evaluate(brightness) > 128) == (scheme == "light")
    page.locator("#theme").click()
    assert (page.evaluate(brightness) > 128) == (scheme == "dark")
    reload(page)
    assert (page.evaluate(brightness) > 128) == (scheme == "dark")


@pytest.mark.parametrize("names", [CLASSES, HOSTILE, ["a" * 300, "b" * 300, "c d " * 80]])
def test_a_phone_shows_it_without_sideways_scrolling(open_report, names):
    data = report(40, names, warnings=remarks())
    page = open_report(data, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    assert fits(page)
    page.locator(".card").get_by_role("button", name="Take").tap()
    assert tally(page).startswith("1 of 40")


def test_a_screen_reader_hears_where_it_is(open_report):
    page = open_report(report())
    page.keyboard.press("j")
    active = page.locator(".list").get_attribute("aria-activedescendant")
    option = page.locator(f"#{active}")
    assert option.get_attribute("aria-selected") == "true"
    assert option.get_attribute("aria-posinset") == "2"
    page.keyboard.press("x")
    assert "kept as" in page.get_by_role("status").inner_text()
    unnamed = page.locator("button, select, [role=grid], [role=listbox], progress").evaluate_all("""(nodes) =>
        nodes.filter((node) => !(node.ariaLabel || node.labels?.length || node.innerText.trim())).length""")
    assert unnamed == 0


def test_an_estimate_alone_has_no_list(open_report):
    page = open_report({"estimate": report()["estimate"]})
    assert page.locator(".review").count() == 0
    assert page.locator(".confusions li").count() > 0
    page.locator("#heatmap td[tabindex='0']").focus()
    assert page.locator("#tip").inner_text() == "True 0, given 0\n80.00%\n95% interval 79.00% to 81.25%"
