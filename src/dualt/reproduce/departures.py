"""In what the settings of an experiment are not those that the authors ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dualt.nn.methods import METHODS
from dualt.reproduce.presets import load_experiment
from dualt.reproduce.spec import FIELDS, Experiment, base_name

# Which part of a grid is run, and how, makes no result another's.
_NO_SETTINGS = (
    "name", "title", "profile", "shows", "datasets", "noise", "estimators", "methods", "seeds", "together", "sizes",
    "network", "width", "augment", "recipes", "estimator_options",
)  # fmt: skip
# What `None` stands for.
_PUBLISHED = {
    name: getattr(METHODS["ce"].recipe, name)
    for name in ("epochs", "batch_size", "learning_rate", "momentum", "schedule")
}


def departures(experiment: Experiment) -> list[str]:
    """Return the settings that are not those of the `paper` profile, each with its value.

    Which data sets, noises, methods and seeds are run is none; a size is, unless the figure has it.
    """
    paper = load_experiment(experiment.name, "paper")
    pairs: list[tuple[str, Any, Any]] = []
    for name in (field for field in FIELDS if field not in _NO_SETTINGS):
        own, published = (_PUBLISHED.get(name) if (v := getattr(e, name)) is None else v for e in (experiment, paper))
        pairs.append((name, own, published))
    if not {*experiment.sizes} <= {*paper.sizes}:
        pairs.append(("sizes", ", ".join(f"{size:g}" for size in experiment.sizes), None))
    tables = {
        **dict.fromkeys(("network", "width", "augment"), experiment.datasets),
        "recipes": experiment.methods,
        "estimator_options": tuple(map(base_name, experiment.estimators)),
    }
    for name, keys in tables.items():
        own, published = getattr(experiment, name), getattr(paper, name)
        pairs += [(f"{name}.{key}", own.get(key), published.get(key)) for key in keys]
    return [f"{name} ({_shown(own)})" for name, own, published in pairs if own != published]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {own}" for key, own in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
