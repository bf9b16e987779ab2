import numpy as np
import pytest

from dualt.errors import InputError
from dualt.estimators import estimate_transition
from dualt.issues import find_label_issues
from dualt.noise import corrupt, pair
from dualt.report import listed, render_report, report_data, text_previews


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 600)
    probs = np.eye(3)[clean] @ pair(3, 0.3) * 0.9 + rng.uniform(0, 0.1, (600, 3))
    return probs / probs.sum(axis=1, keepdims=True), corrupt(clean, pair(3, 0.3), random_state=0)


def test_a_report_repeats_what_the_estimate_says(noisy):
    estimate = estimate_transition(*noisy, method="spade", class_names=["a", "b", "c"])
    data = report_data(estimate, level=0.9)
    low, high = estimate.confidence_interval(0.9)
    np.testing.assert_array_equal(data.transition, estimate.transition)
    np.testing.assert_array_equal(data.transition_interval, (low, high))
    np.testing.assert_array_equal(data.noise_rates_interval, estimate.noise_rates_interval(0.9))
    assert data.noise_rate_interval == estimate.noise_rate_interval(0.9)
    assert data.class_names == ("a", "b", "c")
    assert [remark.message for remark in data.remarks] == [notice.message for notice in estimate.warnings]
    assert data.lists == ()


def test_expected_pairs_add_up_to_the_labels_and_to_the_wrong_ones(noisy):
    estimate = estimate_transition(*noisy, method="spade")
    pairs = report_data(estimate).pair_counts
    np.testing.assert_allclose(pairs.sum(axis=1), np.bincount(noisy[1]), rtol=0.05)
    wrong = pairs.sum() - np.trace(pairs)
    assert wrong == pytest.approx(report_data(estimate).expected_wrong)


def test_estimates_stand_side_by_side(noisy):
    estimates = [estimate_transition(*noisy, method=method) for method in ("dual-t", "spade", "confident-joint")]
    data = report_data(estimates[0], comparison=estimates)
    assert [method.name for method in data.methods] == ["dual-t", "spade", "confident-joint"]
    page = render_report(data)
    for estimate in estimates:
        assert f"{estimate.noise_rate:.1%}" in page


def test_the_flagged_labels_are_listed_most_suspect_first(noisy):
    estimate = estimate_transition(*noisy, method="spade")
    issues = find_label_issues(*noisy, estimate)
    texts = text_previews([f"text {i}" for i in range(600)], listed(issues), n_samples=600)
    data = report_data(estimate, issues, previews=texts)
    (rows,) = data.lists
    assert issues.is_issue[rows.index].all()
    assert len(rows.index) == issues.is_issue.sum()
    assert (np.diff(rows.probability_right) >= 0).all()
    np.testing.assert_array_equal(rows.given, noisy[1][rows.index])
    np.testing.assert_array_equal(rows.suggested, issues.suggested[rows.index])
    assert data.expected_wrong == issues.expected_count
    assert f"text {rows.index[0]}" in render_report(data)


def test_a_limit_is_told(noisy):
    issues = find_label_issues(*noisy, "spade", top=20)
    data = report_data(issues.transition_estimate, issues, limit=5)
    assert data.lists[0].index.tolist() == issues.ranking[:5].tolist()
    assert "The 5 most suspect of 20 are listed." in render_report(data)


def test_a_matrix_of_the_users_own_needs_no_estimate(noisy):
    issues = find_label_issues(*noisy, pair(3, 0.3))
    data = report_data(None, issues)
    assert data.noise_rate == pytest.approx(issues.expected_count / 600)
    assert data.noise_rate_interval is None
    np.testing.assert_array_equal(data.label_counts, np.bincount(noisy[1]))
    assert "a given matrix" in render_report(data)


def test_nothing_to_report_is_refused():
    with pytest.raises(InputError, match="got neither"):
        report_data(None)
