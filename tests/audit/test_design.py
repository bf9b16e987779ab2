"""Draws against laws: equal chances, and batches that have no row in common."""

import numpy as np
import pytest

from dualt.audit.design import draw_rows

ROWS = np.arange(10, 1010)


@pytest.mark.parametrize("seed", [3, 4])
def test_batches_have_no_row_in_common(seed):
    first = draw_rows(ROWS, 50, seed=3)
    both = np.r_[first, draw_rows(ROWS, 30, seed, earlier=first)]
    assert len(np.unique(both)) == len(both) == 80
    assert np.isin(both, ROWS).all()
    assert len(draw_rows(ROWS, 1000, seed, earlier=first)) == 950


def test_the_draw_has_nothing_to_do_with_labels_made_with_the_same_seed():
    wrong = [np.random.default_rng(seed).random(2000) < 0.2 for seed in range(20)]
    shares = [own[draw_rows(np.arange(2000), 100, seed)].mean() for seed, own in enumerate(wrong)]
    assert np.mean(shares) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("later_seed", [0, 10_000])
def test_every_row_has_the_same_chance_in_one_batch_or_two(later_seed):
    drawn = np.zeros(40)
    for seed in range(2000):
        first = draw_rows(np.arange(40), 6, seed)
        drawn[np.r_[first, draw_rows(np.arange(40), 4, seed + later_seed, first)]] += 1 / 2000
    np.testing.assert_allclose(drawn, 0.25, atol=0.05)
