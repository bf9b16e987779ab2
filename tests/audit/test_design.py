"""Draws against laws: equal chances and batches that contain each other."""

import numpy as np
import pytest

from dualt.audit.design import draw_rows

ROWS = np.arange(10, 1010)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_later_batch_begins_with_the_rows_of_the_earlier_one(seed):
    first = draw_rows(ROWS, 50, seed=3)
    second = draw_rows(ROWS, 80, seed, earlier=first)
    assert second[:50].tolist() == first.tolist()
    assert len({*second.tolist()}) == len(second) == 80
    assert np.isin(second, ROWS).all()


def test_the_draw_has_nothing_to_do_with_labels_made_with_the_same_seed():
    wrong = [np.random.default_rng(seed).random(2000) < 0.2 for seed in range(20)]
    shares = [own[draw_rows(np.arange(2000), 100, seed)].mean() for seed, own in enumerate(wrong)]
    assert np.mean(shares) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("later_seed", [0, 10_000])
def test_every_row_has_the_same_chance_in_one_batch_or_two(later_seed):
    drawn = np.zeros(40)
    for seed in range(2000):
        first = draw_rows(np.arange(40), 6, seed)
        drawn[draw_rows(np.arange(40), 10, seed + later_seed, first)] += 1 / 2000
    np.testing.assert_allclose(drawn, 0.25, atol=0.05)
