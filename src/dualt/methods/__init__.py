"""The rows of the paper's Table 1, one file each, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dualt.errors import InputError, UnknownNameError
from dualt.methods import ce, co_teaching, decoupling, forward, mentornet, mixup, revision, reweighting
from dualt.methods.base import BaseMethod, check_labels_possible
from dualt.training import Recipe

__all__ = ["METHODS", "Registered", "build_method", "check_labels_possible", "find_method"]


@dataclass(frozen=True)
class Registered:
    """A method, its published recipe, whether it takes a matrix, and the method it starts from."""

    build: Callable[..., BaseMethod]
    recipe: Recipe
    takes_transition: bool = False
    starts_from: str | None = None


METHODS: dict[str, Registered] = {
    "ce": Registered(ce.CrossEntropy, ce.RECIPE),
    "mixup": Registered(mixup.Mixup, mixup.RECIPE),
    "decoupling": Registered(decoupling.Decoupling, decoupling.RECIPE),
    "mentornet": Registered(mentornet.MentorNet, mentornet.RECIPE, takes_transition=True),
    "co-teaching": Registered(co_teaching.CoTeaching, co_teaching.RECIPE, takes_transition=True),
    "forward": Registered(forward.Forward, forward.RECIPE, takes_transition=True),
    "reweighting": Registered(reweighting.Reweighting, reweighting.RECIPE, True, starts_from="ce"),
    "revision": Registered(revision.Revision, revision.RECIPE, True, starts_from="reweighting"),
}


def find_method(name: str) -> Registered:
    """Return the method of that name."""
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return METHODS[name]


def build_method(name: str, transition: Any = None, **options: Any) -> BaseMethod:
    """Return a method, with the matrix where it takes one.

    Examples
    --------
    >>> import dualt
    >>> build_method("forward", dualt.noise.symmetric(10, 0.2)).n_networks
    1
    """
    entry = find_method(name)
    if not entry.takes_transition:
        return entry.build(**options)
    if transition is None:
        raise InputError(f"The method {name!r} needs a transition matrix: estimate one, or pass it.")
    return entry.build(transition, **options)
