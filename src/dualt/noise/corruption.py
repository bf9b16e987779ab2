"""Corrupt labels: draw each one from its class's row of a transition matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.label_arrays import as_label_array
from dualt.labels import LabelCoder, labels_digest
from dualt.rng import RandomState, as_generator, stream
from dualt.validation import ClassNames, check_transition


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
        Class numbers from 0, class names, or one-hot rows. Names belong to the rows of `transition` in
        sorted order unless `class_names` gives another.
    transition : (n_classes, n_classes)
    random_state
        Seed or generator.
    exact
        Round each row's counts to whole labels (largest remainder) instead of drawing them; which labels
        change is still random.
    class_names
        In the order of the rows of `transition`.

    Returns
    -------
    (n_samples,)
        Labels of the same kind as `labels`, which are not changed.

    Examples
    --------
    >>> corrupt(["cat", "dog", "cat"], [[0, 1], [0, 1]]).tolist()
    ['dog', 'dog', 'dog']
    """
    matrix = check_transition(transition)
    array = as_label_array(labels)
    coder = LabelCoder.for_labels(array, len(matrix), class_names, per="row of the matrix")
    codes = coder.encode(array)
    generator = noise_generator(random_state, "corrupt", codes)
    noisy = _allocate(codes, matrix, generator) if exact else _draw(codes, matrix, generator)
    if array.ndim == 2:
        return np.eye(len(matrix), dtype=array.dtype)[noisy]
    return class_values(coder, array.dtype)[noisy]


def noise_generator(random_state: RandomState, purpose: str, codes: NDArray[np.intp]) -> np.random.Generator:
    """Return a generator for noise upon these labels.

    A seed gives a stream of its own, which depends on the labels: neither noise upon noise, nor labels that were drawn
    with the same seed, may share its numbers.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return as_generator(random_state)
    return stream(random_state, f"{purpose} {labels_digest(codes)}")


def class_values(coder: LabelCoder, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the name or number of each class, in the type of the labels if that can hold it."""
    if coder.by_name and dtype.kind not in "biuf":
        return np.array(coder.names)
    numbers = np.array(list(map(int, coder.label_texts)))
    own = numbers.astype(dtype)
    return own if (own == numbers).all() else numbers


def _draw(codes: NDArray[np.intp], matrix: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw from each label's row, by inverting its cumulative distribution."""
    noisy = np.empty_like(codes)
    uniform = rng.random(len(codes))
    for label, row in enumerate(matrix):
        members = np.flatnonzero(codes == label)
        # The last edge must be exactly one, else rounding could draw a class beyond the last.
        edges = np.append(np.cumsum(row)[:-1], 1.0)
        noisy[members] = np.searchsorted(edges, uniform[members], side="right")
    return noisy


def _allocate(codes: NDArray[np.intp], matrix: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Give each label's row its rounded counts, in random order."""
    noisy = np.empty_like(codes)
    for label, row in enumerate(matrix):
        members = np.flatnonzero(codes == label)
        # Equal remainders go to the class that comes first; a shuffled order favours none.
        order = rng.permutation(len(row))
        noisy[members] = rng.permutation(np.repeat(order, largest_remainder(row[order], len(members))))
    return noisy


def largest_remainder(shares: NDArray[np.float64], total: int) -> NDArray[np.intp]:
    """Round `shares * total` to whole numbers that sum to `total`.

    Examples
    --------
    >>> largest_remainder(np.array([0.5, 0.25, 0.25]), 5)
    array([3, 1, 1])
    """
    ideal = shares * total
    counts = np.floor(ideal + 1e-9).astype(np.intp)
    missing = total - int(counts.sum())
    order = np.argsort(-(ideal - counts), kind="stable")
    counts[order[:missing]] += 1
    return counts
