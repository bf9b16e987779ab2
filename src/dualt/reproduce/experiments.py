"""Experiments by name: TOML presets with profiles, and changes from the command line."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Any, Literal, TypeAlias, cast

from dualt.errors import FileError, InputError, UnknownNameError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

Shows: TypeAlias = Literal["posterior", "errors", "deltas", "accuracies"]
Loss: TypeAlias = Literal["cross-entropy", "logistic"]

EXPERIMENTS = ("figure1", "figure2", "figure3", "table1", "table2", "figure4", "figure5")
PROFILES = ("smoke", "laptop", "paper-text", "paper")

_LISTS = ("datasets", "noise", "estimators", "methods", "sizes")
_BY_DATASET = ("network", "width", "augment")
_TABLES = ("recipes", "estimator_options")
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("learning_rate", "momentum", "validation_fraction"), (int, float)),
    **dict.fromkeys(("seeds", "epochs", "method_epochs", "batch_size", "folds", "pool", "n_test"), (int,)),
    **dict.fromkeys(("batch_norm", "whole_validation", "standardize"), (bool,)),
    **dict.fromkeys(("network", "augment"), (str, dict)),
    "width": (int, float, dict),
    **dict.fromkeys(_TABLES, (dict,)),
}
_CHOICES = {
    "shows": ("posterior", "errors", "deltas", "accuracies"), "loss": ("cross-entropy", "logistic"),
    "optimizer": ("sgd", "adam"), "schedule": ("steps", "one-cycle"), "stem": ("auto", "full", "imagenet"),
}  # fmt: skip
# TOML has no null: the word removes a value that a lower layer has set.
_NONE = "none"


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How posteriors are trained; `None` means as published.

    `optimizer`, with `learning_rate`, applies to every stage; without it, `learning_rate` applies to `ce` only. With
    `folds` above 1 the probabilities are out of fold; 1 is in sample, as in the paper. `whole_validation` subsamples
    the training part only, as the authors' code does. `pool` (points that both parts are drawn from), `standardize` and
    `n_test` apply to the synthetic data, `stem` to ResNets, `batch_norm` to multi-layer perceptrons.
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
    validation_fraction: float = 0.2
    whole_validation: bool = False
    pool: int | None = None
    standardize: bool = False
    n_test: int | None = None


@dataclass(frozen=True, kw_only=True)
class Experiment(TrainingSpec):
    """A figure or table: the lists whose combinations are its runs, and how they are trained.

    It `shows` the `posterior` error, the `errors` of matrices, the appendix's `deltas`, or `accuracies`. `seeds` counts
    them from 0; `network`, `width` and `augment` are given per data set; `method_epochs` are those of every
    method but `ce`. `recipes` changes the published recipe of methods (`{"forward": {"momentum": 0.9}}`), and
    `estimator_options` the options of estimators (`{"dual-t": {"anchor": "quantile"}}`).
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
    method_epochs: int | None = None
    recipes: Mapping[str, Mapping[str, Any]]
    estimator_options: Mapping[str, Mapping[str, Any]]

    def __post_init__(self) -> None:
        for name in (name for name, kinds in _TYPES.items() if kinds == (int,)):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InputError(f"Expected {name} of at least 1 in {self.name}, got {value!r}.")
        for size in self.sizes:
            if not (0 < size <= 1 or float(size).is_integer()):
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


def load_experiment(name: str, profile: str = "laptop", changes: Mapping[str, Any] | None = None) -> Experiment:
    """Return the experiment `name` with the settings of a profile, and `changes` on top.

    Examples
    --------
    >>> experiment = load_experiment("figure2", "paper", {"seeds": 2})
    >>> experiment.noise, experiment.seeds
    (('sym-20', 'pair-45'), 2)
    """
    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, (*EXPERIMENTS, "all"))
    text = (files("dualt.reproduce") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_experiment(text, name, profile, changes)


def parse_experiment(
    text: str, name: str, profile: str = "laptop", changes: Mapping[str, Any] | None = None
) -> Experiment:
    """Return the experiment that the TOML `text` describes."""
    try:
        base = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"Cannot read the preset {name}.toml: {error}.") from error
    profiles = base.pop("profiles", {})
    check_names(f"profile in {name}.toml", profiles, PROFILES)
    check_names("profile", (profile,), PROFILES)
    content: dict[str, Any] = {}
    for layer in (base, profiles.get(profile, {}), changes or {}):
        check_names(f"setting of {name}", layer, [key for key in FIELDS if key not in ("name", "profile")])
        content = merge_tables(content, layer)
    for key in ("title", "shows", "datasets", "noise", "network"):
        if key not in content:
            raise InputError(f"Expected the key {key!r} in {name}.toml, got none.")
    content = {key: _checked(key, value, name) for key, value in content.items()}
    tables: dict[str, Any] = {key: content.pop(key, {}) for key in _TABLES}
    for key in _BY_DATASET:
        given = content.pop(key, {})
        values = given if isinstance(given, Mapping) else dict.fromkeys(content["datasets"], given)
        tables[key] = {dataset: value for dataset, value in values.items() if value != _NONE}
    content = {key: None if value == _NONE else value for key, value in content.items()}
    return Experiment(name=name, profile=profile, **tables, **content)


def merge_tables(below: Any, above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` updated with `above`, recursively."""
    if not isinstance(below, Mapping):
        return dict(above)
    both = {key: merge_tables(below.get(key), own) for key, own in above.items() if isinstance(own, Mapping)}
    return {**below, **above, **both}


def _checked(key: str, value: Any, name: str) -> Any:
    """Return the value in the type of its field."""
    if key in _LISTS:
        items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
        kinds: tuple[type, ...] = (int, float) if key == "sizes" else (str,)
        if any(isinstance(item, bool) or not isinstance(item, kinds) for item in items):
            words = "numbers" if key == "sizes" else "names"
            raise InputError(f"Expected a list of {words} for {key} in {name}, got {value!r}.")
        return tuple(map(float, items)) if key == "sizes" else tuple(items)
    expected = _TYPES.get(key, (str,))
    if value == _NONE:
        return value
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        words = " or ".join(kind.__name__ for kind in expected)
        raise InputError(f"Expected {key} of type {words} in {name}, got {value!r}.")
    return float(cast("float", value)) if float in expected and not isinstance(value, dict) else value


def check_names(kind: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `UnknownNameError` for the first name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def parse_change(text: str) -> tuple[str, Any]:
    """Return key and value of `key=value`. The value is TOML, else a string; lists may be written with commas only.

    Examples
    --------
    >>> parse_change("epochs=20"), parse_change("network.mnist=lenet")
    (('epochs', 20), ('network', {'mnist': 'lenet'}))
    >>> parse_change("sizes=0.1,0.3,1.0")
    ('sizes', [0.1, 0.3, 1.0])
    """
    key, equals, value = text.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")):
        raise InputError(f"Expected field=value after --set, got {text!r}.")
    key, *below = key.strip().split(".")
    if key in _LISTS and not value.lstrip().startswith("["):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return key, [_parse_value(part) for part in parts] if key == "sizes" else parts
    parsed = _parse_value(value)
    for name in reversed(below):
        parsed = {name: parsed}
    return key, parsed


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):
        return text.strip()
