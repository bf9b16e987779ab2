"""The power of probabilities that fits labels best, against a search by loops, and class shares."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualt.rows import as_posterior
from dualt.rows.scaling import apply_power, likeliest_power, scale_classes, share_distance, share_factors


def calibrated(seed: int, n_rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of three classes, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(3, 0.4), n_rows)
    return probs, (probs.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(0, 2)


def power_by_loops(probs: np.ndarray, labels: np.ndarray) -> float:
    """Return the power with the largest likelihood, by trying."""

    def loss(power: float) -> float:
        rows = [[(value + 0.01 / 3) ** power for value in row] for row in probs]
        return -sum(math.log(row[label] / sum(row)) for row, label in zip(rows, labels, strict=True))

    return min(np.geomspace(1 / 16, 4, 200), key=loss)


@settings(max_examples=6)
@given(st.integers(0, 1000), st.sampled_from([0.3, 0.5, 1.0, 2.0, 4.0]))
def test_the_power_makes_the_labels_most_probable(seed, power):
    probs, labels = calibrated(seed)
    distorted = apply_power(probs, power, tail=0)
    distorted[:3], labels[:3] = np.eye(3), [0, 1, 2]  # some predictions among probabilities
    found = as_posterior(distorted, labels, ["a", "b", "c"]).power
    assert found == pytest.approx(power_by_loops(distorted, labels), rel=0.05)


def test_predictions_and_many_rows():
    probs, labels = calibrated(0, 100_000)
    assert as_posterior(apply_power(probs, 0.5, tail=0), labels).power == pytest.approx(2, rel=0.15)
    assert as_posterior(np.eye(3)[labels], labels).power > 1


def test_predictions_without_probabilities_become_as_sure_as_they_are_often_right():
    """Three quarters of the labels are as predicted: that is what a 1 is worth."""
    predicted = np.repeat([0, 1, 2], 120)
    labels = np.where(np.arange(360) % 4 == 0, (predicted + np.arange(360) // 4 % 2 + 1) % 3, predicted)
    hard = np.eye(3)[predicted]
    assert apply_power(hard, likeliest_power(hard, labels)).max(axis=1) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_sum_to_one(dtype):
    """By hand: (.25, .75, 0) squared is (.1, .9, 0) of its sum."""
    rows = np.array([[0.25, 0.75, 0], [1, 0, 0]], dtype)
    np.testing.assert_allclose(apply_power(rows, 2.0, tail=0), [[0.1, 0.9, 0], [1, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(
        apply_power(rows[1:], 1.0, tail=0.03), [[1.01 / 1.03, 0.01 / 1.03, 0.01 / 1.03]], rtol=1e-6
    )
    assert apply_power(rows, 2.0).dtype == dtype
    np.testing.assert_array_equal(rows[1], [1, 0, 0])


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(3.0, 50.0))
def test_factors_undo_the_weights_of_classes(seed, weight):
    """What was multiplied is divided again: a classifier of the labels has the shares of the labels."""
    probs, labels = calibrated(seed, 4000)
    counts = np.bincount(labels, minlength=3)
    weights = np.array([1, weight, 1])
    factors = share_factors(scale_classes(probs, weights), labels)
    found = scale_classes(scale_classes(probs, weights), factors)
    assert share_distance(found, counts) < 1e-3
    # Chance apart, by which means and shares differ, it is what it was.
    assert np.abs(found - probs).mean() < 0.02


def test_near_shares_are_left_alone():
    probs, labels = calibrated(0, 4000)
    counts = np.bincount(labels, minlength=3)
    assert share_distance(probs, counts) == pytest.approx(
        sum(abs(probs[:, k].sum() - counts[k]) for k in range(3)) / 8000
    )
    assert share_factors(probs, labels).tolist() == [1, 1, 1]
    assert scale_classes(probs, np.ones(3)) is probs


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
    factors = share_factors(scale_classes(probs, np.array([1, 5, 1])), labels)
    np.testing.assert_allclose(factors / factors[0], [1, 0.2, 1], rtol=0.1)
