"""One training configuration: the same words and defaults everywhere, and the recipe that it makes of a stage."""

import inspect
from dataclasses import fields

import numpy as np
import pytest

from dualt.cli.train import _config, train
from dualt.errors import InputError, UnknownNameError
from dualt.nn.classifier import RobustNetClassifier
from dualt.nn.config import TrainingConfig, n_folds, recipe_of
from dualt.nn.methods import METHODS
from dualt.nn.recipe import Recipe

NAMES = {field.name for field in fields(TrainingConfig)}
# Options of the command that are not settings of a run.
OF_THE_DATA = {"merge_labels", "data", "folder", "label", "id_column", "text", "features", "size", "noise"}
OF_LEARNING = {"group", "quick"}  # as in the other commands that learn from raw data
OF_THE_COMMAND = {"settings", "resume", "overwrite", "as_json", "network"}


def defaults(function):
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def test_the_parameters_of_the_classifier_are_the_configuration():
    found, expected = defaults(RobustNetClassifier), defaults(TrainingConfig)
    assert found == {**expected, "random_state": None}


def test_the_options_of_the_command_are_settings_with_the_same_defaults():
    found, expected = defaults(train), defaults(TrainingConfig)
    assert len(found.keys() - OF_LEARNING) - 1 <= 20, "one is an argument"
    own = found.keys() - OF_THE_DATA - OF_LEARNING - OF_THE_COMMAND
    assert own <= NAMES
    assert {name: found[name] for name in own} == {name: expected[name] for name in own}


def test_every_other_setting_is_passed_by_name():
    given = {"method": "mixup", "network": "mlp"}
    config = _config({"folds": 3, "width": 0.5, "augment": "shift"}, **given)
    assert (config.folds, config.augment, config.network_options) == (3, "shift", {"width": 0.5})
    with pytest.raises(UnknownNameError, match=r"Unknown setting 'fold'.*folds"):
        _config({"fold": 3}, **given)
    with pytest.raises(InputError, match="Pass --method instead"):
        _config({"method": "ce"}, **given)


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "epochs"), [(1_000_000, 128, 15), (4096, 128, 22), (1600, 50, 22), (120, 16, 60)]
)
def test_batches_and_epochs_suit_the_number_of_samples(n_samples, batch_size, epochs):
    recipe = recipe_of(TrainingConfig(), "ce", n_samples)
    assert (recipe.batch_size, recipe.epochs, recipe.schedule) == (batch_size, epochs, "one-cycle")
    assert recipe_of(TrainingConfig(batch_size=77), "ce", n_samples).batch_size == 77
    own = TrainingConfig(recipes={"ce": Recipe(epochs=3)})
    assert recipe_of(own, "ce", n_samples) == Recipe(epochs=3)


@pytest.mark.parametrize("method", METHODS)
def test_the_paper_stays_whole(method):
    config = TrainingConfig(method=method, recipe="paper")
    assert recipe_of(config, method, 100) == METHODS[method].recipe
    assert n_folds(config, 100) == 1


def test_settings_are_those_of_every_stage():
    config = TrainingConfig(method="revision", recipe="paper", learning_rate=1e-3, optimizer="adam", epochs=10)
    for stage in ("ce", "ce-fold-2", "reweighting", "revision"):
        recipe = recipe_of(config, stage, 100)
        assert (recipe.optimizer, recipe.learning_rate, recipe.epochs) == ("adam", 1e-3, 10)
    assert recipe_of(config, "forward", 100).milestones == (2, 5, 8)


def test_folds_suit_the_number_of_samples():
    assert [n_folds(TrainingConfig(), n) for n in (2, 100, 50_000, 1_000_000)] == [2, 5, 3, 2]
    assert n_folds(TrainingConfig(transition=np.eye(2)), 100) == 1
    assert n_folds(TrainingConfig(folds=7), 100) == 7
    with pytest.raises(InputError, match="from 1 to 3 folds, got 4"):
        n_folds(TrainingConfig(folds=4), 3)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"method": "foward"}, UnknownNameError, "Did you mean 'forward'"),
        ({"recipe": "own"}, InputError, "Expected recipe"),
        ({"method": None}, UnknownNameError, "Unknown method 'None'"),
        ({"estimator": "dual"}, UnknownNameError, "Unknown estimator"),
        ({"estimator": "oracle"}, UnknownNameError, "without clean labels 'oracle'"),
        ({"n_jobs": 0}, InputError, "n_jobs"),
        ({"folds": 0}, InputError, "folds, .*at least 1, got 0"),
        ({"augment": "rotate"}, UnknownNameError, "Unknown augmentation 'rotate'"),
        ({"validation_fraction": 1.5}, InputError, "validation_fraction"),
        ({"epochs": "3"}, InputError, "Expected epochs, a whole number of at least 1, got '3'"),
        ({"epochs": 2.5}, InputError, r"Expected epochs, a whole number of at least 1, got 2\.5"),
    ],
)
def test_what_no_run_could_use_is_refused_at_once(changes, error, message):
    with pytest.raises(error, match=message):
        TrainingConfig(**changes)
