"""The matrices of cleanlab, whose `noise_matrix` is the transpose of a transition matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import TransitionError
from dualt.transition import clean_prior
from dualt.validation import as_array, check_transition

Matrix = NDArray[np.float64]


class CleanlabMatrices(NamedTuple):
    """What cleanlab calls the noise, each (n_classes, n_classes).

    Attributes
    ----------
    noise_matrix
        `noise_matrix[given, true]` = P(given | true); columns sum to one.
    inverse_noise_matrix
        `inverse_noise_matrix[true, given]` = P(true | given); columns sum to one.
    joint
        `joint[given, true]` = P(given, true); sums to one.
    """

    noise_matrix: Matrix
    inverse_noise_matrix: Matrix
    joint: Matrix


def to_cleanlab(transition: ArrayLike, label_counts: ArrayLike) -> CleanlabMatrices:
    """Return cleanlab's matrices of a transition matrix, and of how often each class is given as a label.

    Examples
    --------
    >>> to_cleanlab([[0.8, 0.2], [0.0, 1.0]], [40, 60]).noise_matrix
    array([[0.8, 0. ],
           [0.2, 1. ]])
    """
    matrix = check_transition(transition)
    return of_prior(matrix, clean_prior(matrix, np.asarray(label_counts)))


def of_prior(matrix: Matrix, prior: Matrix) -> CleanlabMatrices:
    """Return the same where the share of each true class is known."""
    joint = (prior[:, None] * matrix).T
    given = joint.sum(axis=1)
    # Of a label that is never given nothing is known: the column says "it is right", and still sums to one.
    inverse = np.divide(joint, given[:, None], out=np.eye(len(matrix)), where=given[:, None] > 0)
    return CleanlabMatrices(matrix.T.copy(), inverse.T.copy(), joint)


def from_cleanlab(noise_matrix: ArrayLike) -> Matrix:
    """Return the transition matrix of cleanlab's `noise_matrix[given, true]`: its transpose.

    Examples
    --------
    >>> from_cleanlab([[0.8, 0.0], [0.2, 1.0]])
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    matrix = _square(noise_matrix)
    columns_do, rows_do = (np.allclose(matrix.sum(axis=axis), 1, atol=1e-3) for axis in (0, 1))
    if rows_do and not columns_do:
        raise TransitionError(
            "Expected cleanlab's noise_matrix[given, true], whose columns sum to 1, got a matrix whose rows do:"
            " it is a transition matrix already, to be used as it is."
        )
    return check_transition(matrix.T)


def from_cleanlab_joint(joint: ArrayLike) -> Matrix:
    """Return the transition matrix of cleanlab's joint[given, true], of shares or of counts.

    Examples
    --------
    >>> from_cleanlab_joint([[40, 0], [10, 50]])
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    pairs = _square(joint).T
    totals = pairs.sum(axis=1, keepdims=True)
    if not (totals > 0).all():
        place = int(np.argmin(totals > 0))
        raise TransitionError(f"Expected every true class (column) to occur, got no examples of class {place}.")
    return check_transition(pairs / totals)


def _square(values: Any) -> Matrix:
    matrix = as_array(values, "a numeric matrix", TransitionError)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiu":
        raise TransitionError(f"Expected a square matrix of numbers, got shape {matrix.shape} of dtype {matrix.dtype}.")
    return matrix.astype(np.float64)
