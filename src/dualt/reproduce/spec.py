"""What an experiment is: lists to combine (the experiment), and one point of them (a run)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from dualt.errors import InputError
from dualt.nn.config import TrainingConfig
from dualt.nn.training.recipe import Optimizer

# Enters every identity: records of another format are never taken for ours.
FORMAT = 1

Shows: TypeAlias = Literal["posterior", "errors", "deltas", "accuracies"]
Loss: TypeAlias = Literal["cross-entropy", "logistic"]

# Labels that are noisy as they come, with a matrix that nobody knows.
GIVEN = "given"

# Fields that older records do not have: without a value they do not enter the identity, which stays the same.
_LATER = ("optimizer",)
_COUNTS = ("seeds", "folds", "epochs", "method_epochs", "batch_size", "n_test")


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How posteriors are trained; the words are those of `TrainingConfig`, and where a field is `None`, as published.

    Attributes
    ----------
    width, weights, loss
        Of the network.
    epochs, batch_size, learning_rate
    optimizer
        With `learning_rate`, of every stage; `None`: as published, and `learning_rate` is that of `ce` alone.
    augment
    folds
        Learn the posterior out of fold in so many folds; 1: on the training part itself, like the paper.
    validation_fraction
    n_test
        Test points of the synthetic data.
    """

    width: float = 1.0
    weights: str | None = None
    loss: Loss = "cross-entropy"
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    optimizer: Optimizer | None = None
    augment: str | None = None
    folds: int = 1
    validation_fraction: float = TrainingConfig.validation_fraction
    n_test: int | None = None


@dataclass(frozen=True, kw_only=True)
class PosteriorSpec(TrainingSpec):
    """One training of the noisy posterior. Its fields are in the records: their names enter the identity.

    Attributes
    ----------
    dataset
    noise
        A name like `sym-20`, `clean`, `given`, or what a matrix is called.
    matrix
        Of a noise that has no name.
    size
        Samples to train and validate on: a share of the data set up to 1; above, a number, or all if there are fewer.
    seed, network
    """

    dataset: str
    noise: str
    matrix: tuple[tuple[float, ...], ...] | None
    size: float
    seed: int
    network: str

    @property
    def identity(self) -> str:
        """A hash of everything that the posterior depends on."""
        return _identity(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists; what came later is left out unless it is used."""
        content = asdict(self)
        return {key: value for key, value in content.items() if key not in _LATER or value is not None}


@dataclass(frozen=True)
class RunSpec:
    """A posterior and what is made of it: the matrix of an estimator, a method's accuracy, or both.

    `method="ce"` without an estimator is the posterior itself.
    """

    posterior: PosteriorSpec
    estimator: str | None = None
    method: str | None = None
    method_epochs: int | None = None

    @property
    def identity(self) -> str:
        """A hash of everything that the result depends on."""
        return _identity(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        return {**asdict(self), "posterior": self.posterior.to_dict()}


def describe(spec: Mapping[str, Any]) -> str:
    """Return what a run is, in a few words, from its plain form."""
    posterior = spec["posterior"]
    words = (posterior["dataset"], posterior["noise"], f"n={posterior['size']:g}", f"seed {posterior['seed']}")
    return " ".join(filter(None, (*words, spec["estimator"], spec["method"])))


def _identity(content: Mapping[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True, kw_only=True)
class Experiment(TrainingSpec):
    """A figure or table: the lists whose combinations are its runs, and how they are trained.

    Attributes
    ----------
    name, title, profile
    shows
        What is drawn: `posterior` error, `errors` of the matrices, `deltas` of the appendix, or `accuracies`.
    datasets, noise, estimators, methods, sizes
        What is combined.
    seeds
        How many, from 0.
    network
        Per data set.
    together
        Train the posteriors of all noises and seeds of one size as one batched network.
    method_epochs
        Of every method but `ce`; `None`: as published.
    """

    name: str
    title: str
    profile: str
    shows: Shows
    datasets: tuple[str, ...]
    noise: tuple[str, ...]
    network: Mapping[str, str]
    estimators: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    sizes: tuple[float, ...] = (1.0,)
    seeds: int = 5
    together: bool = False
    method_epochs: int | None = None

    def __post_init__(self) -> None:
        for name in (name for name in _COUNTS if getattr(self, name) is not None):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InputError(f"Expected {name} of at least 1 in {self.name}, got {getattr(self, name)!r}.")
        for size in self.sizes:
            if not (isinstance(size, (int, float)) and (0 < size <= 1 or float(size).is_integer())):
                raise InputError(f"Expected sizes in (0, 1], a share, or whole numbers in {self.name}, got {size!r}.")
        if self.optimizer not in (None, "sgd", "adam"):
            raise InputError(f"Expected optimizer 'sgd' or 'adam' in {self.name}, got {self.optimizer!r}.")
        if self.optimizer is not None and self.learning_rate is None:
            raise InputError(f"Expected a learning_rate beside optimizer={self.optimizer} in {self.name}, got none.")
        for dataset in self.datasets:
            if dataset not in self.network:
                raise InputError(f"Expected a network for {dataset!r} in {self.name}: --set network.{dataset}=mlp")


FIELDS = tuple(field.name for field in fields(Experiment))
