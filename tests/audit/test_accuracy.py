"""Accuracy from noisy labels against the known truth of simulations and hand-computed values."""

from dataclasses import replace

import numpy as np
import pytest

from dualt import noise
from dualt.audit import evaluation as e
from dualt.audit.design import draw_rows

T = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.25, 0.7]])


def simulate(rng, n=2000, skill=(0.9, 0.8)):
    true = rng.integers(0, 3, n)
    given = (rng.random(n)[:, None] > T.cumsum(axis=1)[true]).sum(axis=1)
    models = [np.where(rng.random(n) < s, true, rng.integers(0, 3, n)) for s in skill]
    return true, given, models


@pytest.mark.parametrize(
    ("n_classes", "noise_rate", "error", "m"),
    [(3, 0.05, 0.1, 50), (3, 0.1, 0.07, 20), (3, 0.03, 0.3, 100), (10, 0.1, 0.01, 50)],
)
def test_an_audited_interval_covers_and_is_no_wider_than_that_of_counting(n_classes, noise_rate, error, m):
    """The interval was too narrow where few rows show how the label and the truth differ, and wide for good models."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, n_classes, 5000)
    shift = rng.integers(1, n_classes, (2, 5000))
    given = np.where(rng.random(5000) < noise_rate, (true + shift[0]) % n_classes, true)
    predicted = np.where(rng.random(5000) < error, (true + shift[1]) % n_classes, true)
    accuracy, held, widths = (predicted == true).mean(), [], []
    for _ in range(200):
        rows = rng.choice(5000, m, replace=False)
        found = e.accuracy_by_audit(predicted, given, rows, true[rows])
        held.append(found.low <= accuracy <= found.high)
        share, spread = (predicted == true)[rows].mean(), 1.96**2 * (1 - m / 5000) / m
        wilson = 2 * np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
        widths.append((found.high - found.low) / wilson)
    assert np.mean(held) >= 0.93
    assert max(widths) <= 1 + 1e-4


@pytest.mark.parametrize(("copied", "m"), [(0.3, 200), (0, 60)])
def test_intervals_hold_for_two_models_and_one_that_repeats_the_labels_errors(copied, m):
    rng = np.random.default_rng(5)
    true, given, (first, second) = simulate(rng, 3000)
    first = np.where(rng.random(3000) < copied, given, first)
    accuracy, lead = (first == true).mean(), (first == true).mean() - (second == true).mean()
    held = []
    for seed in range(100):
        rows = draw_rows(np.arange(3000), m, seed)
        one, both = (e.accuracy_by_audit(first, given, rows, true[rows], rival) for rival in (None, second))
        held.append((one.low <= accuracy <= one.high, both.low <= lead <= both.high))
    assert (np.mean(held, axis=0) > 0.91).all()


def test_two_models_that_always_agree_need_no_check():
    true, given, (first, _) = simulate(np.random.default_rng(6), 300)
    rows = np.arange(50)
    found = e.accuracy_by_audit(first, given, rows, true[rows], rival=first)
    assert (found.estimate, found.low, found.high) == (0, 0, 0)
    other = np.where(np.arange(300) < 290, first, (first + 1) % 3)  # they differ where nobody has looked
    found = e.accuracy_by_audit(first, given, rows, true[rows], rival=other)
    assert (found.low, found.high) == pytest.approx((-1 / 30, 1 / 30))


@pytest.mark.parametrize(
    "matrix",
    [
        noise.symmetric(2, 0.1),
        noise.symmetric(10, 0.4),
        noise.pair(3, 0.3),
        np.array([[1, 0], [0.2, 0.8]]),
        np.full((3, 3), 1 / 3),
    ],
)
@pytest.mark.parametrize("n_samples", [20, 500])
def test_the_bounds_allow_for_the_sampling_of_the_noise(matrix, n_samples):
    """With the true matrix, the bounds of a perfect model excluded 1 in almost half of all draws."""
    rng = np.random.default_rng(7)
    held = []
    for _ in range(120):
        true = rng.integers(0, len(matrix), n_samples)
        given = noise.corrupt(true, matrix, rng)
        highest = e.largest_rate(matrix, given)
        held.append((given != true).mean() <= highest)
    assert np.mean(held) > 0.96


def test_the_bound_of_the_rate_is_bernsteins():
    """For 10 % symmetric noise 1[wrong] − .1 has variance .09 and is at most .9."""
    step, log_odds = 0.9 * np.log(40) / 300, np.log(40)
    expected = 0.1 + step + np.sqrt(step**2 + 2 * 0.09 * log_odds / 100)
    assert e.largest_rate(noise.symmetric(2, 0.1), np.arange(100) % 2) == pytest.approx(expected)


def test_the_error_of_a_lead_is_that_of_counting_where_labels_say_nothing():
    predicted, rival, given, rows = np.zeros(2000, int), np.ones(2000, int), np.zeros(2000, int), np.arange(40)
    true = (rows % 4 == 0).astype(int)
    found = e.accuracy_by_audit(predicted, given, rows, true, rival=rival)
    assert found.estimate == pytest.approx(0.5)
    spread = 1.959964**2 * 0.98 / 40
    centre, half = 0.75 + spread / 2, np.sqrt(spread * 0.75 * 0.25 + spread**2 / 4)
    shares = (centre - half) / (1 + spread), (centre + half) / (1 + spread)
    assert (found.low, found.high) == pytest.approx([2 * share - 1 for share in shares], abs=1e-6)


def test_a_lead_that_may_be_zero_is_none():
    lead = e.NoisyAccuracy(10, 0, 0.95, 0.1, (0.0, 0.2), None)
    assert replace(lead, difference=lead).better is None
    assert replace(lead, difference=replace(lead, bounds=(0.01, 0.2))).better == "first"
    assert replace(lead, difference=replace(lead, bounds=(-0.2, -0.01))).better == "second"


def test_a_wrong_label_can_hide_a_point_of_each_model():
    given, matrix = np.arange(4000) % 2, noise.symmetric(2, 0.05)
    first, second = np.zeros(4000, int), np.ones(4000, int)
    rate = e.largest_rate(matrix, given)
    found = e.noisy_accuracy(first, given, matrix, against=second)
    assert found.bounds == pytest.approx((0.5 - rate, 0.5 + rate))
    assert found.difference.bounds == pytest.approx((-2 * rate, 2 * rate))
    second[:3900] = 0  # only rows on which they differ count
    assert e.noisy_accuracy(first, given, matrix, against=second).difference.bounds == (-0.025, 0.025)
