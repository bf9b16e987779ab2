import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import noise
from dualt.errors import InputError, LabelsError, UnknownNameError


def test_symmetric_and_pair_by_hand():
    assert noise.symmetric(4, 0.3).tolist() == [[0.7 if i == j else 0.3 / 3 for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(noise.pair(3, 0.45), [[0.55, 0.45, 0], [0, 0.55, 0.45], [0.45, 0, 0.55]])


@given(st.integers(2, 20), st.floats(0, 1), st.integers(0, 1000))
def test_every_structure_is_row_stochastic(n_classes, rate, seed):
    for matrix in (
        noise.symmetric(n_classes, rate),
        noise.pair(n_classes, rate),
        noise.random_diagonal_dominant(n_classes, rate, seed),
    ):
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=1), 1)


@given(st.integers(2, 20), st.floats(0, 1), st.integers(0, 1000))
def test_random_matrices_are_diagonally_dominant(n_classes, rate, seed):
    matrix = noise.random_diagonal_dominant(n_classes, rate, seed)
    off = matrix - np.diag(np.diagonal(matrix))
    assert (np.diagonal(matrix) > off.max(axis=1)).all()


def test_asymmetric_by_number_and_by_name():
    by_number = noise.asymmetric({0: {2: 0.2, 1: 0.1}}, n_classes=3)
    np.testing.assert_allclose(by_number, [[0.7, 0.1, 0.2], [0, 1, 0], [0, 0, 1]])
    by_name = noise.asymmetric({"dog": {"cat": 0.4}}, class_names=["cat", "dog"])
    np.testing.assert_allclose(by_name, [[1, 0], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("flips", "message"),
    [
        ({"cow": {"cat": 0.1}}, "'cow'"),
        ({"cat": {"cat": 0.1}}, "another class"),
        ({"cat": {"dog": 1.5}}, r"\[0, 1\]"),
    ],
)
def test_asymmetric_refuses_bad_flips(flips, message):
    with pytest.raises((InputError, LabelsError), match=message):
        noise.asymmetric(flips, class_names=["cat", "dog"])


def test_asymmetric_refuses_rates_above_one():
    with pytest.raises(InputError, match=r"sum to at most 1, got 1\.1"):
        noise.asymmetric({0: {1: 0.6, 2: 0.5}}, n_classes=3)


def test_names_are_shares_or_per_cent():
    for name in ("pair-0.45", "pair-45", "pair-45%", "PAIR-45"):
        np.testing.assert_allclose(noise.from_name(name, 5), noise.pair(5, 0.45))
    np.testing.assert_allclose(noise.from_name("clean", 3), np.eye(3))


def test_a_rate_that_could_be_percent_or_not_is_refused():
    with pytest.raises(InputError, match=r"'sym-1\.5', which could be either.*'sym-1\.5%' or 'sym-0\.015'"):
        noise.from_name("sym-1.5", 3)
    np.testing.assert_allclose(noise.from_name("sym-1.5%", 3), noise.symmetric(3, 0.015))
    np.testing.assert_allclose(noise.from_name("sym-2", 3), noise.symmetric(3, 0.02))
    np.testing.assert_allclose(noise.from_name("sym-1", 3), noise.symmetric(3, 1))


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'pair'"):
        noise.from_name("pairs-0.2", 3)
    with pytest.raises(InputError, match="got 'sym'"):
        noise.from_name("sym", 3)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rates_outside_the_unit_interval_are_refused(rate):
    with pytest.raises(InputError, match="rate"):
        noise.symmetric(3, rate)


def test_one_class_is_refused():
    with pytest.raises(InputError, match="two classes"):
        noise.pair(1, 0.1)


def test_whole_floats_are_class_numbers():
    expected = noise.asymmetric({1: {2: 0.4}}, class_names=[1, 2])
    np.testing.assert_array_equal(noise.asymmetric({1.0: {2: 0.4}}, class_names=[1.0, 2.0]), expected)


def test_large_rates_are_capped_as_documented():
    def mean_rate(rate):
        matrices = [noise.random_diagonal_dominant(5, rate, seed) for seed in range(200)]
        return np.mean([1 - np.diagonal(matrix) for matrix in matrices])

    # The mean of 1,000 rates, uniform between 0.15 and 0.45: five standard deviations.
    assert abs(mean_rate(0.3) - 0.3) < 5 * 0.3 / np.sqrt(12 * 1_000)
    assert mean_rate(0.6) < 0.57
