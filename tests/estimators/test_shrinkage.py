import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import noise
from dualt.estimators._counts import shrink_off_diagonals
from dualt.rows.counts import normalize_counts
from tests.strategies import transitions


def shrink_by_loops(transition, support):
    """The formulas, entry by entry."""
    n_classes = len(transition)
    if n_classes < 3:
        return transition
    uniform = 1 / (n_classes - 1)
    rates, errors, chance, excess, weight = [], [], [], 0.0, 0.0
    for k in range(n_classes):
        rates.append(1 - transition[k][k])
        errors.append(max(support[k] * rates[k], 1))
        chance.append(uniform * (1 - uniform) / errors[k])
        if rates[k] > 1e-3:
            spread = [transition[k][j] / rates[k] for j in range(n_classes) if j != k]
            variance = sum((share - uniform) ** 2 for share in spread) / (n_classes - 1)
            excess += errors[k] * (variance - chance[k])
            weight += errors[k]
    if weight == 0:
        return transition
    tau2 = max(0.0, excess / weight)
    result = np.array(transition, float)
    for k in range(n_classes):
        kept = tau2 / (tau2 + chance[k])
        for j in range(n_classes):
            if j != k:
                share = transition[k][j] / max(rates[k], 1e-12)
                result[k][j] = rates[k] * (kept * share + (1 - kept) * uniform)
    return result


@given(transitions(), st.integers(0, 1000), st.integers(1, 500))
def test_shrinkage_equals_a_loop(transition, seed, most):
    support = np.random.default_rng(seed).integers(0, most, len(transition))
    np.testing.assert_allclose(
        shrink_off_diagonals(transition, support), shrink_by_loops(transition, support), atol=1e-9
    )


@given(transitions(min_classes=3), st.integers(1, 10_000))
def test_noise_rates_and_row_sums_are_untouched(transition, support):
    shrunk = shrink_off_diagonals(transition, np.full(len(transition), support))
    np.testing.assert_array_equal(np.diagonal(shrunk), np.diagonal(transition))
    np.testing.assert_allclose(shrunk.sum(axis=1), 1)
    assert shrunk.min() >= 0


def counted(truth, per_class, seed):
    rng = np.random.default_rng(seed)
    counts = np.array([rng.multinomial(per_class, row) for row in truth])
    return normalize_counts(counts), counts.sum(axis=1)


def off_diagonal_error(transition, truth):
    return np.abs(np.where(np.eye(len(truth)), 0, transition - truth)).sum()


def test_symmetric_noise_is_shrunk_to_symmetric():
    """With rates as counted, what is left of the spread of the others is a small part."""
    truth = noise.symmetric(10, 0.4)
    before, after = [], []
    for seed in range(30):
        transition, support = counted(truth, 150, seed)
        uniform = (1 - np.diagonal(transition))[:, None] / 9
        before.append(off_diagonal_error(transition, uniform))
        after.append(off_diagonal_error(shrink_off_diagonals(transition, support), uniform))
    assert np.mean(after) < 0.2 * np.mean(before)


def test_exactly_uniform_errors_stay_as_they_are():
    truth = noise.symmetric(5, 0.3)
    np.testing.assert_allclose(shrink_off_diagonals(truth, np.full(5, 100)), truth)


@pytest.mark.parametrize("seed", range(5))
def test_pair_noise_hardly_moves(seed):
    transition, support = counted(noise.pair(10, 0.45), 300, seed)
    assert np.abs(shrink_off_diagonals(transition, support) - transition).sum() / 10 < 0.02


def test_shrinkage_helps_where_classes_err_a_little_differently():
    """The world it assumes: each row's errors spread around uniform by a Dirichlet distribution."""
    gained = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = np.zeros((8, 8))
        truth[~np.eye(8, dtype=bool)] = 0.3 * rng.dirichlet(np.full(7, 3.0), 8).ravel()
        np.fill_diagonal(truth, 0.7)
        transition, support = counted(truth, 100, seed)
        shrunk = shrink_off_diagonals(transition, support)
        gained.append(off_diagonal_error(transition, truth) - off_diagonal_error(shrunk, truth))
    assert np.mean(gained) > 3 * np.std(gained) / np.sqrt(len(gained))


def test_nothing_to_spread_is_returned_as_it_is():
    np.testing.assert_array_equal(shrink_off_diagonals(np.eye(4), np.full(4, 50)), np.eye(4))
    two = noise.symmetric(2, 0.3)
    assert shrink_off_diagonals(two, np.full(2, 50)) is two


def test_the_input_is_not_changed():
    transition, support = counted(noise.symmetric(4, 0.4), 60, 0)
    before = transition.copy()
    shrink_off_diagonals(transition, support)
    np.testing.assert_array_equal(transition, before)
