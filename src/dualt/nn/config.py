"""The one training configuration, behind `dualt train`, `RobustNetClassifier` and the experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import nn

from dualt.errors import InputError, UnknownNameError
from dualt.nn.methods import check_options, find_method
from dualt.nn.training import Machine, Recipe
from dualt.nn.training.augment import AUGMENTATIONS
from dualt.nn.training.loop import Augment
from dualt.nn.training.recipe import Optimizer, Precision
from dualt.results import TransitionEstimate
from dualt.validation import check_fraction

# The paper reads these off the network's own training data; every other estimator wants probabilities of
# samples that the network has not seen.
_IN_SAMPLE = ("t", "dual-t", "spade")
_FOLDS = 5
# Small data get smaller batches, so that an epoch has about this many steps.
_STEPS = 32
_SMALLEST_BATCH = 8


@dataclass(frozen=True)
class TrainingConfig:
    """What a training run is, beside its data.

    The fields are the parameters of `RobustNetClassifier`, and are explained there. Two are here alone: `recipes` per
    stage (`ce` and the methods) instead of the published ones, and `channels_last`, a memory layout for convolutions.
    """

    network: str | Callable[..., nn.Module] = "mlp"
    method: str = "forward"
    estimator: str = "dual-t"
    transition: ArrayLike | TransitionEstimate | None = None
    network_options: Mapping[str, Any] | None = None
    method_options: Mapping[str, Any] | None = None
    weights: str | Path | None = None
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
    channels_last: bool = False
    n_jobs: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_options(self.method, self.method_options or {})
        check_fraction(self.validation_fraction, "validation_fraction")
        if isinstance(self.augment, str) and self.augment not in AUGMENTATIONS:
            raise UnknownNameError("augmentation", self.augment, AUGMENTATIONS)

    @property
    def machine(self) -> Machine:
        """What to train on."""
        return Machine(self.device, self.precision, self.channels_last, self.n_jobs)

    @property
    def augmentation(self) -> Augment | None:
        """What is applied to the samples of every training batch."""
        return AUGMENTATIONS[self.augment] if isinstance(self.augment, str) else self.augment

    def recipe(self, stage: str, n_samples: int | None = None) -> Recipe:
        """Return the recipe of a stage that trains on a data set of `n_samples`."""
        name = stage.partition("-fold-")[0]
        published = self.recipes.get(name, find_method(name).recipe)
        batch_size = self.batch_size
        if batch_size is None and n_samples is not None and name not in self.recipes:
            batch_size = min(published.batch_size, max(_SMALLEST_BATCH, n_samples // _STEPS))
        changes: dict[str, Any] = {"batch_size": batch_size, "patience": self.patience, "optimizer": self.optimizer}
        # A rate belongs to its optimizer.
        if self.optimizer is not None or published.optimizer == find_method(self.method).recipe.optimizer:
            changes |= {name: getattr(self, name) for name in ("learning_rate", "momentum", "weight_decay")}
        return published.changed(self.epochs, **changes)

    def n_folds(self, n_samples: int) -> int:
        """Return in how many folds the posterior of `n_samples` is learned; 1: on themselves."""
        folds = self.folds
        if folds is None:
            folds = _FOLDS if self.transition is None and self.estimator not in _IN_SAMPLE else 1
        if not 1 <= folds <= n_samples:
            raise InputError(f"Expected from 1 to {n_samples:,} folds, got {folds}.")
        return folds
