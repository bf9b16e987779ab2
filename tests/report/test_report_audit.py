"""A random sample to verify, on the page beside the suspects and apart from them."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import dualt
from dualt import noise
from dualt.audit import read_audit
from dualt.cli import app
from dualt.report import render_report

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


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def make_page(*options):
    result = run("audit", "labels.npy", "--size", 60, "-o", "audit.csv", "--probs", "probs.npy", "--report", "a.html",
                 "--json", *options)  # fmt: skip
    assert result.exit_code == 0, result.output
    return json.loads(result.output)["indices"]


def test_the_sample_is_a_list_of_its_own(folder):
    probs, labels = np.load("probs.npy"), np.load("labels.npy")
    issues = dualt.find_label_issues(probs, labels)
    page = render_report(issues.transition_estimate, issues, audit=np.array([7, 3, 5]))
    numbers = json.loads(re.search('id="numbers">(.*)</script>', page).group(1))
    suspects, audit = numbers["lists"]
    assert (suspects["key"], suspects["columns"]) == ("suspects", ["index", "id", "old", "new", "labels"])
    assert (audit["key"], audit["columns"]) == ("audit", ["index", "given", "true", "id"])
    assert audit["index"] == [7, 3, 5]
    np.testing.assert_array_equal(audit["given"], labels[[7, 3, 5]])
    assert "dualt estimate PROBS LABELS --verified audit-review.csv" in page
    assert "dualt apply-review LABELS suspects-review.csv" in page


def test_a_page_needs_probabilities(folder):
    for options in (["--report", "a.html"], ["--probs", "probs.npy"]):
        result = run("audit", "labels.npy", "-o", "audit.csv", *options)
        assert result.exit_code == 2
        assert "--report and --probs together" in result.output
    assert not (folder / "audit.csv").exists()


@pytest.mark.browser
@pytest.mark.parametrize("options", [[], ["--classes", "names.txt"]])
def test_what_is_verified_in_the_browser_corrects_the_estimate(browser, folder, options):
    rows = make_page(*options)
    clean, labels = np.load("clean.npy"), np.load("labels.npy")
    context = browser.new_context()
    page = context.new_page()
    page.goto((folder / "a.html").as_uri())
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
    suspects = page.locator("#suspects .progress span").first.inner_text()
    assert suspects.startswith("0 of"), "verified labels are not reviews of suspects"
    with page.expect_download() as event:
        section.get_by_role("button", name="Download verified labels").click()
    assert event.value.suggested_filename == "audit-review.csv"
    event.value.save_as(folder / "audit-review.csv")
    context.close()
    found, given, _ = read_audit(folder / "audit-review.csv")
    assert found.tolist() == sorted(seen)
    if not options:
        np.testing.assert_array_equal(given, labels[found])
    result = run("estimate", "probs.npy", "labels.npy", "--verified", "audit-review.csv", "--json", *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["estimator"].endswith("+ 30 verified")
    refused = run("apply-review", "labels.npy", "audit-review.csv", "-o", "corrected.npy", *options)
    assert refused.exit_code == 2
    assert "index,old,new" in refused.output
