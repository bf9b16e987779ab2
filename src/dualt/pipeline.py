"""The whole recipe: learn the noisy posterior, estimate the matrix, train through it, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from dualt.datasets import Dataset, Split
from dualt.errors import InputError, UnknownNameError
from dualt.estimators import ESTIMATORS, TransitionEstimate, estimate_transition
from dualt.methods import build_method, check_labels_possible, find_method
from dualt.networks import build_network, load_weights
from dualt.rng import stream, stream_seed
from dualt.training import EpochRecord, Machine, Part, Recipe, Trained, TrainingData, as_inputs, predict_probs, train
from dualt.training.loop import Augment
from dualt.training.model import make_folder
from dualt.validation import check_transition

# The paper reads these off the network's own training data; every other estimator wants probabilities of
# samples that the network has not seen.
_IN_SAMPLE = ("t", "dual-t", "spade")
_FOLDS = 5

OnStage = Callable[[str, EpochRecord], None]


@dataclass(frozen=True)
class Settings:
    """What a run is, beside its data.

    Attributes
    ----------
    method
        One of `dualt.methods.METHODS`.
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

    def recipe(self, stage: str) -> Recipe:
        """Return the recipe of a stage."""
        name = stage.partition("-fold-")[0]
        published = self.recipes.get(name, find_method(name).recipe)
        same_optimizer = published.optimizer == find_method(self.method).recipe.optimizer
        rate = self.learning_rate if same_optimizer else None
        return published.changed(self.epochs, batch_size=self.batch_size, learning_rate=rate, patience=self.patience)


@dataclass(frozen=True, eq=False)
class RobustRun:
    """What came out: networks, matrix, and the stages on the way.

    Attributes
    ----------
    settings
    networks
        With the weights that the method reports.
    transition : (C, C) or None
        The matrix that the method was given; `None` if it takes none.
    estimate
        How it was found, if it was estimated.
    pred_probs : (n, C) or None
        Noisy posterior on the training part, if it was learned.
    stages
        Every training run by name, in order.
    seconds
        Per stage and for the estimate.
    """

    settings: Settings
    networks: Sequence[nn.Module]
    transition: NDArray[np.float64] | None
    estimate: TransitionEstimate | None
    pred_probs: NDArray[np.float32] | None
    stages: Mapping[str, Trained]
    seconds: Mapping[str, float]

    @property
    def test_accuracy(self) -> float | None:
        """Accuracy of the method on the clean test part, as its recipe reports it."""
        return self.stages[self.settings.method].test_accuracy

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        network = self.settings.network
        return {
            "method": self.settings.method,
            "network": network if isinstance(network, str) else getattr(network, "__name__", "own"),
            "seed": self.settings.seed,
            "test_accuracy": self.test_accuracy,
            "transition": None if self.transition is None else self.transition.tolist(),
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "stages": {name: _describe(trained) for name, trained in self.stages.items()},
            "seconds": dict(self.seconds),
        }


def _describe(trained: Trained) -> dict[str, Any]:
    return {
        "recipe": trained.recipe.to_dict(),
        "test_accuracy": trained.test_accuracy,
        "best_epoch": trained.history.best_epoch,
        "history": trained.history.to_dict(),
    }


def training_data(split: Split, dataset: Dataset, machine: Machine | None = None) -> TrainingData:
    """Return the parts of a split as standardised tensors on the machine's device."""
    device = (machine or Machine()).torch_device

    def part(samples: Any, labels: NDArray[Any]) -> Part:
        return Part(as_inputs(samples, dataset.mean, dataset.std, device), torch.from_numpy(labels).to(device))

    test = None
    if split.test_x is not None and split.test_y is not None:
        test = part(split.test_x, split.test_y)
    return TrainingData(part(split.train_x, split.train_noisy), part(split.val_x, split.val_noisy), test)


@dataclass
class _Run:
    """One run in the making: every stage is trained once, with a checkpoint of its own."""

    data: TrainingData
    n_classes: int
    settings: Settings
    folder: Path | None
    resume: bool
    on_epoch: OnStage | None
    stages: dict[str, Trained] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def stage(self, name: str, transition: Any = None, data: TrainingData | None = None) -> Trained:
        """Train the stage `name`, which is a method or one fold of the posterior, unless it is done."""
        if name not in self.stages:
            began = perf_counter()
            method_name = name.partition("-fold-")[0]
            method = build_method(method_name, transition)
            start = find_method(method_name).starts_from
            source = None if start is None else self.stage(start, transition)
            networks = [self._network(name, number, source) for number in range(method.n_networks)]
            on_epoch = self.on_epoch
            self.stages[name] = train(
                networks,
                method,
                data or self.data,
                self.settings.recipe(name),
                seed=stream_seed(self.settings.seed, f"stage/{name}"),
                machine=self.settings.machine,
                augment=self.settings.augment,
                checkpoint=None if self.folder is None else self.folder / f"{name}.safetensors",
                resume=self.resume,
                on_epoch=None if on_epoch is None else lambda record: on_epoch(name, record),
            )
            self.seconds[name] = perf_counter() - began
        return self.stages[name]

    def _network(self, stage: str, number: int, source: Trained | None) -> nn.Module:
        settings = self.settings
        shape = self.data.train.inputs.shape
        seed = stream_seed(settings.seed, f"init/{stage}/{number}")
        network = build_network(settings.network, shape, self.n_classes, seed=seed, **settings.network_options)
        if source is not None:
            network.load_state_dict(source.networks[number].state_dict())
        elif settings.weights is not None:
            load_weights(network, settings.weights)
        return network

    def posterior(self, folds: int) -> NDArray[np.float32]:
        """Return P(given label | x) on the training part, in sample or out of fold."""
        inputs = self.data.train.inputs
        if folds == 1:
            return predict_probs(self.stage("ce").networks, inputs).numpy()
        order = stream(self.settings.seed, "folds").permutation(len(inputs))
        probs = np.empty((len(inputs), self.n_classes), np.float32)
        for number, held_out in enumerate(np.array_split(order, folds), start=1):
            rest = np.setdiff1d(order, held_out)
            data = self.data._replace(train=self.data.train.subset(rest))
            trained = self.stage(f"ce-fold-{number}", data=data)
            probs[held_out] = predict_probs(trained.networks, self.data.train.subset(held_out).inputs).numpy()
        return probs


def learn_posterior(
    data: TrainingData,
    n_classes: int,
    settings: Settings | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    on_epoch: OnStage | None = None,
) -> NDArray[np.float32]:
    """Return P(given label | x) on the training part, (n, C): cross entropy, the best noisy validation kept.

    Parameters are those of `train_robustly`.
    """
    settings = settings or Settings(method="ce")
    run = _Run(data, n_classes, settings, _prepared(folder), resume, on_epoch)
    return run.posterior(_folds(settings, len(data.train.inputs)))


def train_robustly(
    data: TrainingData,
    n_classes: int,
    settings: Settings | None = None,
    *,
    class_names: Sequence[str] | None = None,
    clean_labels: NDArray[Any] | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    on_epoch: OnStage | None = None,
) -> RobustRun:
    """Learn the noisy posterior, estimate the transition matrix from it, and train through the matrix.

    Parameters
    ----------
    data
        Noisy training and validation parts and, where there is one, a clean test part.
    n_classes
    settings
        Method, estimator, network, recipes, seed.
    class_names
        For the estimate.
    clean_labels : (n,)
        Of the training part, for the estimator `oracle` only.
    folder
        Where each stage keeps its checkpoint.
    resume
        Continue from the checkpoints in `folder`.
    on_epoch
        Called with the stage's name and the record of each epoch.

    Examples
    --------
    >>> import dualt
    >>> from dualt.datasets import load_dataset, split_dataset
    >>> dataset = load_dataset("synthetic", n_samples=500, n_test=200)
    >>> split = split_dataset(dataset, dualt.noise.symmetric(2, 0.2))
    >>> run = train_robustly(training_data(split, dataset), 2, Settings(epochs=5, network="mlp-small"))
    >>> run.transition.shape, list(run.stages)
    ((2, 2), ['ce', 'forward'])
    """
    settings = settings or Settings()
    takes_transition = find_method(settings.method).takes_transition
    run = _Run(data, n_classes, settings, _prepared(folder), resume, on_epoch)
    transition, estimate, pred_probs = None, None, None
    if takes_transition or settings.method == "ce":
        given: Any = settings.transition
        if isinstance(given, TransitionEstimate):
            estimate, given = given, given.transition
        elif isinstance(given, str):
            _check_estimator(given, clean_labels)
            pred_probs = run.posterior(_folds(settings, len(data.train.inputs)))
            began = perf_counter()
            names = list(class_names or map(str, range(n_classes)))
            labels = np.array(names)[data.train.labels.cpu().numpy()]
            options = {"clean_labels": np.array(names)[clean_labels]} if given == "oracle" else {}
            estimate = estimate_transition(pred_probs, labels, given, class_names=names, **options)
            given, run.seconds["estimate"] = estimate.transition, perf_counter() - began
        transition = check_transition(given, n_classes)
        check_labels_possible(transition, data.train.labels)
    trained = run.stage(settings.method, transition)
    return RobustRun(settings, trained.networks, transition, estimate, pred_probs, run.stages, run.seconds)


def _check_estimator(name: str, clean_labels: NDArray[Any] | None) -> None:
    """Refuse an estimator that could not run, before hours of training."""
    if name not in ESTIMATORS:
        raise UnknownNameError("estimator", name, ESTIMATORS)
    if ESTIMATORS[name].needs_clean_labels and clean_labels is None:
        raise InputError(f"The estimator {name!r} needs the clean labels of the training part, and nobody knows them.")


def _folds(settings: Settings, n_samples: int) -> int:
    folds = settings.folds
    if folds is None:
        folds = _FOLDS if isinstance(settings.transition, str) and settings.transition not in _IN_SAMPLE else 1
    if not 1 <= folds <= n_samples:
        raise InputError(f"Expected from 1 to {n_samples:,} folds, got {folds}.")
    return folds


def _prepared(folder: str | Path | None) -> Path | None:
    if folder is None:
        return None
    make_folder(Path(folder))
    return Path(folder)
