"""Matrices of known structure, and labels corrupted by them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import noise
from dualt.errors import InputError, LabelsError, UnknownNameError
from tests.strategies import transitions


@given(st.integers(2, 20), st.floats(0, 1), st.integers(0, 1000))
def test_rows_sum_to_one_and_random_ones_are_diagonally_dominant(n_classes, rate, seed):
    random = noise.random_diagonal_dominant(n_classes, rate, seed)
    for matrix in (noise.symmetric(n_classes, rate), noise.pair(n_classes, rate), random):
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=1), 1)
    off_diagonal = random - np.diag(np.diagonal(random))
    assert (np.diagonal(random) > off_diagonal.max(axis=1)).all()


def test_asymmetric_by_number_and_by_name():
    by_number = noise.asymmetric({0: {2: 0.2, 1: 0.1}}, class_names=range(3))
    np.testing.assert_allclose(by_number, [[0.7, 0.1, 0.2], [0, 1, 0], [0, 0, 1]])
    by_name = noise.asymmetric({"dog": {"cat": 0.4}}, class_names=["cat", "dog"])
    np.testing.assert_allclose(by_name, [[1, 0], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("flips", "message"),
    [
        ({"bee": {"cat": 0.1}}, "'bee'"),
        ({"cat": {"cat": 0.1}}, "another class"),
        ({"cat": {"dog": 1.5}}, r"\[0, 1\]"),
        ({"cat": {"dog": 0.6, "cow": 0.5}}, r"sum to at most 1, got 1\.1"),
    ],
)
def test_asymmetric_refuses_bad_flips(flips, message):
    with pytest.raises((InputError, LabelsError), match=message):
        noise.asymmetric(flips, class_names=["cat", "dog", "cow"])


def test_names_are_shares_or_per_cent():
    for name in ("pair-0.45", "pair-45", "pair-45%", "PAIR-45"):
        np.testing.assert_allclose(noise.from_name(name, 5), noise.pair(5, 0.45))
    for name, rate in {"sym-1": 1, "sym-1%": 0.01, "sym-1.5": 0.015, "sym-2": 0.02, "clean": 0}.items():
        np.testing.assert_allclose(noise.from_name(name, 3), noise.symmetric(3, rate))


def test_unknown_names_suggest_the_nearest():
    for name, said in {"pairs-0.2": "Did you mean 'pair'", "clean-0.2": r"'clean-0.2'\. Did you mean 'clean'"}.items():
        with pytest.raises(UnknownNameError, match=said):
            noise.from_name(name, 3)
    with pytest.raises(InputError, match="got 'sym'"):
        noise.from_name("sym", 3)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rates_outside_the_unit_interval_are_refused(rate):
    with pytest.raises(InputError, match="rate"):
        noise.symmetric(3, rate)
    with pytest.raises(InputError, match=r"n_classes.*at least 2"):
        noise.pair(1, 0.1)


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


def test_truth_values_follow_the_names_of_the_rows():
    to_true = [[1, 0], [1, 0]]  # every label becomes the first class
    for names in (["True", "False"], [True, False], [1, 0]):
        noisy = noise.corrupt(np.array([True, False]), to_true, class_names=names)
        assert noisy.dtype == bool
        assert noisy.tolist() == [True, True]


def test_too_few_labels_for_the_matrix_are_refused():
    with pytest.raises(LabelsError, match=r"4 different labels.*got 2 \('a', 'b'\)"):
        noise.corrupt(["a", "b"], np.eye(4))


def test_noise_is_independent_of_labels_and_noise_of_the_same_seed():
    """The numbers that drew the labels, or the noise before, must not be those that decide which labels change."""
    symmetric = noise.symmetric(2, 0.2)
    labels = np.random.default_rng(0).choice(2, 10_000, p=[0.5, 0.5])
    once = noise.corrupt(labels, symmetric)
    assert (once != labels).mean() == pytest.approx(0.2, abs=0.02)
    assert (noise.corrupt(once, symmetric) != labels).mean() == pytest.approx(0.32, abs=0.02)
