"""The page says what the estimate and its issues say."""

import re

import numpy as np
import pytest

from dualt.estimators import estimate_transition
from dualt.issues import find_label_issues
from dualt.noise import corrupt, pair
from dualt.report import render_report, write_report
from dualt.results.claims import headline, percent
from tests.cli.commands import numbers_of


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 600)
    probs = np.eye(3)[clean] @ pair(3, 0.3) * 0.9 + rng.uniform(0, 0.1, (600, 3))
    return probs / probs.sum(axis=1, keepdims=True), corrupt(clean, pair(3, 0.3), random_state=0)


@pytest.fixture(scope="module")
def estimate(noisy):
    return estimate_transition(*noisy, estimator="spade")


def test_a_page_repeats_what_the_estimate_says(noisy):
    estimate = estimate_transition(*noisy, estimator="spade", class_names=["a", "b", "c"])
    page = render_report(estimate, level=0.9)
    found = numbers_of(page)
    assert (found["names"], found["level"], found["lists"]) == (["a", "b", "c"], 0.9, [])
    low, high = estimate.confidence_interval(0.9)
    for name, values in {"value": estimate.transition, "low": low, "high": high}.items():
        np.testing.assert_allclose(found["matrix"][name], values, atol=1e-5)
    np.testing.assert_allclose(found["rates"]["value"], estimate.noise_rates, atol=1e-5)
    assert headline(estimate, 0.9) in page
    assert all(notice.advice in page for notice in estimate.warnings)


def test_expected_pairs_add_up_to_the_wrong_labels(estimate):
    page = re.sub(r"\s+", " ", re.sub("<.*?>", "", render_report(estimate)))
    pairs = [int(count) for count in re.findall(r"given \d, should be \d: about (\d+)", page)]
    assert sum(pairs) == pytest.approx(estimate.noise_rate * 600, abs=3)
    assert f"Wrong labels {round(estimate.noise_rate * 600)} expected among 600" in page


def test_the_flagged_labels_are_listed_most_suspect_first(noisy, estimate):
    issues = find_label_issues(*noisy, estimate)
    page = render_report(estimate, issues, texts=[f"text {i}" for i in range(600)])
    (rows,) = numbers_of(page)["lists"]
    wrong = issues.probably_wrong[issues.indices]
    assert rows["index"] == [*issues.indices[wrong], *issues.indices[~wrong]]
    assert rows["doubtful"] == sorted(~wrong)
    np.testing.assert_array_equal(rows["given"], noisy[1][rows["index"]])
    np.testing.assert_array_equal(rows["suggested"][: wrong.sum()], issues.suggested[rows["index"]][: wrong.sum()])
    assert rows["previews"][0] == f"text {rows['index'][0]}"


def test_a_matrix_of_the_users_own_needs_no_estimate(noisy):
    issues = find_label_issues(*noisy, pair(3, 0.3))
    page = render_report(None, issues.spread(np.arange(600) * 3, 1800))
    assert f"About {issues.expected_count:,.0f} of 600 labels are wrong" in page
    assert "a given matrix" in page
    assert "at 95% confidence" not in page
    assert numbers_of(page)["matrix"]["low"] is None


def test_issues_write_their_own_page(noisy, estimate, tmp_path):
    issues = find_label_issues(*noisy, estimate)
    issues.to_report(tmp_path / "issues.html", title="Mine", level=0.9)
    write_report(tmp_path / "page.html", estimate, issues, title="Mine", level=0.9)
    assert (tmp_path / "issues.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_the_interval_on_the_page_is_that_of_the_estimate(noisy):
    rows = np.arange(0, 600, 4)
    clean = np.random.default_rng(0).integers(0, 3, 600)
    estimate = estimate_transition(*noisy, verified=(rows, clean[rows]))
    low, high = estimate.noise_rate_interval(0.9)
    assert f"(90% interval {percent(low)} to {percent(high)})" in render_report(estimate, level=0.9)
