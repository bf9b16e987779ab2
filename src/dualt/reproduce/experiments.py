"""Experiments by name: TOML presets with profiles, and changes from the command line."""

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dualt.errors import InputError, UnknownNameError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

EXPERIMENTS = ("figure1", "figure2", "figure3", "table1", "table2", "figure4", "figure5")
PROFILES = ("smoke", "laptop", "paper-text", "paper")

# What removes a value that a lower layer has set; TOML has no null.
_NONE = ("none", None)
_EXPECTED = {int: "a whole number of at least 1", float: "a number", bool: "true or false", str: "a name"}


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """How posteriors are trained; `None` means as published.

    `optimizer`, with `learning_rate`, applies to every stage; without it, `learning_rate` applies to `ce` only.
    `whole_validation` subsamples the training part only, as the authors' code does. `pool` (points that both parts are
    drawn from), `standardize` and `n_test` apply to the synthetic data, `stem` to ResNets, `batch_norm` to multi-layer
    perceptrons.
    """

    stem: Literal["imagenet"] | None = None
    batch_norm: bool = False
    weights: str | None = None
    loss: Literal["cross-entropy", "logistic"] = "cross-entropy"
    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    schedule: Literal["steps", "one-cycle"] | None = None
    optimizer: Literal["sgd", "adam"] | None = None
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
    shows: Literal["posterior", "errors", "deltas", "accuracies"]
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
    recipes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    estimator_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for size in self.sizes:
            if size <= 0 or (size > 1 and not size.is_integer()):
                raise InputError(f"Expected sizes in (0, 1], a share, or whole numbers in {self.name}, got {size!r}.")
        if self.optimizer is not None and self.learning_rate is None:
            raise InputError(f"Expected a learning_rate beside optimizer={self.optimizer} in {self.name}, got none.")
        for dataset in self.datasets:
            if dataset not in self.network:
                raise InputError(f"Expected a network for {dataset!r} in {self.name}: --set network.{dataset}=mlp")


def load_experiment(name: str, profile: str = "laptop", changes: Mapping[str, Any] | None = None) -> Experiment:
    """Return the experiment `name` with the settings of a profile, and `changes` on top.

    `network.mnist` changes one entry of a table; a list may be a text with commas, or a single value.
    """
    check_names("experiment", (name,), (*EXPERIMENTS, "all"))
    check_names("profile", (profile,), PROFILES)
    preset = tomllib.loads((files("dualt.reproduce") / "presets" / f"{name}.toml").read_text(encoding="utf-8"))
    own = preset.pop("profiles", {}).get(profile, {})
    hints, content = get_type_hints(Experiment), _merged(preset, own)
    for key, value in (changes or {}).items():
        first, *path = key.split(".")
        check_names(f"setting of {name}", (first,), hints.keys() - {"name", "profile"})
        setting = value
        for part in reversed(path):
            setting = {part: setting}
        content = _merged(content, {first: setting})
    datasets = _converted(content["datasets"], hints["datasets"], "datasets")
    for key in ("network", "width", "augment"):
        given = content.get(key, {})
        named = given if isinstance(given, Mapping) else dict.fromkeys(datasets, given)
        content[key] = {dataset: named[dataset] for dataset in datasets if dataset in named}
    content |= {"name": name, "profile": profile}
    return Experiment(**{key: _converted(value, hints[key], key) for key, value in content.items()})


def _merged(below: Any, above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` updated with `above`, recursively."""
    if not isinstance(below, Mapping):
        return dict(above)
    both = {key: _merged(below.get(key), own) for key, own in above.items() if isinstance(own, Mapping)}
    return {**below, **above, **both}


def _converted(value: Any, hint: Any, name: str) -> Any:
    """Return a setting in the type of its field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):  # X | None
        return None if value in _NONE else _converted(value, arguments[0], name)
    if origin is tuple:
        value = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_converted(item, arguments[0], name) for item in items)
    if origin is Mapping and isinstance(value, Mapping):
        return {key: _converted(own, arguments[1], f"{name}.{key}") for key, own in value.items() if own not in _NONE}
    if value is True and hint is str:
        value = "true"  # the name of an estimator, and a truth value on the command line
    if origin is Literal:
        expected, fits = " or ".join(map(repr, arguments)), value in arguments
    else:
        expected = _EXPECTED.get(hint, "a table")
        fits = hint is Any or type(value) is hint or (hint is float and type(value) is int)
    if not fits or (hint is int and value < 1):
        raise InputError(f"Expected {expected} for {name}, got {value!r}.")
    return float(value) if hint is float else value


def check_names(kind: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `UnknownNameError` for the first name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownNameError(kind, name, known)
