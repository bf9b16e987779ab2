import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

import dualt
from dualt.errors import DualtWarning, InputError, ProbabilitiesError, TransitionError
from dualt.transition import early_posterior, match_transition
from tests.strategies import transitions


@given(transitions(), st.integers(0, 1000))
def test_to_noisy_is_a_sum_over_clean_classes(transition, seed):
    clean = np.random.default_rng(seed).dirichlet(np.ones(len(transition)), 3)
    loop = [[sum(row[i] * transition[i, j] for i in range(len(row))) for j in range(len(row))] for row in clean]
    np.testing.assert_allclose(dualt.to_noisy(clean, transition), loop, atol=1e-12)


@given(st.integers(2, 6), st.floats(0, 0.4), st.integers(0, 1000))
def test_clean_posterior_undoes_to_noisy(n_classes, rate, seed):
    transition = dualt.noise.random_diagonal_dominant(n_classes, rate, seed)
    assume(np.linalg.cond(transition) < 100)  # of a singular matrix many posteriors are undone
    clean = np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.5), 20)
    found = dualt.clean_posterior(dualt.to_noisy(clean, transition), transition)
    np.testing.assert_allclose(found, clean, atol=2e-3)


@given(transitions(), st.integers(0, 1000), st.sampled_from([np.float32, np.float64]))
def test_clean_posterior_is_a_distribution_for_any_matrix(transition, seed, dtype):
    probs = np.random.default_rng(seed).dirichlet(np.full(len(transition), 0.2), 15).astype(dtype)
    before = probs.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DualtWarning)
        found = dualt.clean_posterior(probs, transition)
    assert found.dtype == dtype
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(probs, before)


def divergence(probs, posterior, transition):
    """Return KL(p ‖ q @ T) of every row."""
    noisy = np.maximum(posterior @ transition, 1e-300)
    return (probs * np.log(np.where(probs > 0, probs, 1) / noisy)).sum(axis=1)


def best_by_convex_solver(target, transition):
    """Minimise Σ q − Σ p log(q @ T), whose minimum over q ≥ 0 has the sum of p."""

    def value_and_slope(clean):
        noisy = np.maximum(clean @ transition, 1e-300)
        return clean.sum() - target @ np.log(noisy), 1 - transition @ (target / noisy)

    start, bounds = np.full(len(target), 1 / len(target)), [(0, None)] * len(target)
    options = {"maxiter": 10_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(value_and_slope, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    return found / found.sum()


def test_threads_do_not_change_the_clean_posterior():
    rng = np.random.default_rng(0)
    matrix = 0.7 * np.eye(100) + 0.3 * rng.dirichlet(np.ones(100), 100)
    probs = rng.dirichlet(np.full(100, 0.5), 9000) @ matrix
    probs[::50] = rng.dirichlet(np.full(100, 0.05), 180)  # outside of what the matrix can give
    np.testing.assert_array_equal(dualt.clean_posterior(probs, matrix, n_jobs=2), dualt.clean_posterior(probs, matrix))
    probs[[900, 8900], 0] = -1
    with pytest.raises(InputError, match="row 900"):
        dualt.clean_posterior(probs, matrix, n_jobs=2)


@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize(
    "transition",
    [
        dualt.noise.pair(3, 0.45),
        dualt.noise.pair(10, 0.49),  # where plain EM stopped 0.2 nats above the minimum
        dualt.noise.pair(9, 0.5),
        dualt.noise.symmetric(5, 0.6),
        dualt.noise.symmetric(64, 0.6),  # the most classes that Newton's method takes
        np.random.default_rng(0).dirichlet(np.ones(6), 6),
        np.full((4, 4), 0.25),
    ],
    ids=["pair 3", "pair 10", "pair 9", "symmetric", "symmetric 64", "random", "uniform"],
)
def test_clean_posterior_minimises_the_divergence(transition, spread):
    probs = np.random.default_rng(1).dirichlet(np.full(len(transition), spread), 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DualtWarning)
        found = dualt.clean_posterior(probs, transition)
        alone = [dualt.clean_posterior(row[None], transition)[0] for row in probs]
    best = np.array([best_by_convex_solver(target, transition) for target in probs])
    assert (divergence(probs, found, transition) <= divergence(probs, best, transition) + 1e-6).all()
    np.testing.assert_allclose(found, alone, atol=1e-9)  # a row does not depend on its company


def test_a_prior_of_thousands_of_classes_takes_no_cube(monkeypatch):
    """Of steps that read the matrix it may take a number that falls with its size."""
    for name in ("inv", "cond", "svd", "solve"):
        monkeypatch.setattr(np.linalg, name, None)
    n_classes = 1500
    transition = dualt.noise.symmetric(n_classes, 0.2)
    clean = np.random.default_rng(0).dirichlet(np.full(n_classes, 20.0))
    found = dualt.transition.clean_prior(transition, 1e6 * clean @ transition)
    np.testing.assert_allclose(found, clean, atol=1e-6)


def test_a_label_that_no_class_leaves_says_nothing():
    always_one = [[0.0, 1.0, 0.0]] * 3
    with pytest.warns(DualtWarning, match="near singular"):
        found = dualt.clean_posterior([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], always_one)
    np.testing.assert_allclose(found, np.full((2, 3), 1 / 3))
    matrix = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.5, 0.5, 0.0]])
    with pytest.warns(DualtWarning, match="near singular"):  # rows outside what it can give
        found = dualt.clean_posterior([[0.6, 0.1, 0.3], [0.0, 0.0, 1.0], [0.3, 0.7, 0.0]], matrix)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_stopped_early_a_label_that_no_class_leaves_is_left_out():
    """The other labels of a row count as if they were all; a row without others is returned as it is."""
    matrix = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.5, 0.5, 0.0]])
    found = early_posterior(np.array([[0.6, 0.1, 0.3], [0.0, 0.0, 1.0], [0.3, 0.7, 0.0]]), matrix)
    scaled = early_posterior(np.array([[6 / 7, 1 / 7, 0.0], [0.3, 0.7, 0.0]]), matrix)
    np.testing.assert_allclose(found, [scaled[0], [0, 0, 1], scaled[1]])


def test_a_matrix_is_matched_by_permuted_numbers():
    matrix = np.arange(9.0).reshape(3, 3)
    matched = match_transition(matrix, ("2", "0", "1"), ("0", "1", "2"))
    for i, a in enumerate("012"):
        for j, b in enumerate("012"):
            assert matched[i, j] == matrix["201".index(a), "201".index(b)]
    assert match_transition(matrix, ("0", "1", "2"), ("a", "b", "c")) is matrix
    assert match_transition(matrix, ("7", "8", "9"), ("0", "1", "2")) is matrix


@pytest.mark.parametrize("rows", ["abc", "cab"])
def test_the_classes_of_a_data_frame_are_matched_by_its_names(rows):
    clean, matrix = np.random.default_rng(0).dirichlet(np.ones(3), 50), dualt.noise.random_diagonal_dominant(3, 0.3, 0)
    named = pd.DataFrame(matrix, index=[*"abc"], columns=[*"abc"])
    shuffled, labels = named.loc[[*rows], [*"bca"]], np.array([*"abc"])[clean.argmax(axis=1)]
    probs = pd.DataFrame(clean, columns=[*"abc"])
    np.testing.assert_array_equal(dualt.to_noisy(probs, shuffled), dualt.to_noisy(clean, matrix))
    np.testing.assert_array_equal(dualt.clean_posterior(probs, shuffled), dualt.clean_posterior(clean, matrix))
    np.testing.assert_array_equal(dualt.noise.corrupt(labels, shuffled), dualt.noise.corrupt(labels, matrix))
    assert dualt.noisy_accuracy(labels, labels, shuffled).bounds == dualt.noisy_accuracy(labels, labels, matrix).bounds


@pytest.mark.parametrize("function", [dualt.to_noisy, dualt.clean_posterior])
def test_the_classes_of_an_estimate_are_matched_by_the_columns(function):
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 50), np.array(["c", "a", "b"])[rng.integers(3, size=50)]
    estimate = dualt.estimate_transition(pd.DataFrame(probs, columns=["c", "a", "b"]), labels, "spade")
    by_hand = function(probs, estimate.transition)
    found = function(pd.DataFrame(probs[:, [1, 2, 0]], columns=["a", "b", "c"]), estimate)
    np.testing.assert_allclose(found, by_hand[:, [1, 2, 0]], atol=1e-6)
    np.testing.assert_allclose(function(probs, estimate), by_hand, atol=1e-12)
    with pytest.raises(TransitionError, match="'x' are not in both"):
        function(pd.DataFrame(probs, columns=["a", "b", "x"]), estimate)
    with pytest.raises(TransitionError, match="3×3"):
        function(probs, np.eye(2))


@pytest.mark.parametrize("function", [dualt.to_noisy, dualt.clean_posterior])
def test_probabilities_of_two_decimals_are_scaled_and_others_named_by_their_row(function):
    with pytest.raises(ProbabilitiesError, match="row 2"):
        function([[0.5, 0.5], [1, 0], [0.5, 0.9]], np.eye(2))
    rounded = np.array([[0.33, 0.33, 0.32], [0.34, 0.34, 0.34], [0.2, 0.3, 0.5]])
    found = function(rounded, np.eye(3))
    np.testing.assert_allclose(found, rounded / rounded.sum(axis=1, keepdims=True), atol=1e-6)


def test_the_distance_of_two_matrices_matches_their_classes():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 50), np.array(["a", "b", "c"])[rng.integers(3, size=50)]
    estimate = dualt.estimate_transition(pd.DataFrame(probs, columns=[*"abc"]), labels, "spade")
    shuffled = estimate.to_frame().loc[[*"cab"], [*"cab"]]
    assert dualt.l1_error(estimate, shuffled) == dualt.l1_error(shuffled, estimate) == 0
    assert dualt.l1_error(estimate, shuffled.to_numpy()) > 0  # as it stands
    with pytest.raises(TransitionError, match="'x' are not in both"):
        dualt.l1_error(estimate, shuffled.rename(columns={"c": "x"}, index={"c": "x"}))
