"""The one training configuration, behind `dualt train`, `RobustNetClassifier` and the experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike
from torch import nn

from dualt.errors import InputError, UnknownNameError
from dualt.estimators import DEFAULT_ESTIMATOR
from dualt.nn.methods import METHODS, RegisteredMethod, check_options, find_method
from dualt.nn.training import Machine, Recipe
from dualt.nn.training.augment import AUGMENTATIONS
from dualt.nn.training.loop import Augment
from dualt.nn.training.recipe import Optimizer, Precision
from dualt.results import TransitionEstimate
from dualt.validation import check_count, check_fraction

RecipeName: TypeAlias = Literal["default", "paper"]

AUTO = "auto"
# k folds cost (k − 1) trainings at most; for large data two, which cost no more than the network itself.
_FOLDS = ((20_000, 5), (100_000, 3))
_FEWEST_FOLDS = 2
# Batches of a 32nd of the data, within these limits; epochs for so many steps, within theirs.
_BATCHES, _BATCH_SIZES = 32, (16, 128)
_STEPS, _EPOCHS = 700, (15, 60)
_RATE = 2e-3
# Weight decay, over the number of samples: a prior on the weights, as in ridge regression, which matters less the more
# samples there are.
_DECAY = 2.0
# A method that refines a trained network starts more gently.
_REFINING_RATE = 5e-4


@dataclass(frozen=True)
class TrainingConfig:
    """What a training run is, beside its data.

    The fields are the parameters of `RobustNetClassifier`, and are explained there. One is here alone: `recipes` per
    stage (`ce` and the methods) instead of what `recipe` names.
    """

    network: str | Callable[..., nn.Module] = "mlp"
    method: str = AUTO
    estimator: str | None = None
    transition: ArrayLike | TransitionEstimate | None = None
    network_options: Mapping[str, Any] | None = None
    method_options: Mapping[str, Any] | None = None
    weights: str | Path | None = None
    recipe: RecipeName = "default"
    epochs: int | None = None
    batch_size: int | None = None
    optimizer: Optimizer | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    patience: int | None = None
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    validation_fraction: float = 0.2
    folds: int | None = None
    augment: str | Augment | None = None
    device: str = "auto"
    precision: Precision = "float32"
    n_jobs: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.recipe not in ("default", "paper"):
            raise InputError(f"Expected recipe 'default' or 'paper', got {self.recipe!r}.")
        if self.method == AUTO:
            if self.method_options:
                raise InputError("Expected options of a method that is named, got method 'auto'.")
        elif self.method not in METHODS:
            raise UnknownNameError("method", self.method, (AUTO, *METHODS))
        else:
            check_options(self.method, self.method_options or {})
        if not (isinstance(self.network, str) or callable(self.network)):
            raise InputError(f"Expected the name of a network or a function that builds one, got {self.network!r}.")
        for name in ("epochs", "batch_size", "patience", "folds", "n_jobs"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, 1)
        check_fraction(self.validation_fraction, "validation_fraction")
        if isinstance(self.augment, str) and self.augment not in AUGMENTATIONS:
            raise UnknownNameError("augmentation", self.augment, AUGMENTATIONS)

    @property
    def machine(self) -> Machine:
        """What to train on."""
        return Machine(self.device, self.precision, self.n_jobs)

    @property
    def augmentation(self) -> Augment | None:
        """What is applied to the samples of every training batch."""
        return AUGMENTATIONS[self.augment] if isinstance(self.augment, str) else self.augment

    @property
    def estimator_name(self) -> str:
        """The estimator that finds the matrix: the library's default, or dual-T in the paper's recipe."""
        return self.estimator or ("dual-t" if self.recipe == "paper" else DEFAULT_ESTIMATOR)

    @property
    def asked(self) -> dict[str, Any]:
        """What a run must be resumed with, beside what its checkpoints hold, as plain numbers and strings."""
        return {
            "method": self.method,
            "method_options": dict(self.method_options or {}),
            "estimator": self.estimator_name,
            "known_matrix": self.transition is not None,
            "network": network_name(self.network),
            "network_options": dict(self.network_options or {}),
            "weights": None if self.weights is None else str(self.weights),
            "augment": getattr(self.augment, "__name__", self.augment),
            "recipe": self.recipe,
            "folds": self.folds,
            "validation_fraction": self.validation_fraction,
            "random_state": self.random_state,
        }

    def recipe_of(self, stage: str, n_samples: int) -> Recipe:
        """Return the recipe of a stage that trains on a data set of `n_samples`."""
        name = method_of(stage)
        chosen = self._unchanged(name, n_samples)
        changes: dict[str, Any] = {
            "batch_size": self.batch_size, "patience": self.patience, "optimizer": self.optimizer
        }  # fmt: skip
        own = chosen if self.method == AUTO else self._unchanged(self.method, n_samples)
        # A rate belongs to its optimizer.
        if self.optimizer is not None or chosen.optimizer == own.optimizer:
            changes |= {name: getattr(self, name) for name in ("learning_rate", "momentum", "weight_decay")}
        return chosen.changed(self.epochs, **changes)

    def _unchanged(self, name: str, n_samples: int) -> Recipe:
        entry = find_method(name)
        if name in self.recipes or self.recipe == "paper":
            return self.recipes.get(name, entry.recipe)
        return default_recipe(n_samples, entry, self.batch_size)

    def n_folds(self, n_samples: int) -> int:
        """Return in how many folds the posterior of `n_samples` is learned; 1: on themselves."""
        folds = self.folds
        if folds is None and (self.recipe == "paper" or self.transition is not None):
            folds = 1
        elif folds is None:
            folds = next((number for limit, number in _FOLDS if n_samples <= limit), _FEWEST_FOLDS)
            folds = min(folds, n_samples)
        if not 1 <= folds <= n_samples:
            raise InputError(f"Expected from 1 to {n_samples:,} folds, got {folds}.")
        return folds


def method_of(stage: str) -> str:
    """Return the method of a stage: those of folds have a number behind it."""
    return stage.partition("-fold-")[0]


def network_name(network: str | Callable[..., nn.Module]) -> str:
    """Return what a network is called, also one of the user's own."""
    return network if isinstance(network, str) else getattr(network, "__name__", "own")


def default_recipe(n_samples: int, entry: RegisteredMethod, batch_size: int | None = None) -> Recipe:
    """Return a recipe that trains a network on few or many samples: enough steps, and batches to suit.

    Adam under a one-cycle schedule: for a network without batch norm the rate that suits SGD depends on the data.
    """
    smallest, largest = _BATCH_SIZES
    size = batch_size or min(largest, max(smallest, n_samples // _BATCHES))
    steps_per_epoch = max(1, -(-n_samples // size))
    epochs = min(_EPOCHS[1], max(_EPOCHS[0], -(-_STEPS // steps_per_epoch)))
    return Recipe(
        epochs=epochs,
        optimizer="adam",
        learning_rate=_RATE if entry.starts_from is None else _REFINING_RATE,
        weight_decay=_DECAY / n_samples,
        batch_size=size,
        schedule="one-cycle",
        ramp=max(2, round(entry.ramp * epochs)) if entry.recipe.ramp else 0,
    )
