"""From an experiment to its runs: what is trained, what is estimated from it, and how a run is identified."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

from dualt.datasets import REGISTRY
from dualt.errors import InputError
from dualt.estimators import ESTIMATORS
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS
from dualt.nn.samples import AUGMENTATIONS
from dualt.noise import from_name
from dualt.reproduce.experiments import Experiment, TrainingSpec, check_names

# Part of every identity: records of another format are never taken for ours.
FORMAT = 2

GIVEN = "given"  # labels that are noisy as they come, with an unknown matrix
TRUE = "true"  # the known matrix of the noise
HELD_OUT = "-held-out"  # estimate from the probabilities of the validation part


@dataclass(frozen=True, kw_only=True)
class PosteriorSpec(TrainingSpec):
    """One training of the noisy posterior. The field names are part of the identity.

    `noise` is a name like `sym-20`, `clean` or `given`; written in another way, `sym-0.2`, it is another run. `size`
    is the number of samples to train (and validate) on, or up to 1 a share of the data set.
    """

    dataset: str
    noise: str
    size: float
    seed: int
    network: str
    width: float = 1.0
    augment: str | None = None

    @property
    def identity(self) -> str:
        """A hash of everything that the posterior depends on."""
        return _hash(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return what is not the default: a field that is added later changes no identity."""
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
    estimator_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """A hash of everything that the result depends on."""
        return _hash(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and tables."""
        return {**vars(self), "posterior": self.posterior.to_dict()}

    def __str__(self) -> str:
        posterior = self.posterior
        words = (posterior.dataset, posterior.noise, f"n={posterior.size:g}", f"seed {posterior.seed}")
        return " ".join(filter(None, (*words, self.estimator, self.method)))


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def base_name(estimator: str) -> str:
    """Return the estimator without the suffix `-held-out`."""
    return estimator.removesuffix(HELD_OUT)


def runs_of(experiment: Experiment) -> list[RunSpec]:
    """Return every run of the experiment once, each posterior before what is made of it."""
    check_names("data set", experiment.datasets, REGISTRY)
    check_names("estimator", experiment.estimators, (*ESTIMATORS, *(name + HELD_OUT for name in ESTIMATORS), TRUE))
    check_names("estimator", experiment.estimator_options, ESTIMATORS)
    check_names("method", (*experiment.methods, *experiment.recipes), METHODS)
    check_names("network", experiment.network.values(), NETWORKS)
    check_names("augmentation", experiment.augment.values(), AUGMENTATIONS)
    for noise in experiment.noise:
        if noise != GIVEN:
            from_name(noise, 2)  # refuses a name that is none
    for method, changes in experiment.recipes.items():
        if method == "ce":
            raise InputError("Expected settings of the posterior without a method's name: --set momentum=0.9")
        recipe = METHODS[method].recipe
        check_names(f"setting of {method}", changes, [field.name for field in fields(recipe)])
        recipe.changed(experiment.method_epochs, **changes)
    if not (experiment.datasets and experiment.noise and experiment.sizes):
        raise InputError(f"Expected at least one data set, noise and size for {experiment.name}.")
    seeds = range(experiment.seeds)
    grid = product(experiment.datasets, experiment.noise, experiment.sizes, seeds)
    return [run for cell in grid for run in _runs_on(_posterior(experiment, *cell), experiment)]


def _posterior(experiment: Experiment, dataset: str, noise: str, size: float, seed: int) -> PosteriorSpec:
    own = {field.name: getattr(experiment, field.name) for field in fields(TrainingSpec)}
    own |= {"dataset": dataset, "noise": noise, "size": size, "seed": seed, "network": experiment.network[dataset]}
    own |= {"width": experiment.width.get(dataset, 1.0), "augment": experiment.augment.get(dataset)}
    # Settings that do not apply are not part of the identity.
    if dataset != "synthetic":
        own |= {"n_test": None, "pool": None, "standardize": False}
    if not own["network"].startswith("resnet"):
        own["stem"] = None
    if not own["network"].startswith("mlp"):
        own["batch_norm"] = False
    return PosteriorSpec(**own)


def _runs_on(posterior: PosteriorSpec, experiment: Experiment) -> Iterator[RunSpec]:
    def run(estimator: str | None, method: str | None = None) -> RunSpec:
        options = experiment.estimator_options.get(base_name(estimator or ""), {})
        stages, stage = {}, method  # the method, and those that it starts from
        while stage is not None:
            stages[stage] = experiment.recipes.get(stage)
            stage = METHODS[stage].starts_from
        settings = {stage: changes for stage, changes in stages.items() if changes}
        epochs = None if method is None else experiment.method_epochs
        return RunSpec(posterior, estimator, method, epochs, options, settings)

    yield RunSpec(posterior, method="ce")
    if posterior.noise != "clean" or experiment.shows == "errors":
        yield from map(run, experiment.estimators)
    for method in experiment.methods:
        if METHODS[method].takes_transition:
            yield from (run(name, method) for name in experiment.estimators)
        elif method != "ce":
            yield run(None, method)
