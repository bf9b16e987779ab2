"""The training configuration of `dualt train`, `RobustNetClassifier` and the experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import nn

from dualt.errors import InputError, UnknownNameError
from dualt.estimators import ESTIMATORS
from dualt.nn.methods import METHODS
from dualt.nn.recipe import Optimizer, Recipe
from dualt.nn.samples import AUGMENTATIONS, Augment
from dualt.results import TransitionEstimate
from dualt.validation import check_count, check_fraction

AUTO = "auto"
# Batches have a 32nd of the samples, within these limits; epochs give this many steps, within theirs.
_BATCHES, _BATCH_SIZES = 32, (16, 128)
_STEPS, _EPOCHS = 700, (15, 60)
# Learning rate, and that of methods that refine a trained network.
_RATE, _REFINING_RATE = 2e-3, 5e-4
# Weight decay times the number of samples: like the prior of ridge regression, it matters less with more samples.
_DECAY = 2.0


@dataclass
class TrainingConfig:
    """Settings of a training run, besides its data.

    Parameters
    ----------
    network
        Name in `dualt.nn.networks.NETWORKS`, or a function `(input_shape, n_classes, **options) -> nn.Module`.
    method
        Name in `dualt.nn.methods.METHODS`, or `"auto"`: Forward if the estimate says that one class is mistaken for
        another, else DivideMix, or plain cross entropy if hardly any labels are wrong. If the estimate cannot be
        trusted, cross entropy replaces every method that needs a matrix.
    estimator
        Name in `dualt.estimators.ESTIMATORS`: how the transition matrix is estimated. `None`: the library's default.
    transition
        A known matrix (its rows in the order of the sorted classes) or an estimate, instead of an estimator.
    recipe
        `"default"`: Adam with a one-cycle schedule and enough steps for the data. `"paper"`: every stage as published,
        and dual-T on the training part itself.
    epochs, batch_size, optimizer, learning_rate, momentum, weight_decay
        Of every stage; the optimizer is `"sgd"` or `"adam"`. `None`: as in the recipe; in the default one 15 to 60
        epochs, for at least 700 steps, in batches of a 32nd of the samples, from 16 to 128.
    validation_fraction
        Share of the samples set aside to choose the best epoch, with their noisy labels. The networks of the folds are
        trained on them too.
    folds
        Number of folds for out-of-fold probabilities of all samples; 1: probabilities of the training part by the
        network trained on it, as in the paper. `None`: 5 up to 20,000 samples, 3 up to 100,000, else 2; with the
        paper's recipe 1.
    fold_models
        Number of networks for each row, each with folds and seeds of its own. With two or more the estimator is
        `views` by default, and `folds=3, fold_models=2` takes as long as `folds=5`.
    determined
        Whether an expert could always tell the class from the sample; see `dualt.estimate_transition`.
    network_options
        Such as `{"hidden": (64, 64), "dropout": 0.2, "batch_norm": True}` for `mlp`, and
        `{"width": 0.25, "stem": "imagenet"}` for `resnet18`.
    weights
        Pre-trained weights: a `.safetensors` file, or `"imagenet"`.
    augment
        `"shift"` or `"shift-flip"`, or a function of a batch of images and a generator.
    device, n_jobs
        A device of torch, `"auto"` is a GPU if there is one; number of CPU threads, `None` leaves torch's setting.
    recipes
        A `Recipe` by stage (`ce` and the methods), instead of the one that `recipe` names.
    """

    network: str | Callable[..., nn.Module] = "mlp"
    method: str = AUTO
    estimator: str | None = None
    transition: ArrayLike | TransitionEstimate | None = None
    _: KW_ONLY
    recipe: Literal["default", "paper"] = "default"
    epochs: int | None = None
    batch_size: int | None = None
    optimizer: Optimizer | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    validation_fraction: float = 0.2
    folds: int | None = None
    fold_models: int = 1
    determined: bool | None = None
    network_options: Mapping[str, Any] | None = None
    weights: str | Path | None = None
    augment: str | Augment | None = None
    device: str = "auto"
    n_jobs: int | None = None
    recipes: Mapping[str, Recipe] | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.recipe not in ("default", "paper"):
            raise InputError(f"Expected recipe 'default' or 'paper', got {self.recipe!r}.")
        blind = [name for name, entry in ESTIMATORS.items() if not entry.needs_clean_labels]
        if self.estimator is not None and self.estimator not in blind:
            raise UnknownNameError("estimator without clean labels", self.estimator, blind)
        if self.method not in (AUTO, *METHODS):
            raise UnknownNameError("method", self.method, (AUTO, *METHODS))
        for name in ("epochs", "batch_size", "folds", "fold_models", "n_jobs"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, 1)
        check_fraction(self.validation_fraction, "validation_fraction")
        if isinstance(self.augment, str) and self.augment not in AUGMENTATIONS:
            raise UnknownNameError("augmentation", self.augment, AUGMENTATIONS)


def recipe_of(config: TrainingConfig, stage: str, n_samples: int) -> Recipe:
    """Return the recipe of a stage: given, published, or with enough steps for the data and batches to match."""
    method = stage.partition("-fold-")[0]  # the folds are those of `ce`
    entry, recipe = METHODS[method], (config.recipes or {}).get(method)
    if recipe is None and config.recipe == "paper":
        recipe = entry.recipe
    if recipe is None:
        size = config.batch_size or int(np.clip(n_samples // _BATCHES, *_BATCH_SIZES))
        epochs = int(np.clip(math.ceil(_STEPS / math.ceil(n_samples / size)), *_EPOCHS))
        recipe = Recipe(
            epochs=epochs,
            optimizer="adam",  # without batch norm a good learning rate for SGD depends on the data
            learning_rate=_RATE if entry.starts_from is None else _REFINING_RATE,
            weight_decay=_DECAY / n_samples,
            batch_size=size,
            schedule="one-cycle",
            ramp=max(2, round(entry.ramp_share * epochs)) if entry.recipe.ramp else 0,
        )
    names = ("batch_size", "optimizer", "learning_rate", "momentum", "weight_decay")
    return recipe.changed(config.epochs, **{name: getattr(config, name) for name in names})


def n_folds(config: TrainingConfig, n_samples: int) -> int:
    """Return the number of folds for the probabilities of `n_samples`; 1: in sample."""
    if config.folds is not None:
        if config.folds > n_samples:
            raise InputError(f"Expected from 1 to {n_samples:,} folds, got {config.folds}.")
        return config.folds
    if config.recipe == "paper" or config.transition is not None:
        return 1
    # k folds cost at most k − 1 trainings.
    return min(n_samples, 5 if n_samples <= 20_000 else 3 if n_samples <= 100_000 else 2)
