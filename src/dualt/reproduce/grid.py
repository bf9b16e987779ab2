"""From an experiment to its runs, and from runs to the pieces of work that share a posterior."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from dualt.datasets import REGISTRY
from dualt.errors import InputError
from dualt.estimators import ESTIMATORS
from dualt.io import load_transition
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS
from dualt.nn.training import Recipe
from dualt.nn.training.augment import AUGMENTATIONS
from dualt.noise import from_name
from dualt.reproduce.cost import lineage
from dualt.reproduce.spec import (
    GIVEN,
    HELD_OUT,
    IN_SAMPLE,
    Experiment,
    PosteriorSpec,
    RunSpec,
    Settings,
    TrainingSpec,
    base_name,
    check_names,
)

# The known matrix of the noise: what no estimate can be better than.
TRUE = "true"
# The matrices that an experiment can compare: every estimator, the same on other samples, and the truth.
MATRICES = (
    *ESTIMATORS,
    *(
        f"{name}{samples}"
        for name, entry in ESTIMATORS.items()
        for samples in (IN_SAMPLE, HELD_OUT)
        if not entry.needs_clean_labels
    ),
    TRUE,
)
STACKABLE = ("mlp", "mlp-small")
_RECIPE_FIELDS = tuple(field.name for field in fields(Recipe))
_MATRIX_FILES = (".json", ".npy", ".csv")

# More would be a list of runs that fits no memory, and a slip of the keyboard.
_MOST_SEEDS = 10_000


def runs_of(experiment: Experiment) -> list[RunSpec]:
    """Return every run of the experiment, each once, the posterior before what is made of it."""
    _check_names(experiment)
    if experiment.seeds > _MOST_SEEDS:
        raise InputError(f"Expected at most {_MOST_SEEDS:,} seeds, got {experiment.seeds:,}.")
    return [run for posterior in _posteriors(experiment) for run in _runs_on(posterior, experiment)]


def _runs_on(posterior: PosteriorSpec, experiment: Experiment) -> Iterator[RunSpec]:
    def run(estimator: str | None, method: str | None = None) -> RunSpec:
        options = _settings(experiment.estimator_options.get(base_name(estimator or "")))
        if method is None:
            return RunSpec(posterior, estimator, estimator_options=options)
        changes = {name: experiment.recipes[name] for name in lineage(method) if name in experiment.recipes}
        settings = tuple((name, _settings(own)) for name, own in changes.items())
        return RunSpec(posterior, estimator, method, experiment.method_epochs, options, settings)

    yield RunSpec(posterior, method="ce")
    if posterior.noise != "clean" or experiment.shows == "errors":
        yield from map(run, experiment.estimators)
    for method in experiment.methods:
        if METHODS[method].takes_transition:
            yield from (run(name, method) for name in experiment.estimators)
        elif method != "ce":
            yield run(None, method)


def _settings(given: Mapping[str, Any] | None) -> Settings:
    return tuple(sorted((given or {}).items()))


def _posteriors(experiment: Experiment) -> Iterator[PosteriorSpec]:
    shared = {field.name: getattr(experiment, field.name) for field in fields(TrainingSpec)}
    for dataset, name, size, seed in product(
        experiment.datasets, experiment.noise, experiment.sizes, range(experiment.seeds)
    ):
        noise, matrix = name, None
        if _is_file(name):
            noise, matrix = Path(name).name, tuple(tuple(map(float, row)) for row in load_transition(name))
        elif name != GIVEN:
            noise = canonical_noise(name)
        network = experiment.network[dataset]
        own = {"width": experiment.width.get(dataset, 1.0), "augment": experiment.augment.get(dataset)}
        # What does not apply does not enter the identity.
        if dataset != "synthetic":
            own |= {"n_test": None, "pool": None, "standardize": False}
        if not network.startswith("resnet"):
            own["stem"] = None
        if not network.startswith("mlp"):
            own["batch_norm"] = False
        settings = {**shared, **own}
        yield PosteriorSpec(
            dataset=dataset, noise=noise, matrix=matrix, size=size, seed=seed, network=network, **settings
        )


def canonical_noise(name: str) -> str:
    """Return the one name of a noise that can be written in several ways.

    Examples
    --------
    >>> canonical_noise("sym-0.2"), canonical_noise("Symmetric-20%"), canonical_noise("pair-45")
    ('sym-20', 'sym-20', 'pair-45')
    """
    from_name(name, 10)
    kind, _, amount = name.lower().rpartition("-")
    if not kind:
        return name.lower()
    rate = float(amount.rstrip("%"))
    percent = round(rate if rate > 1 or amount.endswith("%") else 100 * rate, 6)
    return f"{'sym' if kind == 'symmetric' else kind}-{percent:g}{'%' if percent <= 1 else ''}"


def _is_file(noise: str) -> bool:
    return Path(noise).suffix.lower() in _MATRIX_FILES


def _check_names(experiment: Experiment) -> None:
    """Refuse what no run could use, before any runs."""
    names: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("data set", experiment.datasets, REGISTRY),
        ("estimator", experiment.estimators, MATRICES),
        ("method", experiment.methods, METHODS),
        ("network", (experiment.network[dataset] for dataset in experiment.datasets), NETWORKS),
        ("augmentation", experiment.augment.values(), AUGMENTATIONS),
        ("method", experiment.recipes, METHODS),
        ("estimator", experiment.estimator_options, ESTIMATORS),
    ]
    for kind, given, known in names:
        check_names(kind, given, known)
    _check_recipes(experiment)
    for name in experiment.noise:
        if name != GIVEN and not _is_file(name):
            from_name(name, 10)
    files = [Path(name).name for name in experiment.noise if _is_file(name)]
    if len({*files}) < len(files):
        raise InputError(f"Expected matrices in files of different names, got {', '.join(files)}: tables call them so.")
    if not (experiment.datasets and experiment.noise and experiment.sizes):
        raise InputError(f"Nothing is left of {experiment.name}: expected a data set, a noise and a size at least.")


def _check_recipes(experiment: Experiment) -> None:
    for method, changes in experiment.recipes.items():
        if method == "ce":
            raise InputError("Expected settings of the posterior without a method's name: --set momentum=0.9")
        check_names(f"setting of {method}", changes, _RECIPE_FIELDS)
        METHODS[method].recipe.changed(experiment.method_epochs, **changes)


def divide(runs: Iterable[RunSpec], together: bool) -> list[list[RunSpec]]:
    """Return the runs that are to be done in one go: all of one posterior, or of several that are trained together.

    With `together`, those that differ in noise and seed alone go together. Only perceptrons can be trained as one
    batched network.
    """
    groups: dict[PosteriorSpec, list[RunSpec]] = {}
    for run in dict.fromkeys(runs):
        key = run.posterior
        if together and key.network in STACKABLE and key.loss == "cross-entropy":
            key = replace(key, seed=0, noise="", matrix=None)
        groups.setdefault(key, []).append(run)
    return [*groups.values()]
