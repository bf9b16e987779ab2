"""The noisy posteriors of a sweep: each trained once, one at a time or many as one batched network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.datasets import Dataset, Split, load_dataset, split_dataset
from dualt.datasets.synthetic import load_synthetic
from dualt.errors import InputError
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS
from dualt.nn.pipeline import training_data
from dualt.nn.stages import Stages, train_stages
from dualt.nn.training.model import make_folder
from dualt.noise import from_name
from dualt.reproduce.spec import GIVEN, PosteriorSpec
from dualt.validation import check_transition


@dataclass(frozen=True)
class Place:
    """Where the work is done: folder of data sets, folder of checkpoints (or none), threads (or torch's own)."""

    data_dir: Path | None = None
    checkpoints: Path | None = None
    n_jobs: int | None = None


@dataclass(eq=False)
class Learned:
    """A posterior with its data; `stages` holds the trained network and trains what starts from it."""

    spec: PosteriorSpec
    dataset: Dataset
    split: Split
    stages: Stages

    def branch(self, name: str, method_epochs: int | None) -> Stages:
        """Return stages that start from the trained network, with checkpoints of their own."""
        stages, folder = self.stages, self.stages.folder
        if folder is not None:
            folder /= f"{name}-{method_epochs or 'published'}"
            make_folder(folder)
        config = _config(self.spec, stages.config.n_jobs, method_epochs)
        trained = {"ce": stages.train("ce")}
        return Stages(stages.data, stages.class_names, config, folder, stages.resume, trained=trained)


def prepare(posterior: PosteriorSpec, place: Place) -> Learned:
    """Load, corrupt and split the data of a posterior; nothing is trained yet."""
    dataset = _load(posterior, place.data_dir)
    split = split_dataset(
        dataset,
        _transition(posterior, dataset.n_classes),
        random_state=posterior.seed,
        validation_fraction=posterior.validation_fraction,
        n_samples=_n_samples(posterior, dataset),
    )
    config = _config(posterior, place.n_jobs)
    folder = None if place.checkpoints is None else place.checkpoints / posterior.identity
    if folder is not None:
        make_folder(folder)
    data = training_data(split, dataset, config.machine)
    stages = Stages(data, dataset.class_names, config, folder, resume=folder is not None)
    return Learned(posterior, dataset, split, stages)


def learn_together(learned: Sequence[Learned]) -> None:
    """Train the posteriors as one batched network, each as it would come out on its own."""
    train_stages([one.stages for one in learned], "ce")


def _config(posterior: PosteriorSpec, n_jobs: int | None, method_epochs: int | None = None) -> TrainingConfig:
    shared: dict[str, Any] = {"batch_size": posterior.batch_size}
    own = {**shared, "optimizer": posterior.optimizer, "learning_rate": posterior.learning_rate}
    # A rate belongs to its optimizer: the methods take both or neither.
    of_methods = shared if posterior.optimizer is None else own
    recipes = {name: entry.recipe.changed(method_epochs, **of_methods) for name, entry in METHODS.items()}
    recipes["ce"] = METHODS["ce"].recipe.changed(posterior.epochs, **own)
    network = posterior.network
    return TrainingConfig(
        network=with_logistic_loss(network) if posterior.loss == "logistic" else network,
        method="ce",
        network_options={} if posterior.width == 1 else {"width": posterior.width},
        weights=posterior.weights,
        recipes=recipes,
        folds=posterior.folds,
        augment=posterior.augment,
        n_jobs=n_jobs,
        random_state=posterior.seed,
    )


class OneLogit(nn.Module):
    """The logits (0, z) of one output z: their cross entropy is the logistic loss of z, to the letter."""

    def forward(self, z: Tensor) -> Tensor:
        """Return (n, 2) from (n, 1)."""
        return F.pad(z, (1, 0))


def with_logistic_loss(network: str) -> Callable[..., nn.Module]:
    """Return a function that builds `network` with one logit instead of two, which is P(class 1 | x) through σ."""

    def build(input_shape: Sequence[int], n_classes: int, **options: Any) -> nn.Module:
        if n_classes != 2:
            raise InputError(f"Expected two classes for the logistic loss, got {n_classes}. Use loss=cross-entropy.")
        return nn.Sequential(NETWORKS[network].build(input_shape, 1, **options), OneLogit())

    return build


def _transition(posterior: PosteriorSpec, n_classes: int) -> NDArray[np.float64] | None:
    if posterior.matrix is not None:
        return check_transition(posterior.matrix, n_classes)
    return None if posterior.noise == GIVEN else from_name(posterior.noise, n_classes, random_state=posterior.seed)


def _n_samples(posterior: PosteriorSpec, dataset: Dataset) -> int | None:
    if posterior.dataset == "synthetic" or posterior.size == 1:
        return None
    total = len(dataset.train_y)
    return round(posterior.size * total) if posterior.size < 1 else min(int(posterior.size), total)


def _load(posterior: PosteriorSpec, data_dir: Path | None) -> Dataset:
    if posterior.dataset != "synthetic":
        return _load_real(posterior.dataset, data_dir)
    if posterior.size <= 1:
        raise InputError(f"Expected a number of samples for the synthetic data, got the share {posterior.size:g}.")
    options: dict[str, Any] = {} if posterior.n_test is None else {"n_test": posterior.n_test}
    return load_synthetic(n_samples=int(posterior.size), random_state=posterior.seed, **options)


@lru_cache(maxsize=1)
def _load_real(name: str, data_dir: Path | None) -> Dataset:
    """Load a data set; the runs on one follow each other, so that one in memory is enough."""
    return load_dataset(name, data_dir)
