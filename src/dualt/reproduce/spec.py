"""What an experiment is: lists to combine (the experiment), and one point of them (a run)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from dualt.errors import InputError, UnknownNameError
from dualt.nn.config import TrainingConfig
from dualt.nn.networks.resnet import Stem
from dualt.nn.training.recipe import Optimizer, Schedule

# Enters every identity: records of another format are never taken for ours.
FORMAT = 2

Shows: TypeAlias = Literal["posterior", "errors", "deltas", "accuracies"]
Loss: TypeAlias = Literal["cross-entropy", "logistic"]
Settings: TypeAlias = tuple[tuple[str, Any], ...]

# Labels that are noisy as they come, with a matrix that nobody knows.
GIVEN = "given"

# Enters the identity of what an estimator, a method or the folds have made: raise it when their answers change. Not
# named here: 1. tests/reproduce/test_versions.py holds the answers that belong to these numbers.
VERSIONS: dict[str, int] = {"folds": 2}

_COUNTS = ("seeds", "folds", "epochs", "method_epochs", "batch_size", "n_test", "pool")
_CHOICES = {
    "shows": get_args(Shows), "loss": get_args(Loss), "optimizer": get_args(Optimizer),
    "schedule": get_args(Schedule), "stem": get_args(Stem),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How posteriors are trained; the words are those of `TrainingConfig`, and where a field is `None`, as published.

    Attributes
    ----------
    stem, batch_norm, weights, loss
        Of the network; `stem` is for ResNets, `batch_norm` for multi-layer perceptrons.
    epochs, batch_size, learning_rate, momentum, schedule
    optimizer
        With `learning_rate`, of every stage; `None`: as published, and `learning_rate` is that of `ce` alone.
    folds
        Learn the posterior out of fold in so many folds; 1: on the training part itself, like the paper.
    validation_fraction
    whole_validation
        A size cuts the training part alone, and is counted by it; else both parts together.
    pool
        Points of the synthetic data that both parts are drawn from, with `whole_validation`.
    standardize
        Give the features of the synthetic data mean 0 and deviation 1; images always have it.
    n_test
        Test points of the synthetic data.
    """

    stem: str | None = None
    batch_norm: bool = False
    weights: str | None = None
    loss: Loss = "cross-entropy"
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    schedule: str | None = None
    optimizer: str | None = None
    folds: int = 1
    validation_fraction: float = TrainingConfig.validation_fraction
    whole_validation: bool = False
    pool: int | None = None
    standardize: bool = False
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
        Samples to train (and validate) on: a share of the data set up to 1; above, a number, or all if there are fewer.
    seed, network, width, augment
    """

    dataset: str
    noise: str
    size: float
    seed: int
    network: str
    width: float = 1.0
    matrix: tuple[tuple[float, ...], ...] | None = None
    augment: str | None = None

    @property
    def identity(self) -> str:
        """A hash of everything that the posterior depends on."""
        return _identity({**self.to_dict(), **_made_by(self)})

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists of what is not the default: a field of later changes no identity."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


@dataclass(frozen=True)
class RunSpec:
    """A posterior and what is made of it: the matrix of an estimator, a method's accuracy, or both.

    `method="ce"` without an estimator is the posterior itself. `settings` are changes to the recipes of the method
    and of those that it starts from.
    """

    posterior: PosteriorSpec
    estimator: str | None = None
    method: str | None = None
    method_epochs: int | None = None
    estimator_options: Settings = ()
    settings: tuple[tuple[str, Settings], ...] = ()

    @property
    def identity(self) -> str:
        """A hash of everything that the result depends on."""
        return _identity(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists, and the versions of what made the result."""
        content: dict[str, Any] = {**asdict(self), "posterior": self.posterior.to_dict()}
        content["estimator_options"] = dict(self.estimator_options)
        content["settings"] = {method: dict(changes) for method, changes in self.settings}
        return {**content, **_made_by(self.posterior, base_name(self.estimator or ""), self.method or "")}


def _made_by(posterior: PosteriorSpec, *names: str) -> dict[str, Any]:
    """Return the versions of what made a result, where they are not the first."""
    used = (*names, "folds") if posterior.folds > 1 else names
    versions = {name: VERSIONS[name] for name in used if name in VERSIONS}
    return {"made_by": versions} if versions else {}


# From the probabilities of samples that the network was trained on, like the paper, though the spec has folds; and
# from those of the validation part, which it was not trained on, though they have chosen its epoch.
IN_SAMPLE, HELD_OUT = "-in-sample", "-held-out"


def base_name(estimator: str) -> str:
    """Return the estimator without the word for the samples that it reads."""
    return estimator.removesuffix(IN_SAMPLE).removesuffix(HELD_OUT)


def check_names(kind: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)


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
    network, width, augment
        Per data set.
    together
        Train the networks of all noises and seeds of one size as one batched network.
    method_epochs
        Of every method but `ce`; `None`: as published.
    recipes
        Per method, changes to its published recipe: `{"forward": {"momentum": 0.9}}`.
    estimator_options
        Per estimator: `{"dual-t": {"anchor": "quantile"}}`.
    """

    name: str
    title: str
    profile: str
    shows: Shows
    datasets: tuple[str, ...]
    noise: tuple[str, ...]
    network: Mapping[str, str]
    width: Mapping[str, float]
    augment: Mapping[str, str]
    estimators: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    sizes: tuple[float, ...] = (1.0,)
    seeds: int = 5
    together: bool = False
    method_epochs: int | None = None
    recipes: Mapping[str, Mapping[str, Any]]
    estimator_options: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        for name in (name for name in _COUNTS if getattr(self, name) is not None):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InputError(f"Expected {name} of at least 1 in {self.name}, got {getattr(self, name)!r}.")
        for size in self.sizes:
            if not (isinstance(size, (int, float)) and (0 < size <= 1 or float(size).is_integer())):
                raise InputError(f"Expected sizes in (0, 1], a share, or whole numbers in {self.name}, got {size!r}.")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in (None, *known):
                words = " or ".join(map(repr, known))
                raise InputError(f"Expected {name} {words} in {self.name}, got {getattr(self, name)!r}.")
        if self.optimizer is not None and self.learning_rate is None:
            raise InputError(f"Expected a learning_rate beside optimizer={self.optimizer} in {self.name}, got none.")
        for dataset in self.datasets:
            if dataset not in self.network:
                raise InputError(f"Expected a network for {dataset!r} in {self.name}: --set network.{dataset}=mlp")


FIELDS = tuple(field.name for field in fields(Experiment))
