"""Rows counted from few labels borrow from the other classes, as far as chance explains the differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import dirichlet_multinomial

from dualt import noise
from dualt.estimators import estimate_transition
from dualt.estimators._counts import pooled_rows, resample_counts

COUNTS = st.integers(2, 6).flatmap(lambda c: hnp.arrays(np.int64, (c, c), elements=st.integers(0, 50)))
GRID = np.geomspace(0.1, 1e4, 41)


def drawn_to(counts, mean):
    """Rows of counts drawn to a mean by the strength that SciPy's Dirichlet-multinomial finds likeliest."""
    fits = [sum(dirichlet_multinomial.logpmf(row, s * mean, row.sum()) for row in counts) for s in GRID]
    strength = GRID[int(np.argmax(fits))]
    return (counts + strength * mean) / (counts.sum(axis=1, keepdims=True) + strength)


@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
def test_rates_and_spreads_are_drawn_by_the_likeliest_strength(spread):
    rng = np.random.default_rng(0)
    errors = np.array([rng.multinomial(60, rng.dirichlet(np.full(5, spread))) for _ in range(6)])
    right = rng.integers(50, 200, 6)
    counts = np.diag(right)
    off = ~np.eye(6, dtype=bool)
    counts[off] = errors.ravel()
    wrong = errors.sum(axis=1)
    common = (wrong.sum() + 0.5) / (counts.sum() + 1)
    rates = drawn_to(np.c_[right, wrong], np.array([1 - common, common]))[:, 1]
    found = pooled_rows(counts)
    np.testing.assert_allclose(1 - np.diagonal(found), rates)
    np.testing.assert_allclose(found[off].reshape(6, 5), rates[:, None] * drawn_to(errors, np.full(5, 0.2)))


@given(COUNTS)
def test_pooled_rows_are_on_the_simplex(counts):
    rows = pooled_rows(counts)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1)


@given(COUNTS)
def test_rates_lie_between_the_own_share_and_that_of_all(counts):
    totals = counts.sum(axis=1)
    own = (totals - np.diagonal(counts)) / np.maximum(totals, 1)
    common = (totals.sum() - np.trace(counts) + 0.5) / (totals.sum() + 1)
    own = np.where(totals > 0, own, common)
    found = 1 - np.diagonal(pooled_rows(counts))
    assert (found >= np.minimum(own, common) - 1e-9).all()
    assert (found <= np.maximum(own, common) + 1e-9).all()


def test_many_labels_leave_the_rows_as_they_were_counted():
    counts = np.array([[9_000_000, 1_000_000, 0], [0, 7_000_000, 3_000_000], [2_000_000, 0, 8_000_000]])
    np.testing.assert_allclose(pooled_rows(counts), counts / 10_000_000, atol=1e-4)


def test_selective_counts_the_highest_scores_with_most_labels():
    rng = np.random.default_rng(0)
    clean = rng.integers(3, size=3000)
    noisy = noise.corrupt(clean, noise.pair(3, 0.2), random_state=0)
    probs = rng.dirichlet(np.ones(3), 3000) * 0.3 + 0.7 * np.eye(3)[clean]
    found = estimate_transition(probs, noisy, "selective")
    for label in range(3):
        order = np.argsort(-probs[:, label], kind="stable")
        shares = [np.mean(noisy[order[:k]] == label) for k in range(100, 3001)]
        accepted = order[: 100 + int(np.argmax(shares))]
        np.testing.assert_allclose(found.transition[label], np.bincount(noisy[accepted], minlength=3) / len(accepted))


def test_a_resample_has_as_many_labels_and_the_same_mean():
    counts, rng = np.array([[30, 10, 0], [5, 50, 5], [0, 0, 100]]), np.random.default_rng(0)
    drawn = [resample_counts(counts, rng) for _ in range(2000)]
    assert all(one.sum() == 200 for one in drawn)
    np.testing.assert_allclose(np.mean(drawn, axis=0), counts, atol=1)
    np.testing.assert_allclose(np.var(drawn, axis=0), counts * (1 - counts / 200), rtol=0.2)
    assert not resample_counts(np.zeros((3, 3)), rng).any()
