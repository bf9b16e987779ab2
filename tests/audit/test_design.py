"""Draws against laws: known probabilities, batches that contain each other, allocations that add up."""

import numpy as np
import pytest

from dualt.audit import design as d
from dualt.audit.design import Plan
from dualt.errors import InputError


def test_a_larger_draw_contains_the_smaller_one():
    strata = Plan.of(1000, "stratified", np.random.default_rng(0).random(1000)).strata
    first = d.draw_rows(strata, np.array([5, 5, 10, 20, 10]), seed=3)
    second = d.draw_rows(strata, np.array([5, 15, 10, 40, 30]), seed=3)
    assert set(first.rows) <= set(second.rows)
    assert len(set(second.rows)) == len(second.rows) == 100
    assert np.bincount(second.strata).tolist() == [5, 15, 10, 40, 30]
    np.testing.assert_array_equal(strata[second.rows], second.strata)


def test_the_draw_has_nothing_to_do_with_labels_made_with_the_same_seed():
    strata = np.zeros(2000, np.intp)
    wrong = [np.random.default_rng(seed).random(2000) < 0.2 for seed in range(20)]
    shares = [own[d.draw_rows(strata, np.array([100]), seed).rows].mean() for seed, own in enumerate(wrong)]
    assert np.mean(shares) == pytest.approx(0.2, abs=0.05)


def test_every_row_is_drawn_as_often_as_its_probability_says():
    strata = np.repeat([0, 1], [30, 10])
    drawn = np.zeros(40)
    for seed in range(2000):
        drawn[d.draw_rows(strata, np.array([6, 5]), seed).rows] += 1 / 2000
    np.testing.assert_allclose(drawn[:30], 0.2, atol=0.05)
    np.testing.assert_allclose(drawn[30:], 0.5, atol=0.06)


def test_a_beginning_of_the_file_is_a_random_sample():
    strata = np.repeat([0, 1], [500, 500])
    heads = [d.draw_rows(strata, np.array([20, 20]), seed).strata[:10].mean() for seed in range(300)]
    assert np.mean(heads) == pytest.approx(0.5, abs=0.04)


def test_weights_stand_for_the_strata():
    weights = d.Weights.stratified(np.array([0, 0, 1, 1, 1]), np.array([10, 90]))
    np.testing.assert_allclose(weights.weight, [0.05, 0.05, 0.3, 0.3, 0.3])
    np.testing.assert_allclose(weights.probability, [0.2, 0.2, 1 / 30, 1 / 30, 1 / 30])
    assert d.Weights.uniform(4, 100).weight.tolist() == [0.25] * 4


def test_thin_strata_are_merged_with_their_neighbour():
    strata, sizes = d.merge_thin(np.array([0, 0, 1, 3, 3, 3]), np.array([10, 20, 30, 40, 50]))
    assert sizes.sum() == 150
    assert (np.bincount(strata) >= 2).all()
    assert strata.tolist() == [0, 0, 1, 1, 1, 1]
    assert sizes.tolist() == [10, 140]


def test_strata_are_fifths_even_with_ties():
    assert np.bincount(Plan.of(100, "stratified", np.zeros(100)).strata).tolist() == [20] * 5
    assert Plan.of(10, "stratified", np.arange(10.0)[::-1] / 10).strata.tolist() == [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize("total", [10, 57, 200, 999, 1000, 1200])
def test_allocations_add_up_within_bounds(total):
    sizes = np.array([400, 300, 200, 96, 4])
    spread = np.array([0.01, 0.1, 0.3, 0.5, 0.2])
    counts = d.allocate(sizes, spread, total)
    assert counts.sum() == min(total, 1000)
    assert (counts <= sizes).all()
    assert (counts >= np.minimum(sizes, min(d.FLOOR, total // 5))).all()


def test_allocation_is_half_even_half_neyman():
    sizes, spread = np.array([600, 400]), np.array([0.1, 0.4])
    share = 0.5 * np.array([0.6, 0.4]) + 0.5 * np.array([60, 160]) / 220
    np.testing.assert_allclose(d.allocate(sizes, spread, 100), 100 * share, atol=1)


def test_a_later_batch_keeps_what_was_taken():
    counts = d.allocate(np.array([500, 500]), np.array([0.0, 0.5]), 100, taken=np.array([60, 10]))
    assert counts[0] >= 60
    assert counts.sum() == 100


def test_as_many_labels_are_needed_as_reach_the_half_width():
    plan = Plan.of(10_000, "uniform")
    assert plan.needed(0.05) == pytest.approx(384 / (1 + 384 / 10_000), abs=1)
    assert plan.needed(1e-9) == 10_000
    assert plan.needed(0.02, 0.01, 100) == 100, "reached"
    half = 0.98 * np.sqrt((1 - 100 / 10_000) / 100)
    needed = plan.needed(half / 2, half, 100)
    assert 0.98 * np.sqrt((1 - needed / 10_000) / needed) == pytest.approx(half / 2, rel=0.01)


def test_a_plan_of_batches():
    wrong = np.random.default_rng(0).beta(0.3, 2, 1000)
    plan = Plan.of(1000, "stratified", wrong)
    variances = [np.mean([p * (1 - p) for p in np.sort(wrong)[first : first + 200]]) for first in range(0, 1000, 200)]
    np.testing.assert_allclose(plan.spread, np.sqrt(variances))
    first = plan.draw(100, 3)
    later = plan.draw(150, 3, earlier=np.append(first.rows, first.rows[:1]))
    assert set(first.rows) <= set(later.rows)
    assert len(later.rows) == 150
    with pytest.raises(InputError, match="to stratify by"):
        Plan.of(1000, "stratified")
