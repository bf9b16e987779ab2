"""What a run is, beside its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import nn

from dualt.errors import InputError
from dualt.nn.methods import check_options, find_method
from dualt.nn.training import Machine, Recipe
from dualt.nn.training.loop import Augment
from dualt.results import TransitionEstimate

# The paper reads these off the network's own training data; every other estimator wants probabilities of
# samples that the network has not seen.
_IN_SAMPLE = ("t", "dual-t", "spade")
_FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """Method, matrix, network, recipes, seed and machine of a run.

    Attributes
    ----------
    method
        One of `dualt.nn.methods.METHODS`.
    method_options
        Of the method, such as `{"volume_weight": 1e-3}` for `volminnet`.
    transition
        Name of an estimator, an estimate, or a matrix that is known.
    network, network_options, weights
        Name or factory, its options, and where its pre-trained weights are.
    recipes
        Per stage (`ce` and the methods), instead of the published ones.
    epochs, batch_size
        Of every stage; `None`: as published.
    learning_rate
        Of the method, and of the stages before it that use the same optimizer; `None`: as published.
    patience
        Stop a stage after this many epochs without a better validation accuracy.
    folds
        Learn the posterior out of fold in this many folds; 1: on the training part itself, like the paper;
        `None`: whichever suits the estimator.
    seed, machine, augment
    """

    method: str = "forward"
    transition: str | ArrayLike | TransitionEstimate = "dual-t"
    network: str | Callable[..., nn.Module] = "mlp"
    network_options: Mapping[str, Any] = field(default_factory=dict)
    weights: str | Path | None = None
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    patience: int | None = None
    folds: int | None = None
    seed: int = 0
    machine: Machine = field(default_factory=Machine)
    augment: Augment | None = None
    method_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_options(self.method, self.method_options)

    def recipe(self, stage: str) -> Recipe:
        """Return the recipe of a stage."""
        name = stage.partition("-fold-")[0]
        published = self.recipes.get(name, find_method(name).recipe)
        same_optimizer = published.optimizer == find_method(self.method).recipe.optimizer
        rate = self.learning_rate if same_optimizer else None
        return published.changed(self.epochs, batch_size=self.batch_size, learning_rate=rate, patience=self.patience)

    def n_folds(self, n_samples: int) -> int:
        """Return in how many folds the posterior of `n_samples` is learned; 1: on themselves."""
        folds = self.folds
        if folds is None:
            folds = _FOLDS if isinstance(self.transition, str) and self.transition not in _IN_SAMPLE else 1
        if not 1 <= folds <= n_samples:
            raise InputError(f"Expected from 1 to {n_samples:,} folds, got {folds}.")
        return folds
