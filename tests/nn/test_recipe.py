"""Schedules against their written form."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualt.errors import InputError
from dualt.nn.loop import EpochRecord, Trained
from dualt.nn.methods import METHODS
from dualt.nn.recipe import Recipe


def test_steps_by_ten():
    recipe = METHODS["forward"].recipe
    rates = [recipe.learning_rate_at(epoch) for epoch in (0, 49, 50, 99, 100, 149, 150, 199)]
    assert rates == pytest.approx([1e-2, 1e-2, 1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])


def test_linear_decay_of_the_selection_methods():
    recipe = METHODS["co-teaching"].recipe
    optimizer = recipe.make_optimizer([torch.nn.Parameter(torch.zeros(1))])
    for epoch in (0, 79, 80, 140, 199):
        recipe.set_schedule(optimizer, epoch)
        rate, beta1 = (1e-3, 0.9) if epoch < 80 else (1e-3 * (200 - epoch) / 120, 0.1)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)
        assert optimizer.param_groups[0]["betas"][0] == beta1


def test_other_epochs_stretch_the_schedule():
    assert METHODS["mixup"].recipe.changed(epochs=20).milestones == (10, 15)
    assert METHODS["decoupling"].recipe.changed(epochs=10).linear_from == 4
    assert METHODS["co-teaching"].recipe.changed(epochs=100).ramp == 5
    changed = METHODS["ce"].recipe.changed(learning_rate=0.5, momentum=None)
    assert (changed.learning_rate, changed.momentum, changed.epochs) == (0.5, 0.0, 100)


def rates(recipe):
    return [recipe.learning_rate_at(epoch) for epoch in range(recipe.epochs)]


@pytest.mark.parametrize(
    ("method", "epochs", "expected"),
    [
        ("forward", 1, [1e-2]),
        ("forward", 4, [1e-2, 1e-3, 1e-4, 1e-5]),
        ("co-teaching", 1, [1e-3]),
        ("co-teaching", 5, [1e-3, 1e-3, 1e-3, 1e-3 * 2 / 3, 1e-3 / 3]),
    ],
)
def test_short_schedules_start_at_the_full_rate(method, epochs, expected):
    assert rates(METHODS[method].recipe.changed(epochs)) == pytest.approx(expected)


@st.composite
def recipes(draw):
    epochs = draw(st.integers(1, 300))
    milestones = draw(st.sets(st.integers(1, epochs - 1), max_size=4)) if epochs > 1 else ()
    linear_from = draw(st.none() | st.integers(0, epochs - 1))
    ramp = draw(st.integers(0, epochs))
    return Recipe(epochs, learning_rate=1.0, milestones=tuple(sorted(milestones)), linear_from=linear_from, ramp=ramp)


@given(recipes(), st.integers(1, 400))
def test_another_number_of_epochs_keeps_the_shape_of_a_schedule(recipe, epochs):
    changed = recipe.changed(epochs)
    assert changed.epochs == epochs
    assert changed.learning_rate_at(0) == 1.0, "the first epoch has the full rate"
    reached = recipe.milestones
    stretch = epochs / recipe.epochs
    for before, after in zip(reached, changed.milestones, strict=True):
        assert abs(after - stretch * before) <= 1
    if recipe.linear_from is not None:
        assert abs(changed.linear_from - stretch * recipe.linear_from) <= 1
    assert all(rate > 0 for rate in rates(changed))
    ramp = [changed.ramp_at(epoch) for epoch in range(epochs)]
    assert ramp == sorted(ramp)
    assert ramp[0] == recipe.ramp_at(0)
    if recipe.ramp > 1:
        assert abs(changed.ramp - stretch * recipe.ramp) < 2
    if epochs % recipe.epochs == 0 and epochs:
        assert changed.milestones == tuple(epochs // recipe.epochs * milestone for milestone in reached)
    assert recipe.changed(recipe.epochs) == recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs, .*at least 1, got 0"),
        ({"batch_size": 0}, "batch_size, .*at least 1"),
        ({"learning_rate": 0.0}, "learning_rate above 0"),
        ({"learning_rate": "0.1"}, "learning_rate above 0, got '0.1'"),
        ({"weight_decay": "0"}, "weight_decay of at least 0, got '0'"),
        ({"optimizer": "lion"}, "'sgd' or 'adam', got 'lion'"),
        ({"report": "best"}, "'best-validation' or 'last-ten'"),
        ({"momentum": 1.5}, "momentum in"),
        ({"weight_decay": -1.0}, "weight_decay of at least 0"),
        ({"milestones": (0, 2)}, "milestones of at least 1"),
    ],
)
def test_bad_recipes_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Recipe(**{"epochs": 1, **changes})


def record(epoch, validation, test, loss=0.5):
    return EpochRecord(epoch, 0.1, 1.0, validation, None if validation is None else loss, test, 0.0)


def trained(records, report="best-validation"):
    return Trained([], None, Recipe(1, report=report), records)


def test_the_reported_accuracy():
    records = [record(e, v, e / 10) for e, v in enumerate([0.1, 0.5, 0.5, 0.2])]
    assert (trained(records).best_epoch, trained(records).test_accuracy) == (1, 0.1)
    assert trained(records, "last-ten").test_accuracy == pytest.approx(0.15)
    long = [record(e, 0.5, e / 100) for e in range(30)]
    assert trained(long, "last-ten").test_accuracy == pytest.approx(0.245)
    blind = trained([record(e, None, None) for e in range(3)])
    assert (blind.best_epoch, blind.learned_epoch, blind.test_accuracy) == (2, 2, None)
    tied = [record(e, 0.5, 0.0, loss) for e, loss in enumerate([0.9, 0.7, 0.6, 0.8])]
    assert trained(tied).best_epoch == 2


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([(0.9, 0.9), (0.8, 0.5), (0.8, 0.3), (0.8, 0.4)], (0, 2)),
        ([(0.5, 0.9), (0.6, 0.5), (0.7, 0.6), (0.6, 0.8)], (2, 2)),
    ],
    ids=["lucky", "unsure"],
)
def test_the_epoch_by_which_a_network_has_learned(scores, expected):
    found = trained([record(e, v, 0.0, loss) for e, (v, loss) in enumerate(scores)])
    assert (found.best_epoch, found.learned_epoch) == expected


@given(st.integers(1, 300))
def test_one_cycle_rises_for_a_fifth_and_falls_to_nothing(epochs):
    recipe = Recipe(epochs, learning_rate=1.0, schedule="one-cycle")
    times = [epochs * share for share in (0, 0.1, 0.2, 0.6, 1.0)]
    assert [recipe.learning_rate_at(time) for time in times] == pytest.approx([0.05, 0.525, 1, 0.5, 0])


def test_one_cycle_moves_with_every_step():
    recipe = Recipe(10, learning_rate=1.0, schedule="one-cycle")
    optimizer = recipe.make_optimizer([torch.nn.Parameter(torch.zeros(1))])
    recipe.set_schedule(optimizer, 3, 5, 10)
    assert optimizer.param_groups[0]["lr"] == recipe.learning_rate_at(3.5)
