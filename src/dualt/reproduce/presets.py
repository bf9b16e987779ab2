"""Experiments by name: TOML presets with profiles, and changes from the command line; keys are strict."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, cast

from dualt.errors import FileError, InputError, UnknownNameError
from dualt.reproduce.spec import FIELDS, Experiment, check_names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

# The paper's figures and tables, and experiments past it.
PAPER_EXPERIMENTS = ("figure1", "figure2", "figure3", "table1", "table2", "figure4", "figure5")
OWN_EXPERIMENTS = ("floor", "better-matrices")
EXPERIMENTS = (*PAPER_EXPERIMENTS, *OWN_EXPERIMENTS)
PROFILES = ("smoke", "laptop", "paper-text", "paper")

# TOML has no null: the word takes a value of a lower layer away.
_NONE = "none"
# Beside TOML's own error, a ValueError: too deep a nesting, and a number of too many digits.
_UNREADABLE = (RecursionError, ValueError)

_LISTS = ("datasets", "noise", "estimators", "methods", "sizes")
# What the loader fills in itself.
_KEYS = tuple(name for name in FIELDS if name not in ("name", "profile"))
_BY_DATASET = ("network", "width", "augment")
_TABLES = ("recipes", "estimator_options")
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("learning_rate", "momentum", "validation_fraction"), (int, float)),
    **dict.fromkeys(("seeds", "epochs", "method_epochs", "batch_size", "folds", "pool", "n_test"), (int,)),
    **dict.fromkeys(("together", "batch_norm", "whole_validation", "standardize"), (bool,)),
    **dict.fromkeys(("network", "augment"), (str, dict)),
    "width": (int, float, dict),
    **dict.fromkeys(_TABLES, (dict,)),
}


def load_experiment(name: str, profile: str = "laptop", changes: Mapping[str, Any] | None = None) -> Experiment:
    """Return the experiment `name` with the settings of a profile, and `changes` on top.

    Examples
    --------
    >>> experiment = load_experiment("figure2", "paper", {"seeds": 2})
    >>> experiment.estimators, experiment.seeds
    (('t', 'dual-t', 'spade', 'clean-count-held-out'), 2)
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
        content = tomllib.loads(text)
    except _UNREADABLE as error:
        raise FileError(f"Cannot read the preset {name}.toml: {error}.") from error
    profiles = content.pop("profiles", {})
    check_names(f"profile in {name}.toml", profiles, PROFILES)
    check_names("profile", (profile,), PROFILES)
    merged: dict[str, Any] = {}
    own = profiles.get(profile, {})
    for layer, where in ((content, f"{name}.toml"), (own, f"profile {profile} of {name}.toml"), (changes or {}, name)):
        check_names(f"key in {where}", layer, _KEYS)
        merged = merge_tables(merged, layer)
    return _build(merged, name, profile)


def merge_tables(below: Any, above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one table over another, table by table all the way down; over anything else, the table alone."""
    if not isinstance(below, Mapping):
        return dict(above)
    both = {key: merge_tables(below.get(key), own) for key, own in above.items() if isinstance(own, Mapping)}
    return {**below, **above, **both}


def _by_dataset(given: Any, datasets: Iterable[str]) -> dict[str, Any]:
    """Return a value by data set; one serves all, and `none` is no value."""
    values = given if isinstance(given, Mapping) else dict.fromkeys(datasets, given)
    return {dataset: value for dataset, value in values.items() if value != _NONE}


def _build(content: dict[str, Any], name: str, profile: str) -> Experiment:
    for key in ("title", "shows", "datasets", "noise", "network"):
        if key not in content:
            raise InputError(f"Expected the key {key!r} in {name}.toml, got none.")
    content = {key: _checked(key, value, name) for key, value in content.items()}
    tables: dict[str, Any] = {key: _by_dataset(content.pop(key, {}), content["datasets"]) for key in _BY_DATASET}
    tables |= {key: content.pop(key, {}) for key in _TABLES}
    content = {key: None if value == _NONE else value for key, value in content.items()}
    return Experiment(name=name, profile=profile, **tables, **content)


def _checked(key: str, value: Any, name: str) -> Any:
    """Return the value with the type that its field has."""
    if key in _LISTS:
        return _checked_list(key, value, name)
    expected = _TYPES.get(key, (str,))
    if value == _NONE:
        return value
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        words = " or ".join(kind.__name__ for kind in expected)
        raise InputError(f"Expected {key} of type {words} in {name}, got {value!r}.")
    return float(cast("float", value)) if float in expected and not isinstance(value, dict) else value


def _checked_list(key: str, value: Any, name: str) -> tuple[Any, ...]:
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    kinds: tuple[type, ...] = (int, float) if key == "sizes" else (str,)
    if any(isinstance(item, bool) or not isinstance(item, kinds) for item in items):
        words = "numbers" if key == "sizes" else "names"
        raise InputError(f"Expected a list of {words} for {key} in {name}, got {value!r}.")
    return tuple(float(item) for item in items) if key == "sizes" else tuple(items)


def parse_change(text: str) -> tuple[str, Any]:
    """Return key and value of `key=value`; the value is TOML, or else a string; `network.mnist=lenet` goes down.

    Lists may be written with commas alone.

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
    parsed = _parse_value(value)
    if key in _LISTS and isinstance(parsed, str):
        parsed = [_parse_value(part) for part in parsed.split(",") if part.strip()]
    for name in reversed(below):
        parsed = {name: parsed}
    return key, parsed


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except _UNREADABLE:
        return text.strip()
