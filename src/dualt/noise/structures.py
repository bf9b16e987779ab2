"""Transition matrices of known structure: symmetric, pair, asymmetric, random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError, UnknownNameError
from dualt.rng import RandomState, as_generator
from dualt.validation import ClassNames, check_class_names, check_fraction, check_n_classes, class_name


def symmetric(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Sym-ε: a label stays with probability 1 − rate, else it becomes any other class with equal probability.

    Examples
    --------
    >>> symmetric(3, 0.2)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    n_classes, rate = check_n_classes(n_classes), check_fraction(rate, "rate", inclusive=True)
    transition = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(transition, 1 - rate)
    return transition


def pair(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Pair-ε: a label stays with probability 1 − rate, else it becomes the next class (the last becomes the first).

    Examples
    --------
    >>> pair(3, 0.45)
    array([[0.55, 0.45, 0.  ],
           [0.  , 0.55, 0.45],
           [0.45, 0.  , 0.55]])
    """
    n_classes, rate = check_n_classes(n_classes), check_fraction(rate, "rate", inclusive=True)
    identity = np.eye(n_classes)
    return (1 - rate) * identity + rate * np.roll(identity, 1, axis=1)


def asymmetric(
    flips: Mapping[Any, Mapping[Any, float]],
    *,
    n_classes: int | None = None,
    class_names: ClassNames | None = None,
) -> NDArray[np.float64]:
    """Return the matrix of a mapping class → class → rate; labels that are not mentioned stay.

    Parameters
    ----------
    flips
        `{"cat": {"dog": 0.3}}`: three in ten cats are labelled dog. Keys are class numbers, or names if
        `class_names` is given.
    n_classes, class_names
        Give one of them: it determines the number of classes.

    Examples
    --------
    >>> asymmetric({"cat": {"dog": 0.3}}, class_names=["cat", "dog"])
    array([[0.7, 0.3],
           [0. , 1. ]])
    """
    if class_names is not None:
        names = check_class_names(class_names)
    elif n_classes is not None:
        names = tuple(map(str, range(check_n_classes(n_classes))))
    else:
        raise InputError("Expected n_classes or class_names, got neither.")
    index = {name: number for number, name in enumerate(names)}
    transition = np.eye(check_n_classes(len(names)))
    for source, targets in flips.items():
        row = _index_of(source, index)
        for target, rate in targets.items():
            column = _index_of(target, index)
            if row == column:
                raise InputError(f"Expected flips to another class, got {source!r} → {target!r}.")
            transition[row, column] = check_fraction(rate, f"rate of {source!r} → {target!r}", inclusive=True)
            transition[row, row] -= rate
        if transition[row, row] < -1e-12:
            raise InputError(
                f"Expected rates that sum to at most 1, got {1 - transition[row, row]:.6g} for {source!r}."
            )
    return np.clip(transition, 0, 1)


def _index_of(name: Any, index: Mapping[str, int]) -> int:
    if class_name(name) not in index:
        raise LabelsError(f"Expected a class among {', '.join(map(repr, index))}, got {name!r}.")
    return index[class_name(name)]


def random_diagonal_dominant(n_classes: int, rate: float, random_state: RandomState = None) -> NDArray[np.float64]:
    """Random noise of a mean rate: each class has its own rate and its own frequent confusions.

    Class rates are uniform between 0.5 and 1.5 times `rate`, off-diagonal shares Dirichlet(1). Every
    diagonal entry stays the largest of its row: a class rate that is too high for that is lowered, so that the mean
    of large rates is less than `rate`.
    """
    n_classes, rate = check_n_classes(n_classes), check_fraction(rate, "rate", inclusive=True)
    generator = as_generator(random_state)
    rates = rate * generator.uniform(0.5, 1.5, n_classes)
    transition = np.zeros((n_classes, n_classes))
    others = ~np.eye(n_classes, dtype=bool)
    transition[others] = generator.dirichlet(np.ones(n_classes - 1), n_classes).ravel()
    # A row stays diagonally dominant while rate·max(off) < 1 − rate.
    rates = np.minimum(rates, 0.98 / (1 + transition.max(axis=1)))
    transition *= rates[:, None]
    np.fill_diagonal(transition, 1 - rates)
    return transition


def from_name(name: str, n_classes: int, random_state: RandomState = 0) -> NDArray[np.float64]:
    """Return the matrix of a name like `sym-0.2`, `pair-45` (percent), `random-0.3` or `clean`.

    A rate is a fraction up to 1, and percent from 2 or with the sign: `sym-1.5%`. Between 1 and 2 it is refused.

    Examples
    --------
    >>> from_name("pair-45", 2)
    array([[0.55, 0.45],
           [0.45, 0.55]])
    """
    kind, _, amount = name.lower().rpartition("-")
    if name.lower() == "clean":
        return np.eye(check_n_classes(n_classes))
    try:
        rate = float(amount.rstrip("%"))
    except ValueError:
        raise InputError(f"Expected noise like 'sym-0.2', 'pair-45', 'random-0.3' or 'clean', got {name!r}.") from None
    if 1 < rate < 2 and not amount.endswith("%"):
        raise InputError(
            f"Expected a rate of at most 1, or percent, got {name!r}, which could be either. For {rate:g} percent write"
            f" '{kind}-{rate:g}%' or '{kind}-{rate / 100:g}'."
        )
    rate = rate / 100 if rate > 1 or amount.endswith("%") else rate
    if kind in ("sym", "symmetric"):
        return symmetric(n_classes, rate)
    if kind == "pair":
        return pair(n_classes, rate)
    if kind == "random":
        return random_diagonal_dominant(n_classes, rate, random_state)
    raise UnknownNameError("noise", kind, ["sym", "pair", "random", "clean"])
