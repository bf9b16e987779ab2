"""From an experiment to its runs, and from runs to the pieces of work that share a posterior."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

from dualt.datasets import REGISTRY
from dualt.errors import InputError, UnknownNameError
from dualt.estimators import ESTIMATORS
from dualt.io import load_transition
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS
from dualt.noise import from_name
from dualt.reproduce.spec import GIVEN, Experiment, PosteriorSpec, RunSpec, TrainingSpec

# The known matrix of the noise: what no estimate can be better than.
TRUE = "true"
# From the probabilities of samples that the network was trained on, like the paper, though the spec has folds.
IN_SAMPLE = "-in-sample"
# The matrices that an experiment can compare: every estimator, the same in sample, and the truth.
MATRICES = (
    *ESTIMATORS,
    *(f"{name}{IN_SAMPLE}" for name, entry in ESTIMATORS.items() if not entry.needs_clean_labels),
    TRUE,
)
_MATRIX_FILES = (".json", ".npy", ".csv")


def runs_of(experiment: Experiment) -> list[RunSpec]:
    """Return every run of the experiment, each once, the posterior before what is made of it."""
    _check_names(experiment)
    return [run for posterior in _posteriors(experiment) for run in _runs_on(posterior, experiment)]


def _runs_on(posterior: PosteriorSpec, experiment: Experiment) -> Iterator[RunSpec]:
    yield RunSpec(posterior, method="ce")
    if posterior.noise != "clean" or experiment.shows == "errors":
        yield from (RunSpec(posterior, estimator) for estimator in experiment.estimators)
    for method in experiment.methods:
        if METHODS[method].takes_transition:
            yield from (RunSpec(posterior, name, method, experiment.method_epochs) for name in experiment.estimators)
        elif method != "ce":
            yield RunSpec(posterior, None, method, experiment.method_epochs)


def _posteriors(experiment: Experiment) -> Iterator[PosteriorSpec]:
    shared = {field.name: getattr(experiment, field.name) for field in fields(TrainingSpec)}
    for dataset, name, size, seed in product(
        experiment.datasets, experiment.noise, experiment.sizes, range(experiment.seeds)
    ):
        noise, matrix = name, None
        if _is_file(name):
            noise, matrix = Path(name).stem, tuple(tuple(map(float, row)) for row in load_transition(name))
        settings = {**shared, "n_test": experiment.n_test if dataset == "synthetic" else None}
        network = experiment.network[dataset]
        yield PosteriorSpec(
            dataset=dataset, noise=noise, matrix=matrix, size=size, seed=seed, network=network, **settings
        )


def _is_file(noise: str) -> bool:
    return Path(noise).suffix.lower() in _MATRIX_FILES


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
        if name != GIVEN and not _is_file(name):
            from_name(name, 10)
    if not (experiment.datasets and experiment.noise and experiment.sizes):
        raise InputError(f"Nothing is left of {experiment.name}: expected a data set, a noise and a size at least.")


@dataclass(frozen=True)
class Work:
    """Runs to be done in one go: all of one posterior, or of several that are trained together."""

    runs: tuple[RunSpec, ...]

    @property
    def posteriors(self) -> tuple[PosteriorSpec, ...]:
        """The posteriors of the runs, each once."""
        return tuple(dict.fromkeys(run.posterior for run in self.runs))


def divide(runs: Iterable[RunSpec], together: bool) -> list[Work]:
    """Return the runs by posterior; with `together`, those that differ in noise and seed alone go together."""
    groups: dict[PosteriorSpec, list[RunSpec]] = {}
    for run in dict.fromkeys(runs):
        key = run.posterior
        if together:
            key = replace(key, seed=0, noise="", matrix=None)
        groups.setdefault(key, []).append(run)
    return [Work(tuple(group)) for group in groups.values()]
