"""Noise that depends on the class only: transition matrices of known structure, and labels corrupted by a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import InputError, LabelsError, UnknownNameError
from dualt.labels import LabelCoder, as_label_array
from dualt.rng import RandomState, as_generator, stream
from dualt.transition import matrix_for
from dualt.validation import (
    ClassNames,
    check_class_names,
    check_fraction,
    check_n_classes,
    check_transition,
    class_name,
)


def symmetric(n_classes: int, rate: float) -> NDArray[np.float64]:
    """Return Sym-ε: a label stays with probability 1 − rate, else it becomes any other class, all equally likely.

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
    """Return Pair-ε: a label stays with probability 1 − rate, else it becomes the next class (the last the first).

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


def asymmetric(flips: Mapping[Any, Mapping[Any, float]], *, class_names: ClassNames) -> NDArray[np.float64]:
    """Return the matrix of a mapping class → class → rate; labels that are not mentioned stay.

    For class numbers `class_names` are `range(n_classes)`.

    Examples
    --------
    >>> asymmetric({"cat": {"dog": 0.3}}, class_names=["cat", "dog"])
    array([[0.7, 0.3],
           [0. , 1. ]])
    """
    names = check_class_names(class_names)
    transition = np.eye(check_n_classes(len(names)))
    for source, targets in flips.items():
        for target, rate in targets.items():
            unknown = [name for name in (source, target) if class_name(name) not in names]
            if unknown:
                raise LabelsError(f"Expected a class among {', '.join(map(repr, names))}, got {unknown[0]!r}.")
            row, column = names.index(class_name(source)), names.index(class_name(target))
            if row == column:
                raise InputError(f"Expected flips to another class, got {source!r} → {target!r}.")
            transition[row, column] = check_fraction(rate, f"rate of {source!r} → {target!r}", inclusive=True)
            transition[row, row] -= rate
    if transition.min() < -1e-12:
        i = int(transition.min(axis=1).argmin())
        raise InputError(f"Expected rates that sum to at most 1, got {1 - transition[i, i]:.6g} for {names[i]!r}.")
    return np.clip(transition, 0, 1)


def random_diagonal_dominant(n_classes: int, rate: float, random_state: RandomState = 0) -> NDArray[np.float64]:
    """Return random noise of a mean rate: each class has its own rate and its own frequent confusions.

    Class rates are uniform between 0.5 and 1.5 times `rate`, off-diagonal shares Dirichlet(1). Every diagonal entry
    stays the largest of its row: class rates too high for that are lowered.
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
    """Return the matrix of a name like `sym-0.2`, `pair-45`, `random-0.3` or `clean`.

    A rate up to 1 is a fraction, a larger one is percent, as is one with the sign: `sym-0.5%`.

    Examples
    --------
    >>> from_name("pair-45", 2)
    array([[0.55, 0.45],
           [0.45, 0.55]])
    """
    kind, _, amount = ("sym-0" if name == "clean" else str(name).lower()).rpartition("-")
    try:
        rate = float(amount.rstrip("%"))
    except ValueError:
        raise InputError(f"Expected noise like 'sym-0.2', 'pair-45', 'random-0.3' or 'clean', got {name!r}.") from None
    if kind not in ("sym", "pair", "random"):
        raise UnknownNameError("noise", name if kind == "clean" else kind, ["sym", "pair", "random", "clean"])
    rate = rate / 100 if rate > 1 or amount.endswith("%") else rate
    if kind == "random":
        return random_diagonal_dominant(n_classes, rate, random_state)
    return pair(n_classes, rate) if kind == "pair" else symmetric(n_classes, rate)


def corrupt(
    labels: Any,
    transition: ArrayLike,
    random_state: RandomState = 0,
    *,
    exact: bool = False,
    class_names: ClassNames | None = None,
) -> NDArray[Any]:
    """Return noisy labels: label i becomes j with probability `transition[i, j]`, independently.

    Parameters
    ----------
    labels : (n_samples,)
        Class numbers from 0, class names, or one-hot rows; the result is of the same kind.
    transition : (n_classes, n_classes)
    random_state
        Seed or generator.
    exact
        Round the counts of each row (largest remainder) instead of drawing them; which labels change is still random.
    class_names
        In the order of the rows of `transition`, unless it names its classes itself; sorted by default.

    Examples
    --------
    >>> corrupt(["cat", "dog", "cat"], [[0, 1], [0, 1]]).tolist()
    ['dog', 'dog', 'dog']
    """
    array = as_label_array(labels)
    coder = LabelCoder.for_labels(array, len(check_transition(transition)), class_names)
    matrix = matrix_for(coder.names, transition)
    codes = coder.encode(array)
    rng = noise_generator(random_state, "corrupt", codes)
    uniform = None if exact else rng.random(len(codes))
    noisy = np.empty_like(codes)
    for label, row in enumerate(matrix):
        members = np.flatnonzero(codes == label)
        if uniform is not None:  # invert the cumulative distribution; its last edge is one, whatever rounding says
            noisy[members] = np.searchsorted(np.cumsum(row)[:-1], uniform[members], side="right")
            continue
        # The largest remainders are rounded up; classes are in random order, so that ties are broken at random.
        order = rng.permutation(len(row))
        ideal = row[order] * len(members)
        counts = np.floor(ideal + 1e-9).astype(np.intp)
        counts[np.argsort(counts - ideal, kind="stable")[: len(members) - counts.sum()]] += 1
        noisy[members] = rng.permutation(np.repeat(order, counts))
    return labels_like(array, noisy, coder)


def noise_generator(random_state: RandomState, purpose: str, codes: NDArray[np.intp]) -> np.random.Generator:
    """Return a generator for noise on these labels.

    A seed gives a stream that also depends on the labels, so that noise on top of noise, or on labels that were drawn
    with the same seed, is independent.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return as_generator(random_state)
    keys = [int.from_bytes(sha256(str(code).encode()).digest()[:8], "little") for code in range(codes.max() + 1)]
    with np.errstate(over="ignore"):
        total = (np.array(keys, np.uint64)[codes] * np.arange(1, 2 * len(codes), 2, dtype=np.uint64)).sum()
    checksum = sha256(f"{len(codes)} {total}".encode()).hexdigest()[:8]
    return stream(random_state, f"{purpose} L{checksum}")


def labels_like(array: NDArray[Any], codes: NDArray[np.intp], coder: LabelCoder) -> NDArray[Any]:
    """Return class numbers as labels of the kind of `array`: one-hot rows, names, or numbers of its type if it fits."""
    if array.ndim == 2:
        return np.eye(coder.n_classes, dtype=array.dtype)[codes]
    if array.dtype.kind not in "biuf":
        return np.array(coder.names)[codes]
    numbers = np.array(list(map(int, coder.label_texts)))
    own = numbers.astype(array.dtype)
    return np.asarray((own if (own == numbers).all() else numbers)[codes])
