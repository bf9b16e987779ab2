"""The noisy posteriors of a sweep: each trained once, one at a time or many as one batched network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dualt.datasets import Dataset, Split, load_dataset, split_dataset
from dualt.datasets.synthetic import load_synthetic
from dualt.errors import InputError, UnknownNameError
from dualt.nn.methods import METHODS, build_method
from dualt.nn.methods.settings import Settings
from dualt.nn.methods.stages import Stages
from dualt.nn.networks import build_network
from dualt.nn.pipeline import training_data
from dualt.nn.training import Machine, Trained
from dualt.nn.training.augment import AUGMENTATIONS
from dualt.nn.training.replicated import Replica, train_replicated
from dualt.noise import from_name
from dualt.reproduce.logistic import with_logistic_loss
from dualt.reproduce.spec import GIVEN, Posterior, posterior_identity
from dualt.rng import stream_seed
from dualt.validation import check_transition


@dataclass(frozen=True)
class Place:
    """Where the work is done: folder of data sets, folder of checkpoints (or none), threads (or torch's own)."""

    data_dir: Path | None = None
    checkpoints: Path | None = None
    threads: int | None = None


@dataclass(eq=False)
class Learned:
    """A posterior with its data; `stages` holds the trained network and trains what starts from it."""

    spec: Posterior
    dataset: Dataset
    split: Split
    stages: Stages

    @cached_property
    def pred_probs(self) -> NDArray[np.float32]:
        """Noisy posterior on the training part, in as many folds as the spec says."""
        return self.stages.posterior()

    @cached_property
    def in_sample_probs(self) -> NDArray[np.float32]:
        """Noisy posterior of the network on the very samples that it was trained on."""
        return self.stages.posterior(folds=1)

    def branch(self, name: str, folder: Path | None, method_epochs: int | None) -> Stages:
        """Return stages that start from the trained network, with checkpoints of their own."""
        stages = self.stages
        settings = _settings(self.spec, stages.settings.machine, method_epochs)
        below = None if folder is None else folder / f"{name}-{method_epochs or 'published'}"
        if below is not None:
            below.mkdir(parents=True, exist_ok=True)
        trained = {"ce": stages.train("ce")}
        return Stages(stages.data, stages.n_classes, settings, below, stages.resume, None, trained)


def checkpoint_folder(posterior: Posterior, place: Place) -> Path | None:
    """Return where the networks that belong to a posterior are kept."""
    return None if place.checkpoints is None else place.checkpoints / posterior_identity(posterior)


def prepare(posterior: Posterior, place: Place) -> Learned:
    """Load, corrupt and split the data of a posterior; nothing is trained yet."""
    dataset = _load(posterior, place.data_dir)
    split = split_dataset(
        dataset,
        _transition(posterior, dataset.n_classes),
        random_state=posterior.seed,
        validation_fraction=posterior.validation_fraction,
        n_samples=_n_samples(posterior, dataset),
    )
    machine = Machine(threads=place.threads)
    folder = checkpoint_folder(posterior, place)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    data = training_data(split, dataset, machine)
    stages = Stages(data, dataset.n_classes, _settings(posterior, machine), folder, folder is not None, None)
    return Learned(posterior, dataset, split, stages)


def learn_together(learned: Sequence[Learned]) -> None:
    """Train the posteriors as one batched network, each as it would come out on its own."""
    began = perf_counter()
    replicas = [Replica(_network(one), one.stages.data, _stage_seed(one.spec)) for one in learned]
    recipe = learned[0].stages.settings.recipe("ce")
    train_replicated(replicas, recipe)
    seconds = (perf_counter() - began) / len(learned)
    for one, replica in zip(learned, replicas, strict=True):
        one.stages.trained["ce"] = Trained([replica.network], build_method("ce"), replica.history, recipe)
        one.stages.seconds["ce"] = seconds


def _network(learned: Learned) -> nn.Sequential:
    """Return the network as the stage `ce` of a run of its own would start with."""
    settings, shape = learned.stages.settings, learned.stages.data.train.inputs.shape
    seed = stream_seed(settings.seed, "init/ce/0")
    network = build_network(settings.network, shape, learned.dataset.n_classes, seed=seed, **settings.network_options)
    if not isinstance(network, nn.Sequential):
        raise InputError(f"Expected a multi-layer perceptron to train together, got {learned.spec.network!r}.")
    return network


def _stage_seed(posterior: Posterior) -> int:
    return stream_seed(posterior.seed, "stage/ce")


def _settings(posterior: Posterior, machine: Machine, method_epochs: int | None = None) -> Settings:
    if posterior.augment is not None and posterior.augment not in AUGMENTATIONS:
        raise UnknownNameError("augmentation", posterior.augment, AUGMENTATIONS)
    shared: dict[str, Any] = {"batch_size": posterior.batch_size}
    own = {**shared, "optimizer": posterior.optimizer, "learning_rate": posterior.learning_rate}
    # A rate belongs to its optimizer: the methods take both or neither.
    of_methods = shared if posterior.optimizer is None else own
    recipes = {name: entry.recipe.changed(method_epochs, **of_methods) for name, entry in METHODS.items()}
    recipes["ce"] = METHODS["ce"].recipe.changed(posterior.epochs, **own)
    network = posterior.network
    return Settings(
        method="ce",
        network=with_logistic_loss(network) if posterior.loss == "logistic" else network,
        network_options={} if posterior.width == 1 else {"width": posterior.width},
        weights=posterior.weights,
        recipes=recipes,
        folds=posterior.folds,
        seed=posterior.seed,
        machine=machine,
        augment=None if posterior.augment is None else AUGMENTATIONS[posterior.augment],
    )


def _transition(posterior: Posterior, n_classes: int) -> NDArray[np.float64] | None:
    if posterior.matrix is not None:
        return check_transition(posterior.matrix, n_classes)
    return None if posterior.noise == GIVEN else from_name(posterior.noise, n_classes, random_state=posterior.seed)


def _n_samples(posterior: Posterior, dataset: Dataset) -> int | None:
    if posterior.dataset == "synthetic" or posterior.size == 1:
        return None
    total = len(dataset.train_y)
    return round(posterior.size * total) if posterior.size < 1 else min(int(posterior.size), total)


def _load(posterior: Posterior, data_dir: Path | None) -> Dataset:
    if posterior.dataset != "synthetic":
        return _load_real(posterior.dataset, data_dir)
    if posterior.size <= 1:
        raise InputError(f"Expected a number of samples for the synthetic data, got the share {posterior.size:g}.")
    options = {} if posterior.n_test is None else {"n_test": posterior.n_test}
    return load_synthetic(n_samples=int(posterior.size), random_state=posterior.seed, **options)


@lru_cache(maxsize=1)
def _load_real(name: str, data_dir: Path | None) -> Dataset:
    """Load a data set; the runs on one follow each other, so that one in memory is enough."""
    return load_dataset(name, data_dir)
