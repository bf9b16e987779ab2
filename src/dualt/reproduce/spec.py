"""What an experiment is: lists to combine (the experiment), and one point of them (a run)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from dualt.errors import InputError

# Enters every identity: records of another format are never taken for ours.
FORMAT = 1

Shows: TypeAlias = Literal["posterior", "errors", "deltas", "accuracies"]
Loss: TypeAlias = Literal["cross-entropy", "logistic"]
Optimizer: TypeAlias = Literal["sgd", "adam"]
Matrix: TypeAlias = tuple[tuple[float, ...], ...]

# Labels that are noisy as they come, with a matrix that nobody knows.
GIVEN = "given"

# Fields that records of before do not have: without a value they do not enter the identity, which stays the same.
_LATER = ("optimizer",)


@dataclass(frozen=True)
class Posterior:
    """One training of the noisy posterior: data, noise, size, seed, network and schedule.

    Attributes
    ----------
    dataset
    noise
        A name like `sym-20`, `clean`, `given`, or what a matrix is called.
    matrix
        Of a noise that has no name.
    size
        Samples to train and validate on: a share of the data set up to 1; above, a number, or all if there are fewer.
    seed
    network, width, weights, loss
    epochs, batch_size, learning_rate
        `None`: as published.
    optimizer
        With `learning_rate`, of this and every method that follows; `None`: as published.
    augment
    folds
        1: on the training part itself, like the paper.
    validation_fraction
    n_test
        Test points of the synthetic data.
    """

    dataset: str
    noise: str
    matrix: Matrix | None
    size: float
    seed: int
    network: str
    width: float
    weights: str | None
    loss: Loss
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    augment: str | None
    folds: int
    validation_fraction: float
    n_test: int | None
    optimizer: Optimizer | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists; what came later is left out unless it is used."""
        content = asdict(self)
        return {key: value for key, value in content.items() if key not in _LATER or value is not None}


@dataclass(frozen=True)
class Run:
    """A posterior and what is made of it: the matrix of an estimator, a method's accuracy, or both.

    `method="ce"` without an estimator is the posterior itself.
    """

    posterior: Posterior
    estimator: str | None = None
    method: str | None = None
    method_epochs: int | None = None

    @property
    def identity(self) -> str:
        """A hash of everything that the result depends on."""
        return _identity(self.to_dict())

    @property
    def label(self) -> str:
        """What to call it while it runs."""
        return describe(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        return {**asdict(self), "posterior": self.posterior.to_dict()}


def describe(spec: Mapping[str, Any]) -> str:
    """Return what a run is, in a few words, from its plain form."""
    posterior = spec["posterior"]
    words = (posterior["dataset"], posterior["noise"], f"n={posterior['size']:g}", f"seed {posterior['seed']}")
    return " ".join(filter(None, (*words, spec["estimator"], spec["method"])))


def posterior_identity(posterior: Posterior) -> str:
    """Return a hash of everything that the posterior depends on."""
    return _identity(posterior.to_dict())


def _identity(content: Mapping[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Experiment:
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
    optimizer
        With `learning_rate`, of every stage; `None`: as published, and `learning_rate` is that of `ce` alone.
    folds
        Learn the posterior out of fold in so many folds; 1: on the training part itself, like the paper.
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
    width: float = 1.0
    weights: str | None = None
    loss: Loss = "cross-entropy"
    epochs: int | None = None
    method_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    augment: str | None = None
    folds: int = 1
    validation_fraction: float = 0.2
    n_test: int | None = None
    optimizer: Optimizer | None = None

    def __post_init__(self) -> None:
        for name in ("seeds", "folds", *(n for n in _COUNTS if getattr(self, n) is not None)):
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


_COUNTS = ("epochs", "method_epochs", "batch_size", "n_test")
FIELDS = tuple(field.name for field in fields(Experiment))
