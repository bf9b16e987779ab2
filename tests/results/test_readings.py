"""How a noise rate is told: as one, as a range, or not at all."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualt
from dualt.cli.terminal import matrix_table
from dualt.crossfit import out_of_fold_probabilities
from dualt.report import render_report
from dualt.results.readings import Readings, basis, between, finding, rate_range


def hard_and_easy(noise_of_sure: float, seed: int = 0) -> dualt.TransitionEstimate:
    """Estimate from calibrated probabilities, half of them sure and half not, where a share of the sure is wrong."""
    rng = np.random.default_rng(seed)
    n_rows = 6000
    clean = rng.integers(0, 3, n_rows)
    posterior = np.full((n_rows, 3), 0.01)
    posterior[np.arange(n_rows), clean] = 0.98
    posterior[::2] = rng.dirichlet(np.ones(3), n_rows // 2)
    clean = (posterior.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(0, 2)
    given = np.where(rng.random(n_rows) < noise_of_sure, (clean + rng.integers(1, 3, n_rows)) % 3, clean)
    mixing = np.full((3, 3), noise_of_sure / 2) + (1 - 1.5 * noise_of_sure) * np.eye(3)
    return dualt.estimate_transition(posterior @ mixing, given)


def test_where_the_sure_show_no_errors_probabilities_cannot_tell_and_an_audit_is_asked_for():
    """As with labels that a rule gave: the classifier repeats its errors, and is sure of them."""
    estimate = hard_and_easy(0.0)
    assert estimate.noise_rate_range[0] == 0
    assert finding(estimate).startswith("At most ")
    assert finding(estimate).endswith(" labels show as wrong")
    page = " ".join(render_report(estimate).split())
    for told in (basis(estimate), page):
        assert "probabilities cannot tell more" in told
        assert "errors that the classifier repeats do not show" in told
        assert "dualt audit" in told


def test_where_the_sure_show_errors_the_range_is_claimed():
    estimate = hard_and_easy(0.3)
    assert estimate.noise_rate_range[0] > 0.1
    assert "cannot tell" not in basis(estimate) + render_report(estimate)
    assert "show as wrong" not in finding(estimate)


def few_clean_examples(seed: int) -> dualt.TransitionEstimate:
    """Estimate from out-of-fold probabilities of the clean iris, whose last two classes overlap."""
    x, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return dualt.estimate_transition(out_of_fold_probabilities(model, x, y, random_state=seed), y)


@pytest.mark.parametrize("seed", range(3))
def test_where_all_labels_may_be_right_no_rate_is_headlined(seed):
    estimate = few_clean_examples(seed)
    assert estimate.noise_rate_range[0] == 0
    assert finding(estimate).startswith("At most ")
    assert "interval" not in basis(estimate)


def test_where_classes_may_overlap_the_range_starts_at_what_the_surest_few_show():
    """By hand: 12 of 40 are wrong, with a deviation of √((.3·.7 + 1/40)/40) = .0766."""
    many = np.array([10_000, 10_000])
    noisy = Readings(np.full(2, 0.4), np.full(2, 0.5), many, many, seldom_sure=False, trust=1.0)
    prior = np.array([0.5, 0.5])
    for surest, low in (((12, 40), 0.3 - 1.96 * 0.0766), ((1, 40), 0), ((30, 40), noisy.range(prior, 0.95)[0])):
        overlapping = replace(noisy, surest=surest)
        assert overlapping.range(prior, 0.95) == pytest.approx((low, noisy.range(prior, 0.95)[1]), abs=1e-3)
        assert not overlapping.class_ranges(0.95)[0].any()
        assert Readings.from_dict(overlapping.to_dict()).surest == surest


@pytest.mark.parametrize("noise", ["clean", "sym-0.2", "pair-0.3"])
def test_a_classifier_that_is_far_too_sure_claims_a_limit(noise):
    """Naive Bayes contradicts a sixth of the clean labels of digits, and is sure of it."""
    X, clean = load_digits(return_X_y=True)
    given = clean if noise == "clean" else dualt.noise.corrupt(clean, dualt.noise.from_name(noise, 10), random_state=0)
    probs = cross_val_predict(GaussianNB(var_smoothing=1e-3), X, given, method="predict_proba")
    estimate = dualt.estimate_transition(probs, given, out_of_fold=True)
    assert "far-too-sure" in [notice.code for notice in estimate.warnings]
    assert finding(estimate).startswith("At most ")
    assert estimate.noise_rate_range[1] >= (given != clean).mean()


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_what_is_said_around_one_rate_is_not_narrower_than_its_range(level):
    """Where sampling outweighs the readings one rate is told, with both around it."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 600)
    given = dualt.noise.corrupt(clean, dualt.noise.pair(3, 0.3), random_state=1)
    probs = (0.01 + 0.97 * np.eye(3))[clean] @ dualt.noise.pair(3, 0.3)
    estimate = dualt.estimate_transition(probs, given)
    assert finding(estimate) == f"{estimate.noise_rate:.1%} of the labels are wrong"
    low, high = rate_range(estimate, level)
    assert basis(estimate, level) == f"{level:.0%} interval {low:.1%} to {high:.1%}"
    within = estimate.noise_rate_interval(level)
    assert low <= within[0] + 0.01
    assert high >= within[1] - 0.01


def test_ranges_of_classes_are_shown_on_the_page_and_by_the_command():
    estimate = hard_and_easy(0.3)
    low, high = estimate.noise_rates_range
    rates = json.loads(re.search(r'"rates":(\{.*?\})', render_report(estimate))[1])
    assert rates["low"] == pytest.approx(low, abs=1e-4)
    assert rates["high"] == pytest.approx(high, abs=1e-4)
    shown = Console(file=io.StringIO(), width=120)
    shown.print(matrix_table(estimate, 0.95))
    assert f"{low[0]:.1%} – {high[0]:.1%}" in shown.file.getvalue()


@pytest.mark.parametrize("seed", range(3))
def test_the_range_holds_the_rate_of_both(seed):
    for rate in (0.0, 0.3):
        low, high = hard_and_easy(rate, seed).noise_rate_range
        assert low <= rate <= high


def at_chance(estimator: str | None = None, **options) -> dualt.TransitionEstimate:
    """Estimate from predictions of three classes, of which all labels are one."""
    probs = np.eye(3)[np.arange(20) % 3] * 0.9 + 0.1 / 3
    return dualt.estimate_transition(probs, np.full(20, 2), estimator, **options)


@pytest.mark.parametrize("estimator", [None, "spade", "dual-t"])
def test_at_chance_no_rate_is_claimed(estimator):
    estimate = at_chance(estimator)
    for told in (estimate,):
        assert "most frequent" in told.undecided
        assert finding(told) == "No noise rate can be claimed"
        assert basis(told) == told.undecided
        assert "No noise rate can be claimed." in render_report(told)


def test_what_does_not_rest_on_the_classifier_is_claimed_at_chance():
    """The true labels of the oracle, and those that were verified."""
    assert at_chance("oracle", clean_labels=np.full(20, 2)).undecided is None
    assert at_chance(verified=(np.arange(20), np.full(20, 2))).undecided is None


def test_a_useful_classifier_of_a_rare_class_is_not_at_chance():
    """It agrees with the labels hardly more often than the frequent class alone would, but tells the rare one."""
    given = np.repeat([0, 1], [980, 20])
    probs = np.where(given[:, None] == [0, 1], 0.97, 0.03)
    probs[:15] = probs[:15, ::-1]
    assert (probs.argmax(axis=1) == given).mean() < 0.99
    assert dualt.estimate_transition(probs, given).undecided is None


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 0.32004, "at most 32 in 100"),
        (0.29, 0.57, "between 29 and 57 in 100"),
        (0.0, 0.0001, "at most 1 in 100"),
        (0.2996, 0.3006, "between 30 and 31 in 100"),
    ],
)
def test_counts_of_a_hundred_agree_with_the_per_cents_beside_them(low, high, words):
    assert between(low, high) == words


@pytest.mark.parametrize("level", [0.5, 0.999])
def test_a_range_is_told_at_the_level_that_is_asked_for(level):
    """In the sentence, on the page and for machines alike."""
    estimate = few_clean_examples(0)
    words = between(*estimate.to_dict(level)["noise_rate_range"])
    assert words != between(*estimate.noise_rate_range)
    for told in (finding(estimate, level), render_report(estimate, level=level)):
        assert words in told.lower()
