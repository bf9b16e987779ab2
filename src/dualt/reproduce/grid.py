"""From an experiment to its runs, and from runs to the pieces of work that share a posterior."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from dualt.datasets import REGISTRY
from dualt.errors import InputError, UnknownNameError
from dualt.io import load_transition
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS
from dualt.noise import from_name
from dualt.reproduce.matrices import MATRICES
from dualt.reproduce.spec import GIVEN, Experiment, Matrix, Posterior, Run

_MATRIX_FILES = (".json", ".npy", ".csv")


def runs_of(experiment: Experiment) -> list[Run]:
    """Return every run of the experiment, each once, the posterior before what is made of it."""
    _check_names(experiment)
    return [run for posterior in _posteriors(experiment) for run in _runs_on(posterior, experiment)]


def _runs_on(posterior: Posterior, experiment: Experiment) -> Iterator[Run]:
    yield Run(posterior, method="ce")
    if posterior.noise != "clean" or experiment.shows == "errors":
        yield from (Run(posterior, estimator) for estimator in experiment.estimators)
    for method in experiment.methods:
        if METHODS[method].takes_transition:
            yield from (Run(posterior, name, method, experiment.method_epochs) for name in experiment.estimators)
        elif method != "ce":
            yield Run(posterior, None, method, experiment.method_epochs)


def _posteriors(experiment: Experiment) -> Iterator[Posterior]:
    noises = [_noise(name) for name in experiment.noise]
    points = product(experiment.datasets, noises, experiment.sizes, range(experiment.seeds))
    for dataset, (noise, matrix), size, seed in points:
        yield Posterior(
            dataset=dataset,
            noise=noise,
            matrix=matrix,
            size=size,
            seed=seed,
            network=experiment.network[dataset],
            width=experiment.width,
            weights=experiment.weights,
            loss=experiment.loss,
            epochs=experiment.epochs,
            batch_size=experiment.batch_size,
            learning_rate=experiment.learning_rate,
            augment=experiment.augment,
            folds=experiment.folds,
            validation_fraction=experiment.validation_fraction,
            n_test=experiment.n_test if dataset == "synthetic" else None,
            optimizer=experiment.optimizer,
        )


def _noise(name: str) -> tuple[str, Matrix | None]:
    """Return what a noise is called, and its matrix if it comes from a file."""
    if Path(name).suffix.lower() not in _MATRIX_FILES:
        return name, None
    matrix = load_transition(name)
    return Path(name).stem, tuple(tuple(map(float, row)) for row in matrix)


def _check_names(experiment: Experiment) -> None:
    """Refuse what no run could use, before any runs."""
    names: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("data set", experiment.datasets, REGISTRY),
        ("estimator", experiment.estimators, MATRICES),
        ("method", experiment.methods, METHODS),
        ("network", (experiment.network[dataset] for dataset in experiment.datasets), NETWORKS),
    ]
    for kind, given, known in names:
        for name in given:
            if name not in known:
                raise UnknownNameError(kind, name, known)
    for name in experiment.noise:
        if name != GIVEN and Path(name).suffix.lower() not in _MATRIX_FILES:
            from_name(name, 10)
    if not (experiment.datasets and experiment.noise and experiment.sizes):
        raise InputError(f"Nothing is left of {experiment.name}: expected a data set, a noise and a size at least.")


@dataclass(frozen=True)
class Work:
    """Runs to be done in one go: all of one posterior, or of several that are trained together."""

    runs: tuple[Run, ...]

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """The posteriors of the runs, each once."""
        return tuple(dict.fromkeys(run.posterior for run in self.runs))

    @property
    def label(self) -> str:
        """What to call it while it runs."""
        first, *others = self.posteriors
        more = f" and {len(others)} more" if others else ""
        return f"{first.dataset} {first.noise} n={first.size:g} seed {first.seed}{more}"


def divide(runs: Iterable[Run], together: bool) -> list[Work]:
    """Return the runs by posterior; with `together`, those that differ in noise and seed alone go together."""
    groups: dict[Posterior, list[Run]] = {}
    for run in dict.fromkeys(runs):
        key = run.posterior
        if together:
            key = replace(key, seed=0, noise="", matrix=None)
        groups.setdefault(key, []).append(run)
    return [Work(tuple(group)) for group in groups.values()]
