import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import noise
from dualt.errors import LabelsError, TransitionError
from tests.strategies import transitions


def test_frequencies_follow_the_rows():
    transition = noise.random_diagonal_dominant(4, 0.4, 3)
    clean = np.repeat(np.arange(4), 50_000)
    noisy = noise.corrupt(clean, transition, random_state=1)
    for label in range(4):
        shares = np.bincount(noisy[clean == label], minlength=4) / 50_000
        # Five standard deviations of a share of 50,000 draws.
        np.testing.assert_allclose(shares, transition[label], atol=5 * np.sqrt(0.25 / 50_000))


def test_same_seed_same_noise_and_the_input_is_kept():
    clean = np.arange(1000) % 3
    before = clean.copy()
    first = noise.corrupt(clean, noise.symmetric(3, 0.5), random_state=7)
    np.testing.assert_array_equal(first, noise.corrupt(clean, noise.symmetric(3, 0.5), random_state=7))
    assert (first != noise.corrupt(clean, noise.symmetric(3, 0.5), random_state=8)).any()
    np.testing.assert_array_equal(clean, before)


@given(transitions(), st.integers(0, 10_000), st.integers(0, 60))
def test_exact_counts_are_within_one_of_the_ideal(transition, seed, per_class):
    n_classes = len(transition)
    clean = np.random.default_rng(seed).permutation(np.repeat(np.arange(n_classes), per_class + 1))
    noisy = noise.corrupt(clean, transition, random_state=seed, exact=True)
    counts = np.zeros((n_classes, n_classes))
    for true, given_label in zip(clean, noisy, strict=True):
        counts[true, given_label] += 1
    assert np.abs(counts - transition * (per_class + 1)).max() < 1 + 1e-6


def test_exact_noise_flips_where_flooring_every_cell_would_not():
    clean = np.repeat(np.arange(100), 50)
    noisy = noise.corrupt(clean, noise.symmetric(100, 0.5), random_state=0, exact=True)
    assert np.count_nonzero(noisy != clean) == 2500
    # Equal remainders are dealt at random, not to the first classes.
    assert np.bincount(noisy, minlength=100)[:25].sum() < 0.4 * len(clean)


@pytest.mark.parametrize("exact", [False, True])
def test_kinds_of_labels_come_back_in_kind(exact):
    swap = [[0, 1], [1, 0]]
    assert noise.corrupt(["a", "b", "a"], swap, exact=exact).tolist() == ["b", "a", "b"]
    assert noise.corrupt([0, 1], swap, exact=exact).tolist() == [1, 0]
    assert noise.corrupt(np.array([0, 1], np.int8), swap, exact=exact).dtype == np.int8
    assert noise.corrupt([True, False], swap, exact=exact).tolist() == [False, True]
    assert noise.corrupt([[1, 0], [0, 1]], swap, exact=exact).tolist() == [[0, 1], [1, 0]]
    assert noise.corrupt([5, 7], swap, exact=exact, class_names=[5, 7]).tolist() == [7, 5]
    assert noise.corrupt(["b", "a"], [[1, 0], [1, 0]], class_names=["b", "a"]).tolist() == ["b", "b"]


def test_bad_input_is_refused():
    with pytest.raises(TransitionError, match="pass the transpose"):
        noise.corrupt([0, 1], [[0.5, 0], [0.5, 1]])
    with pytest.raises(LabelsError, match="from 0 to 1, got 2 at row 1"):
        noise.corrupt([0, 2], np.eye(2))


def test_truth_values_follow_the_names_of_the_rows():
    to_true = [[1, 0], [1, 0]]  # every label becomes the first class
    for names in (["True", "False"], [True, False], [1, 0]):
        noisy = noise.corrupt(np.array([True, False]), to_true, class_names=names)
        assert noisy.dtype == bool
        assert noisy.tolist() == [True, True]


def test_too_few_labels_are_counted_by_the_rows_of_the_matrix():
    with pytest.raises(LabelsError, match=r"4 different labels, one per row of the matrix, got 2 \('a', 'b'\)"):
        noise.corrupt(["a", "b"], np.eye(4))


def test_noise_is_independent_of_labels_and_noise_of_the_same_seed():
    """The numbers that drew the labels, or the noise before, must not be those that decide which labels change."""
    symmetric = noise.symmetric(2, 0.2)
    labels = np.random.default_rng(0).choice(2, 10_000, p=[0.5, 0.5])
    once = noise.corrupt(labels, symmetric)
    assert (once != labels).mean() == pytest.approx(0.2, abs=0.02)
    assert (noise.corrupt(once, symmetric) != labels).mean() == pytest.approx(0.32, abs=0.02)
