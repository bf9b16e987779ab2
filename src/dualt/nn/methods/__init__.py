"""The rows of the paper's Table 1 and methods past it, one file each, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dualt.errors import InputError, UnknownNameError
from dualt.nn.methods import (
    ce,
    co_teaching,
    decoupling,
    dividemix,
    elr,
    forward,
    gce,
    mentornet,
    mixup,
    revision,
    reweighting,
    total_variation,
    volminnet,
)
from dualt.nn.methods.base import Batch, Method, Network, check_labels_possible
from dualt.nn.recipe import Recipe

__all__ = [
    "METHODS",
    "Batch",
    "Method",
    "Network",
    "RegisteredMethod",
    "build_method",
    "check_labels_possible",
    "check_options",
    "find_method",
    "options_of",
]


# Parameters that a method's constructor may have, as named in the error if one is missing.
_NEEDS = {
    "transition": "a transition matrix: estimate one, or pass one",
    "n_classes": "the number of classes: pass n_classes",
    "n_samples": "the size of the training part: pass n_samples",
}


@dataclass(frozen=True)
class RegisteredMethod:
    """A method, its published recipe, and the method whose networks it refines, if any.

    A constructor with a parameter `transition`, `n_classes` or `n_samples` gets the matrix, the number of classes or
    the size of the training part; other parameters are options. `ramp` is the share of the epochs that a ramp takes in
    the default recipe, if the method's own recipe has one.
    """

    build: Callable[..., Method]
    recipe: Recipe
    starts_from: str | None = None
    ramp: float = 0.3

    @property
    def takes_transition(self) -> bool:
        """Whether the method is built with a matrix."""
        return "transition" in inspect.signature(self.build).parameters


METHODS: dict[str, RegisteredMethod] = {
    "ce": RegisteredMethod(ce.CrossEntropy, ce.RECIPE),
    "mixup": RegisteredMethod(mixup.Mixup, mixup.RECIPE),
    "decoupling": RegisteredMethod(decoupling.Decoupling, decoupling.RECIPE),
    "mentornet": RegisteredMethod(mentornet.MentorNet, mentornet.RECIPE),
    "co-teaching": RegisteredMethod(co_teaching.CoTeaching, co_teaching.RECIPE),
    "forward": RegisteredMethod(forward.Forward, forward.RECIPE),
    "reweighting": RegisteredMethod(reweighting.Reweighting, reweighting.RECIPE, starts_from="ce"),
    "revision": RegisteredMethod(revision.Revision, revision.RECIPE, starts_from="reweighting"),
    "gce": RegisteredMethod(gce.GeneralizedCrossEntropy, gce.RECIPE),
    "elr": RegisteredMethod(elr.EarlyLearning, elr.RECIPE),
    "dividemix": RegisteredMethod(dividemix.DivideMix, dividemix.RECIPE, ramp=0.9),
    "volminnet": RegisteredMethod(volminnet.VolMinNet, volminnet.RECIPE),
    "total-variation": RegisteredMethod(total_variation.TotalVariation, total_variation.RECIPE),
}


def find_method(name: str) -> RegisteredMethod:
    """Return the method of that name."""
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return METHODS[name]


def options_of(name: str) -> list[str]:
    """Return the names of the options of the method `name`."""
    return [each for each in inspect.signature(find_method(name).build).parameters if each not in _NEEDS]


def check_options(name: str, options: Iterable[str]) -> None:
    """Refuse an option that the method `name` does not have."""
    known = options_of(name)
    for option in options:
        if option not in known:
            raise InputError(f"Method {name!r} has no option {option!r}. Its options: {', '.join(known) or 'none'}.")


def build_method(
    name: str,
    transition: Any = None,
    *,
    n_classes: int | None = None,
    n_samples: int | None = None,
    **options: Any,
) -> Method:
    """Return a method: with the matrix where it takes one, for `n_classes` where it learns one.

    `n_samples` is the size of the training part, for methods with a memory per sample.

    Examples
    --------
    >>> import dualt
    >>> build_method("forward", dualt.noise.symmetric(10, 0.2)).n_networks
    1
    >>> build_method("volminnet", n_classes=3, volume_weight=1e-3).learned_transition.diagonal()
    tensor([0.6667, 0.6667, 0.6667])
    """
    check_options(name, options)
    build = find_method(name).build
    given = {"transition": transition, "n_classes": n_classes, "n_samples": n_samples}
    needed = {key: value for key, value in given.items() if key in inspect.signature(build).parameters}
    for key, value in needed.items():
        if value is None:
            raise InputError(f"The method {name!r} needs {_NEEDS[key]}.")
    method = build(**needed, **options)
    method.options = options
    return method
