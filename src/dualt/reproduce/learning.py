"""The noisy posteriors of a sweep: data, configuration, and the stages that train them and what starts from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.datasets import Dataset, Split, load_dataset, split_dataset
from dualt.datasets.synthetic import load_synthetic
from dualt.errors import InputError
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS
from dualt.nn.stages import Stages
from dualt.nn.training import Part, TrainingData, as_inputs
from dualt.nn.training.history import OnStage
from dualt.nn.training.inputs import Inputs
from dualt.nn.training.model import make_folder
from dualt.noise import from_name
from dualt.reproduce.spec import GIVEN, PosteriorSpec, RunSpec, Settings
from dualt.validation import check_transition

# Options that not every network has: they are passed on where they say something.
_PLAIN = {"width": 1, "stem": None, "batch_norm": False}


@dataclass(frozen=True)
class Place:
    """Where the work is done: folder of data sets, folder of checkpoints (or none), threads (or torch's own)."""

    data_dir: Path | None = None
    checkpoints: Path | None = None
    n_jobs: int | None = None


@dataclass(eq=False)
class Learned:
    """A posterior with its data; `stages` holds the trained network, `branches` what starts from it, by estimator.

    `estimates` keeps what was measured of every matrix, since several methods are trained through one.
    """

    spec: PosteriorSpec
    dataset: Dataset
    split: Split
    stages: Stages
    branches: dict[str, Stages] = field(default_factory=dict)
    estimates: dict[tuple[str, Settings], dict[str, Any]] = field(default_factory=dict)

    def branch(self, run: RunSpec) -> Stages:
        """Return the stages for the run's matrix, which start from the trained network, ready to train its method."""
        name, stages = run.estimator or "none", self.stages
        config = _config(self.spec, stages.config.n_jobs, run)
        if name not in self.branches:
            folder = None if stages.folder is None else make_folder(stages.folder / name)
            trained = {"ce": stages.train("ce")}
            self.branches[name] = replace(stages, config=config, folder=folder, trained=trained, seconds={})
        self.branches[name].config = config
        return self.branches[name]


def prepare(posterior: PosteriorSpec, place: Place, on_epoch: OnStage | None = None) -> Learned:
    """Load, corrupt and split the data of a posterior; nothing is trained yet."""
    dataset = _load(posterior, place.data_dir)
    split = split_dataset(
        dataset,
        _transition(posterior, dataset.n_classes),
        random_state=posterior.seed,
        validation_fraction=posterior.validation_fraction,
        **_sizes(posterior, dataset),
    )
    config = _config(posterior, place.n_jobs)
    folder = None if place.checkpoints is None else make_folder(place.checkpoints / posterior.identity)
    data = _training_data(split, dataset, config.machine.torch_device)
    stages = Stages(data, dataset.class_names, config, folder, folder is not None, on_epoch)
    return Learned(posterior, dataset, split, stages)


def _training_data(split: Split, dataset: Dataset, device: torch.device) -> TrainingData:
    """Return the parts of a split, whose samples are views of the data set's: many splits share them."""
    samples, tested = _inputs(dataset, device)

    def labelled(inputs: Inputs, labels: NDArray[np.int64]) -> Part:
        return Part(inputs, torch.from_numpy(labels).to(device))

    def part(rows: NDArray[np.int64], labels: NDArray[np.int64]) -> Part:
        return labelled(samples.subset(torch.from_numpy(rows).to(device)), labels)

    test = None if tested is None or split.test_y is None else labelled(tested, split.test_y)
    return TrainingData(part(split.train_index, split.train_noisy), part(split.val_index, split.val_noisy), test)


@lru_cache(maxsize=1)
def _inputs(dataset: Dataset, device: torch.device) -> tuple[Inputs, Inputs | None]:
    """Return the samples of a data set to train and to test on."""
    samples = as_inputs(dataset.train_x, dataset.mean, dataset.std, device)
    return samples, None if dataset.test_x is None else as_inputs(dataset.test_x, dataset.mean, dataset.std, device)


def _config(posterior: PosteriorSpec, n_jobs: int | None, run: RunSpec | None = None) -> TrainingConfig:
    """Return the configuration of the posterior, and of the method of a run that starts from it."""
    shared: dict[str, Any] = {"batch_size": posterior.batch_size}
    names = ("optimizer", "learning_rate", "momentum", "schedule")
    own = {**shared, **{name: getattr(posterior, name) for name in names}}
    # A rate belongs to its optimizer: the methods take both or neither.
    of_methods = shared if posterior.optimizer is None else own
    recipes = {"ce": METHODS["ce"].recipe.changed(posterior.epochs, **own)}
    if run is not None:
        settings = {name: dict(changes) for name, changes in run.settings}
        recipes |= {
            name: entry.recipe.changed(run.method_epochs, **{**of_methods, **settings.get(name, {})})
            for name, entry in METHODS.items()
            if name != "ce"
        }
    network = posterior.network
    options = {"width": posterior.width, "stem": posterior.stem, "batch_norm": posterior.batch_norm}
    return TrainingConfig(
        network=with_logistic_loss(network) if posterior.loss == "logistic" else network,
        method="ce",
        network_options={name: value for name, value in options.items() if value != _PLAIN[name]},
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


def check_matrices(posteriors: Iterable[PosteriorSpec], data_dir: Path | None) -> None:
    """Refuse a matrix of the noise that does not fit its data, before all runs on them fail."""
    for name, noise, matrix in dict.fromkeys((each.dataset, each.noise, each.matrix) for each in posteriors):
        if matrix is None:
            continue
        n_classes = _load_real(name, data_dir).n_classes
        if len(matrix) != n_classes:
            raise InputError(
                f"Expected a {n_classes}×{n_classes} matrix for {name}, got {len(matrix)}×{len(matrix)} in {noise}."
            )
        check_transition(matrix)


def _sizes(posterior: PosteriorSpec, dataset: Dataset) -> dict[str, int]:
    """Return how the data set is to be cut, as arguments of `split_dataset`."""
    if posterior.size == 1 or (posterior.dataset == "synthetic" and not posterior.whole_validation):
        return {}
    total = len(dataset.train_y)
    if posterior.whole_validation:
        total -= round(posterior.validation_fraction * total)
    size = round(posterior.size * total) if posterior.size < 1 else min(int(posterior.size), total)
    return {"n_train" if posterior.whole_validation else "n_samples": size}


def _load(posterior: PosteriorSpec, data_dir: Path | None) -> Dataset:
    if posterior.dataset != "synthetic":
        return _load_real(posterior.dataset, data_dir)
    if posterior.size <= 1:
        raise InputError(f"Expected a number of samples for the synthetic data, got the share {posterior.size:g}.")
    n_samples = int(posterior.size)
    if posterior.whole_validation:
        n_samples = posterior.pool or n_samples
    options = {} if posterior.n_test is None else {"n_test": posterior.n_test}
    return load_synthetic(
        n_samples=n_samples, random_state=posterior.seed, standardize=posterior.standardize, **options
    )


@lru_cache(maxsize=1)
def _load_real(name: str, data_dir: Path | None) -> Dataset:
    """Load a data set; the runs on one follow each other, so that one in memory is enough."""
    return load_dataset(name, data_dir)
