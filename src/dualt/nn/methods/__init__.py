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


@dataclass(frozen=True)
class RegisteredMethod:
    """A method, its published recipe, and what it is built with.

    Attributes
    ----------
    build, recipe
    takes_transition, learns_transition, remembers_samples
        Whether it is built with a matrix, with the number of classes, or with the numbers of samples and classes.
    starts_from
        The method whose networks it refines.
    ramp
        Share of the epochs that its ramp takes in the default recipe, if its recipe has a ramp.
    """

    build: Callable[..., Method]
    recipe: Recipe
    takes_transition: bool = False
    starts_from: str | None = None
    learns_transition: bool = False
    remembers_samples: bool = False
    ramp: float = 0.3


METHODS: dict[str, RegisteredMethod] = {
    "ce": RegisteredMethod(ce.CrossEntropy, ce.RECIPE),
    "mixup": RegisteredMethod(mixup.Mixup, mixup.RECIPE),
    "decoupling": RegisteredMethod(decoupling.Decoupling, decoupling.RECIPE),
    "mentornet": RegisteredMethod(mentornet.MentorNet, mentornet.RECIPE, takes_transition=True),
    "co-teaching": RegisteredMethod(co_teaching.CoTeaching, co_teaching.RECIPE, takes_transition=True),
    "forward": RegisteredMethod(forward.Forward, forward.RECIPE, takes_transition=True),
    "reweighting": RegisteredMethod(reweighting.Reweighting, reweighting.RECIPE, True, starts_from="ce"),
    "revision": RegisteredMethod(revision.Revision, revision.RECIPE, True, starts_from="reweighting"),
    "gce": RegisteredMethod(gce.GeneralizedCrossEntropy, gce.RECIPE),
    "elr": RegisteredMethod(elr.EarlyLearning, elr.RECIPE, remembers_samples=True),
    "dividemix": RegisteredMethod(dividemix.DivideMix, dividemix.RECIPE, remembers_samples=True, ramp=0.9),
    "volminnet": RegisteredMethod(volminnet.VolMinNet, volminnet.RECIPE, learns_transition=True),
    "total-variation": RegisteredMethod(total_variation.TotalVariation, total_variation.RECIPE, learns_transition=True),
}


def find_method(name: str) -> RegisteredMethod:
    """Return the method of that name."""
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return METHODS[name]


def options_of(name: str) -> list[str]:
    """Return the names of the options of the method `name`."""
    parameters = inspect.signature(find_method(name).build).parameters
    return [each for each in parameters if each not in ("transition", "n_classes", "n_samples")]


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
    entry = find_method(name)
    first: tuple[Any, ...] = ()
    if entry.takes_transition:
        if transition is None:
            raise InputError(f"The method {name!r} needs a transition matrix: estimate one, or pass one.")
        first = (transition,)
    elif entry.learns_transition:
        if n_classes is None:
            raise InputError(f"The method {name!r} learns a transition matrix: pass n_classes, its size.")
        first = (n_classes,)
    elif entry.remembers_samples:
        if n_classes is None or n_samples is None:
            raise InputError(f"The method {name!r} has a memory per sample: pass n_samples and n_classes.")
        first = (n_samples, n_classes)
    check_options(name, options)
    method = entry.build(*first, **options)
    method.options = options
    return method
