"""Schedules against their written form."""

from __future__ import annotations

import pytest

from dualt.errors import InputError
from dualt.nn.methods import METHODS
from dualt.nn.training import EpochRecord, History, Machine, Recipe


def test_steps_by_ten():
    recipe = METHODS["forward"].recipe
    rates = [recipe.learning_rate_at(epoch) for epoch in (0, 49, 50, 99, 100, 149, 150, 199)]
    assert rates == pytest.approx([1e-2, 1e-2, 1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])


def test_linear_decay_of_the_selection_methods():
    recipe = METHODS["co-teaching"].recipe
    for epoch in (0, 79):
        assert (recipe.learning_rate_at(epoch), recipe.beta1_at(epoch)) == (1e-3, 0.9)
    for epoch in (80, 140, 199):
        assert recipe.learning_rate_at(epoch) == pytest.approx(1e-3 * (200 - epoch) / 120)
        assert recipe.beta1_at(epoch) == 0.1


def test_other_epochs_stretch_the_schedule():
    assert METHODS["mixup"].recipe.changed(epochs=20).milestones == (10, 15)
    assert METHODS["decoupling"].recipe.changed(epochs=10).linear_from == 4
    assert METHODS["decoupling"].recipe.changed(epochs=1).linear_from == 0
    changed = METHODS["ce"].recipe.changed(learning_rate=0.5, momentum=None)
    assert (changed.learning_rate, changed.momentum, changed.epochs) == (0.5, 0.0, 100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size of at least 1"),
        ({"patience": 0}, "patience of at least 1"),
        ({"learning_rate": 0.0}, "learning_rate above 0"),
        ({"optimizer": "lion"}, "'sgd' or 'adam', got 'lion'"),
        ({"report": "best"}, "'best-validation' or 'last-ten'"),
        ({"momentum": 1.5}, "momentum in"),
    ],
)
def test_bad_recipes_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Recipe(**{"epochs": 1, **changes})


def test_bad_machines_are_refused():
    with pytest.raises(InputError, match="device of this machine, got 'cuda:99'"):
        _ = Machine(device="cuda:99").torch_device
    with pytest.raises(InputError, match="got 'abacus'"):
        _ = Machine(device="abacus").torch_device
    with pytest.raises(InputError, match="precision"):
        Machine(precision="fp8")
    with pytest.raises(InputError, match="one thread"):
        Machine(threads=0)


def record(epoch, validation, test, loss=0.5):
    return EpochRecord(epoch, 0.1, 1.0, validation, None if validation is None else loss, test, 0.0)


def test_the_reported_accuracy():
    validation = [0.1, 0.5, 0.5, 0.2]
    history = History([record(e, v, e / 10) for e, v in enumerate(validation)])
    assert history.best_epoch == 1
    assert history.test_accuracy("best-validation") == 0.1
    assert history.test_accuracy("last-ten") == pytest.approx(0.15)
    long = History([record(e, 0.5, e / 100) for e in range(30)])
    assert long.test_accuracy("last-ten") == pytest.approx(0.245)
    blind = History([record(e, None, None) for e in range(3)])
    assert (blind.best_epoch, blind.test_accuracy("best-validation")) == (2, None)
    tied = History([record(e, 0.5, 0.0, loss) for e, loss in enumerate([0.9, 0.7, 0.6, 0.8])])
    assert tied.best_epoch == 2
    assert History.from_dict(history.to_dict()) == history
