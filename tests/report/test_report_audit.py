"""A random sample to verify, on a page of its own."""

import json
from dataclasses import replace

import numpy as np
import pytest
from report_samples import sheet_of

import dualt
from dualt import noise
from dualt.audit import read_audit, read_sheet
from dualt.io import write_table
from dualt.report import render_report
from tests.cli.commands import numbers_of, refused, run

N_SAMPLES, N_CLASSES = 900, 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clean = rng.integers(0, N_CLASSES, N_SAMPLES)
    noisy = noise.corrupt(clean, noise.pair(N_CLASSES, 0.3), random_state=1)
    np.save("clean.npy", clean)
    np.save("labels.npy", noisy)
    np.save("probs.npy", noise.pair(N_CLASSES, 0.3)[clean] * 0.9 + 0.1 / 3)
    (tmp_path / "names.txt").write_text("cat\ndog\ncow\n")
    return tmp_path


def make_page(*options):
    result = run("audit", "labels.npy", "--size", 60, "-o", "audit.csv", "--probs", "probs.npy", "--report", "a.html",
                 "--json", *options)  # fmt: skip
    return json.loads(result.stdout)["indices"]


@pytest.fixture
def open_page(browser, folder):
    """Open a page that was made, in a fresh profile."""
    context = browser.new_context()
    page = context.new_page()
    yield lambda name: page.goto((folder / name).as_uri()) and page
    context.close()


def verified(page, folder):
    """Return the sheet that the page gives to download."""
    with page.expect_download() as event:
        page.get_by_role("button", name="Download verified labels").click()
    assert event.value.suggested_filename == "audit-review.csv"
    event.value.save_as(folder / "audit-review.csv")
    return read_sheet(folder / "audit-review.csv")


def test_the_sample_is_a_list_of_its_own(folder):
    probs, labels = np.load("probs.npy"), np.load("labels.npy")
    issues = dualt.find_label_issues(probs, labels)
    page = render_report(issues.transition_estimate, issues, audit=sheet_of([7, 3, 5], labels))
    (audit,) = numbers_of(page)["lists"]  # beside suspects with suggestions the sample would not be blind
    assert (audit["key"], audit["columns"]) == ("audit", ["index", "given", "true"])
    assert audit["index"] == [7, 3, 5]
    np.testing.assert_array_equal(audit["given"], labels[[7, 3, 5]])
    assert "dualt estimate PROBS LABELS --verified audit-review.csv" in page
    assert "suspects-review.csv" not in page
    named = replace(issues, ids=[f"sku-{row}" for row in range(N_SAMPLES)])
    (audit,) = numbers_of(render_report(None, named, audit=sheet_of([7, 3], labels)))["lists"]
    assert (audit["columns"], audit["ids"]) == (["index", "id", "given", "true"], ["sku-7", "sku-3"])


def test_a_page_needs_probabilities(folder):
    assert "with --report" in refused("audit", "labels.npy", "-o", "audit.csv", "--report", "a.html")
    assert not (folder / "audit.csv").exists()


@pytest.mark.browser
@pytest.mark.parametrize("options", [[], ["--classes", "names.txt"]])
def test_what_is_verified_in_the_browser_corrects_the_estimate(open_page, folder, options):
    rows = make_page(*options)
    clean, labels = np.load("clean.npy"), np.load("labels.npy")
    page = open_page("a.html")
    section = page.locator("#audit")
    seen = []
    section.locator(".list").focus()
    for _ in range(30):
        index = int(section.locator(".card .head span").first.inner_text().removeprefix("Example "))
        seen.append(index)
        # The classes are offered in their order, by their own digit or by their place.
        section.get_by_role("group", name="Choose a class").get_by_role("button").nth(clean[index]).click()
    assert set(seen) <= set(rows)
    assert seen != sorted(seen), "in random order, so that the first thirty are a random sample too"
    assert page.locator("#suspects").count() == 0, "suggestions beside it would not leave the sample blind"
    verified(page, folder)
    found = read_audit(folder / "audit-review.csv")
    assert found.rows.tolist() == sorted(seen)
    if not options:
        np.testing.assert_array_equal(found.given, labels[found.rows])
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit-review.csv", "--json", *options)
    assert json.loads(result.stdout)["estimator"].endswith("+ 30 verified")
    assert "index,old,new" in refused("apply-review", "labels.npy", "audit-review.csv", "-o", "corrected.npy", *options)


@pytest.mark.browser
def test_the_page_asks_for_the_class_before_it_shows_the_label(open_page, folder):
    make_page("--classes", "names.txt")
    labels = np.load("labels.npy")
    names = ["cat", "dog", "cow"]
    page = open_page("a.html")
    section = page.locator("#audit")
    card = section.locator(".card")
    index = int(card.locator(".head span").first.inner_text().removeprefix("Example "))
    assert card.get_by_text("Which class is it?").is_visible()
    assert not card.locator(".labels").is_visible()
    assert section.get_by_role("button", name="Keep").count() == section.get_by_role("button", name="Take").count() == 0
    assert section.get_by_label("Given").count() == section.get_by_label("Suggested").count() == 0
    first = section.get_by_role("option").first.inner_text()
    assert not any(name in first for name in names)
    section.locator(".list").focus()
    for key in "ax":
        page.keyboard.press(key)
    assert page.locator(".progress span").first.inner_text().startswith("0 of 60")
    other = (labels[index] + 1) % 3
    page.keyboard.press(str(other + 1))
    said = f"Example {index}: you chose {names[other]}; its label says {names[labels[index]]}."
    assert card.get_by_role("status").inner_text() == said
    assert card.get_by_text("Which class is it?").is_visible(), "of the next one"
    page.keyboard.press("k")
    assert card.locator(".labels").is_visible()
    assert names[labels[index]] in card.locator(".labels").inner_text()


@pytest.mark.browser
def test_truths_of_an_earlier_batch_are_on_the_page_and_in_its_download(open_page, folder):
    make_page()
    sheet = read_sheet("audit.csv")
    sheet.loc[:19, "true"] = np.load("clean.npy")[sheet["index"][:20]].astype(str)
    write_table("audit.csv", sheet)
    run("audit", "labels.npy", "--probs", "probs.npy", "--more", 15, "-o", "audit.csv", "--report", "b.html")
    page = open_page("b.html")
    section = page.locator("#audit")
    assert page.locator(".progress span").first.inner_text().startswith("20 of 75 reviewed")
    section.get_by_role("group", name="Choose a class").get_by_role("button").first.click()
    found = verified(page, folder)
    assert (len(found), (found["true"] != "").sum()) == (75, 21)
    assert set(found["index"]) == set(read_sheet("audit.csv")["index"])
