"""One training configuration: the same words and defaults everywhere, and the recipe that it makes of a stage."""

from __future__ import annotations

import inspect
from dataclasses import fields

import numpy as np
import pytest

from dualt.cli.train import train
from dualt.errors import InputError, UnknownNameError
from dualt.nn.classifier import RobustNetClassifier
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import METHODS
from dualt.nn.training import Recipe
from dualt.reproduce.experiments import TrainingSpec

NAMES = {field.name for field in fields(TrainingConfig)}
# What a command line writes in other words, and what only the experiments need.
OTHERWISE = {"network_options", "method_options", "recipes"}


def defaults(function):
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


@pytest.mark.parametrize("use", [RobustNetClassifier, train], ids=["classifier", "command line"])
def test_words_and_defaults_are_those_of_the_configuration(use):
    found, expected = defaults(use), defaults(TrainingConfig)
    assert NAMES - found.keys() <= OTHERWISE, "every field can be set"
    for name in (NAMES - {"random_state"}) & found.keys():
        assert found[name] == expected[name], name


def test_the_experiments_use_the_same_words():
    of_the_data, of_the_network = {"n_test", "pool", "standardize", "whole_validation"}, {"batch_norm", "stem"}
    own = {field.name for field in fields(TrainingSpec)} - NAMES
    assert own == {"loss", "schedule"} | of_the_data | of_the_network
    assert TrainingSpec().validation_fraction == TrainingConfig().validation_fraction


@pytest.mark.parametrize(
    ("n_samples", "batch_size", "epochs"), [(1_000_000, 128, 15), (4096, 128, 22), (1600, 50, 22), (120, 16, 60)]
)
def test_batches_and_epochs_suit_the_number_of_samples(n_samples, batch_size, epochs):
    recipe = TrainingConfig().recipe_of("ce", n_samples)
    assert (recipe.batch_size, recipe.epochs, recipe.schedule) == (batch_size, epochs, "one-cycle")
    assert TrainingConfig(batch_size=77).recipe_of("ce", n_samples).batch_size == 77
    own = TrainingConfig(recipes={"ce": Recipe(epochs=3)})
    assert own.recipe_of("ce", n_samples) == Recipe(epochs=3)


@pytest.mark.parametrize("method", METHODS)
def test_the_paper_stays_whole(method):
    config = TrainingConfig(method=method, recipe="paper")
    assert config.recipe_of(method, 100) == METHODS[method].recipe
    assert (config.n_folds(100), config.estimator_name) == (1, "dual-t")


def test_a_rate_belongs_to_its_optimizer():
    config = TrainingConfig(method="revision", recipe="paper", learning_rate=1e-3, momentum=0.5, weight_decay=0.0)
    revision, ce = config.recipe_of("revision", 100), config.recipe_of("ce-fold-2", 100)
    assert (revision.learning_rate, revision.momentum, revision.weight_decay) == (1e-3, 0.5, 0.0)
    assert ce == METHODS["ce"].recipe
    adam = TrainingConfig(method="forward", recipe="paper", optimizer="adam", learning_rate=1e-3, epochs=10)
    for stage in ("ce", "forward"):
        recipe = adam.recipe_of(stage, 100)
        assert (recipe.optimizer, recipe.learning_rate, recipe.epochs) == ("adam", 1e-3, 10)
    assert adam.recipe_of("forward", 100).milestones == (2, 5, 8)


def test_folds_suit_the_number_of_samples():
    assert [TrainingConfig().n_folds(n) for n in (2, 100, 50_000, 1_000_000)] == [2, 5, 3, 2]
    assert TrainingConfig(transition=np.eye(2)).n_folds(100) == 1
    assert TrainingConfig(folds=7).n_folds(100) == 7
    with pytest.raises(InputError, match="from 1 to 3 folds, got 4"):
        TrainingConfig(folds=4).n_folds(3)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"method": "foward"}, UnknownNameError, "Did you mean 'forward'"),
        ({"method": "volminnet", "method_options": {"volume": 1}}, InputError, "no option 'volume'"),
        ({"method_options": {"q": 0.5}}, InputError, "got method 'auto'"),
        ({"recipe": "own"}, InputError, "Expected recipe"),
        ({"augment": "rotate"}, UnknownNameError, "Unknown augmentation 'rotate'"),
        ({"validation_fraction": 1.5}, InputError, "validation_fraction"),
        ({"epochs": "3"}, InputError, "Expected epochs, a whole number of at least 1, got '3'"),
        ({"epochs": 2.5}, InputError, r"Expected epochs, a whole number of at least 1, got 2\.5"),
        ({"network": 42}, InputError, "Expected the name of a network or a function that builds one, got 42"),
    ],
)
def test_what_no_run_could_use_is_refused_at_once(changes, error, message):
    with pytest.raises(error, match=message):
        TrainingConfig(**changes)
