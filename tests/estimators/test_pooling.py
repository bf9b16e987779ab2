"""Rows counted from few labels: drawn to what all classes say, by as much as chance explains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import dirichlet_multinomial

from dualt import noise
from dualt.estimators import estimate_transition
from dualt.estimators._counts import pooled_rates, pooled_rows, pooled_spread, spread_concentration

COUNTS = st.integers(2, 6).flatmap(lambda c: hnp.arrays(np.int64, (c, c), elements=st.integers(0, 50)))


@given(COUNTS)
def test_pooled_rows_are_on_the_simplex(counts):
    rows = pooled_rows(counts)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1)


@given(COUNTS, st.randoms())
def test_relabelling_the_classes_permutes_the_rows(counts, random):
    order = list(range(len(counts)))
    random.shuffle(order)
    np.testing.assert_allclose(pooled_rows(counts[np.ix_(order, order)]), pooled_rows(counts)[np.ix_(order, order)])


@given(COUNTS)
def test_rates_lie_between_the_own_share_and_that_of_all(counts):
    totals = counts.sum(axis=1)
    own = (totals - np.diagonal(counts)) / np.maximum(totals, 1)
    common = (totals.sum() - np.trace(counts)) / max(totals.sum(), 1)
    found = pooled_rates(counts)
    assert (found >= np.minimum(own, common) - 1e-12).all()
    assert (found <= np.maximum(own, common) + 1e-12).all()


def test_many_labels_leave_the_rows_as_they_were_counted():
    counts = np.array([[9_000_000, 1_000_000, 0], [0, 7_000_000, 3_000_000], [2_000_000, 0, 8_000_000]])
    np.testing.assert_allclose(pooled_rows(counts), counts / 10_000_000, atol=1e-4)


@pytest.mark.parametrize("a", [0.05, 1.0, 20.0])
def test_the_concentration_makes_the_errors_most_probable(a):
    """Among those of the grid, against SciPy's Dirichlet-multinomial."""
    rng = np.random.default_rng(0)
    errors = np.array([rng.multinomial(60, rng.dirichlet(np.full(5, a))) for _ in range(6)])
    counts = np.zeros((6, 6), np.int64)
    counts[~np.eye(6, dtype=bool)] = errors.ravel()
    found = spread_concentration(counts)
    grid = np.geomspace(0.02, 200, 40)
    best = grid[np.argmax([dirichlet_multinomial.logpmf(errors, np.full(5, b), 60).sum() for b in grid])]
    assert found == pytest.approx(best)
    spread = pooled_spread(counts)
    np.testing.assert_allclose(spread[~np.eye(6, dtype=bool)].reshape(6, 5), (errors + best) / (60 + 5 * best))


def test_selective_counts_the_highest_scores_with_most_labels():
    rng = np.random.default_rng(0)
    clean = rng.integers(3, size=3000)
    truth = noise.pair(3, 0.2)
    noisy = noise.corrupt(clean, truth, random_state=0)
    probs = rng.dirichlet(np.ones(3), 3000) * 0.3 + 0.7 * np.eye(3)[clean]
    found = estimate_transition(probs, noisy, "selective", least=50)
    for label in range(3):
        order = np.argsort(-probs[:, label], kind="stable")
        shares = [np.mean(noisy[order[:k]] == label) for k in range(50, 3001)]
        accepted = order[: 50 + int(np.argmax(shares))]
        np.testing.assert_allclose(found.transition[label], np.bincount(noisy[accepted], minlength=3) / len(accepted))
