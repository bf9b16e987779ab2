"""The power of probabilities that fits labels best, against a search by loops and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualt.rows.confidence import (
    calibration,
    distance_of_shares,
    power_to_read,
    raised,
    scaled,
    share_factors,
    too_sure,
)


def calibrated(seed: int, n_rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of three classes, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(3, 0.4), n_rows)
    return probs, (probs.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(0, 2)


def fitting_power(probs: np.ndarray, labels: np.ndarray) -> float:
    """Return the power of the largest likelihood, but none that says more than agrees: by trying."""

    def of(power: float) -> tuple[float, float]:
        rows = [[value**power for value in row] for row in np.maximum(probs, 1e-6)]
        loss = -sum(math.log(row[label] / sum(row)) for row, label in zip(rows, labels, strict=True))
        return loss, sum(max(row) / sum(row) for row in rows) / len(rows)

    powers = np.geomspace(1 / 16, 4, 200)
    agreement = np.mean(probs.argmax(axis=1) == labels)
    found = {power: of(power) for power in powers}
    honest = [power for power in powers if power <= 1 or found[power][1] <= agreement]
    return min(honest, key=lambda power: found[power][0])


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.3, 0.5, 0.8, 2.0, 4.0]))
def test_the_power_fits_best_or_chance_explains_the_difference(seed, power):
    probs, labels = calibrated(seed)
    distorted = raised(probs, power)
    found = calibration(distorted, labels)
    assert found == pytest.approx(fitting_power(distorted, labels), rel=0.05) or found == 1
    assert found != 1 or power == 0.8


def test_calibrated_probabilities_are_left_as_they_are():
    powers = [calibration(*calibrated(seed)) for seed in range(100)]
    assert sum(power != 1 for power in powers) <= 2  # by chance, three in a thousand


def test_where_labels_are_taken_for_one_other_likelihood_alone_would_sharpen_too_far():
    """Half of the labels of each class are the next one's: the classifier spreads a third over all classes."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 6, 3_000)
    labels = np.where(rng.random(3_000) < 0.45, (clean + 1) % 6, clean)
    probs = 0.67 * (0.55 * np.eye(6)[clean] + 0.45 * np.eye(6)[(clean + 1) % 6]) + 0.33 / 6
    found = calibration(probs, labels)
    assert found == pytest.approx(fitting_power(probs, labels), rel=0.05)
    assert raised(probs, found).max(axis=1).mean() == pytest.approx(np.mean(clean == labels), abs=0.01)


def test_large_data_are_judged_by_some_of_their_rows():
    probs, labels = calibrated(0, 100_000)
    assert calibration(raised(probs, 0.5), labels) == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_raised_rows_are_powers_that_sum_to_one(dtype):
    """By hand: (.25, .75, 0) squared is (.1, .9, 0) of its sum."""
    rows = np.array([[0.25, 0.75, 0], [1, 0, 0]], dtype)
    np.testing.assert_allclose(raised(rows, 2.0), [[0.1, 0.9, 0], [1, 0, 0]], rtol=1e-6)
    assert raised(rows, 2.0).dtype == dtype
    assert raised(rows, 1.0) is rows


@pytest.mark.parametrize(("fitting", "power"), [(3.0, 2.0), (1.5, 1), (1.0, 1), (0.5, 1), (0.2, 0.4)])
def test_only_what_goes_beyond_a_limit_is_taken_back(fitting, power):
    assert power_to_read(fitting) == pytest.approx(power)


@pytest.mark.parametrize(("fitting", "share"), [(2.0, 0), (1.0, 0), (0.9, 0), (0.85, 0.5), (0.8, 1), (0.3, 1)])
def test_a_classifier_is_too_sure_below_four_fifths(fitting, share):
    assert too_sure(fitting) == pytest.approx(share)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(3.0, 50.0))
def test_factors_undo_the_weights_of_classes(seed, weight):
    """What was multiplied is divided again: a classifier of the labels has the shares of the labels."""
    probs, labels = calibrated(seed, 4000)
    counts = np.bincount(labels, minlength=3)
    weights = np.array([1, weight, 1])
    factors = share_factors(scaled(probs, weights), labels)
    found = scaled(scaled(probs, weights), factors)
    assert distance_of_shares(found, counts) < 1e-3
    # Chance apart, by which means and shares differ, it is what it was.
    assert np.abs(found - probs).mean() < 0.02


def test_near_shares_are_left_alone():
    probs, labels = calibrated(0, 4000)
    counts = np.bincount(labels, minlength=3)
    assert distance_of_shares(probs, counts) == pytest.approx(
        sum(abs(probs[:, k].sum() - counts[k]) for k in range(3)) / 8000
    )
    assert share_factors(probs, labels).tolist() == [1, 1, 1]
    assert scaled(probs, np.ones(3)) is probs


def test_predictions_without_weights_to_take_back_are_left_alone():
    """Of 0 and 1, and of a class that has no probability at all, no factors make other shares."""
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 2000, p=[0.7, 0.2, 0.1])
    hard = np.eye(3)[np.where(rng.random(2000) < 0.7, 1, labels)]
    hard[0] = 0.2, 0.5, 0.3
    assert share_factors(hard, labels).tolist() == [1, 1, 1]
    never = np.tile([0.9, 0.1, 0.0], (2000, 1))
    assert share_factors(never, labels).tolist() == [1, 1, 1]


def test_many_rows_tell_the_factors_of_a_sample():
    probs, labels = calibrated(0, 50_000)
    factors = share_factors(scaled(probs, np.array([1, 5, 1])), labels)
    np.testing.assert_allclose(factors / factors[0], [1, 0.2, 1], rtol=0.1)
