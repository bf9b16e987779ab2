"""The algebra of a transition matrix, `transition[i, j] = P(noisy=j | clean=i)`.

Rows are clean classes and sum to one, so `noisy_posterior = clean_posterior @ transition`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt import kernels
from dualt.errors import DualtWarning, TransitionError
from dualt.kernels.posterior import MOST_CUBED, PosteriorKernel, split_background
from dualt.validation import (
    as_probability_table,
    check_n_jobs,
    check_probability_chunk,
    check_transition,
    is_frame,
    names_of_columns,
)

# Above this condition number a matrix is called near singular: its inverse amplifies the errors of the posterior so
# much that it says nothing about the clean class.
NEAR_SINGULAR = 1e3
# Newton steps are taken with at most this many classes, and the matrix is inverted with at most this many.
_FEW_CLASSES, _MANY_CLASSES = 64, 512
_NEWTON_STEPS = 30
_ROUNDING = 1e-9
_CHUNK_BYTES = 1 << 22
# EM steps of `EarlyPosterior`.
EM_STEPS = 8
# Matrix entries that the steps of one prior may read: a few seconds' worth.
_MOST_READ = 2e9


def to_noisy(clean_posterior: ArrayLike, transition: ArrayLike) -> NDArray[np.float64]:
    """Return P(noisy | x) = P(clean | x) @ transition.

    The classes of the matrix, if an estimate or a data frame names them, are matched with named columns.

    Examples
    --------
    >>> to_noisy([[1.0, 0.0]], [[0.8, 0.2], [0.3, 0.7]])
    array([[0.8, 0.2]])
    """
    table, names = as_probability_table(clean_posterior)
    clean = np.asarray(table, dtype=np.float64)
    check_probability_chunk(clean, 0)
    return np.asarray(clean @ matrix_for(names, transition, clean.shape[1]))


def named_classes(transition: Any) -> Sequence[str] | None:
    """Return the class names of an estimate, or of the columns of a data frame; None for a matrix without names."""
    return names_of_columns(transition.columns) if is_frame(transition) else getattr(transition, "class_names", None)


def matrix_for(class_names: Sequence[str] | None, transition: Any, n_classes: int | None = None) -> NDArray[np.float64]:
    """Return a checked matrix; if an estimate or a data frame names its classes, in the order of `class_names`."""
    return match_transition(check_transition(transition, n_classes), named_classes(transition), class_names)


def match_transition(
    matrix: NDArray[np.float64], names: Sequence[str] | None, class_names: Sequence[str] | None
) -> NDArray[np.float64]:
    """Return the matrix, whose classes are called `names`, with its classes in the order of `class_names`.

    Where the names differ, the names 0, 1, 2… are only the numbers of the columns, and fit any.
    """
    if names is None or class_names is None or list(names) == list(class_names):
        return matrix
    if {*names} == {*class_names}:
        order = [list(names).index(name) for name in class_names]
        return matrix[np.ix_(order, order)]
    numbers = [str(number) for number in range(len(matrix))]
    if numbers in (list(names), list(class_names)) or len(class_names) != len(matrix):
        return matrix
    odd = ", ".join(map(repr, sorted({*names} ^ {*class_names})[:4]))
    raise TransitionError(f"Expected a matrix for the classes of the data, got another: {odd} are not in both.")


def clean_prior(transition: NDArray[np.float64], label_counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of each true class: the solution of label shares = prior @ transition on the simplex."""
    max_steps = int(np.clip(_MOST_READ / (2 * transition.size), 12, 90))
    shares = label_counts[None] / label_counts.sum()
    return np.asarray(_solve(shares, transition, _well_conditioned_inverse(transition), max_steps, 1e-8)[0])


def l1_error(a: ArrayLike, b: ArrayLike, *, normalize: bool = False) -> float:
    """Return Σ|a − b| over all entries (Theorem 1), or its mean per row, between 0 and 2, if `normalize`.

    If both name their classes, as estimates and data frames do, these are matched.

    Examples
    --------
    >>> l1_error([[1, 0], [0, 1]], [[0.9, 0.1], [0, 1]])
    0.2
    >>> l1_error([[1, 0], [0, 1]], [[0.9, 0.1], [0, 1]], normalize=True)
    0.1
    """
    first = check_transition(a)
    total = float(np.abs(first - matrix_for(named_classes(a), b, len(first))).sum())
    return round(total / len(first) if normalize else total, 12)


def clean_posterior(pred_probs: Any, transition: ArrayLike, *, n_jobs: int | None = 1) -> NDArray[Any]:
    """Solve P(noisy | x) = q @ transition for q on the simplex: the posterior of the clean class.

    Where the plain inverse, taken with up to 512 classes, is a distribution, it is the answer. Elsewhere q minimises
    KL(p ‖ q @ transition), by Newton's method with up to 64 classes, as far as 100 EM steps go with more.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Posterior of the noisy label.
    transition : (n_classes, n_classes)
        A matrix or an estimate. Its classes, if it names them, are matched with named columns of `pred_probs`.
    n_jobs
        Number of threads; −1 for all cores. The result does not depend on it.

    Returns
    -------
    (n_samples, n_classes), never negative, rows sum to one; float32 for float32 or float16 input.

    Warns
    -----
    DualtWarning
        If the matrix is near singular: the answer is then one of many that fit. Not checked above 512 classes.

    Examples
    --------
    >>> clean_posterior([[0.8, 0.2]], [[0.8, 0.2], [0.3, 0.7]]).round(3)
    array([[1., 0.]])
    """
    table, names = as_probability_table(pred_probs)
    n_classes = table.shape[1]
    matrix = matrix_for(names, transition, n_classes)
    inverse = _well_conditioned_inverse(matrix)
    if inverse is None and n_classes <= _MANY_CLASSES:
        warnings.warn(
            "The transition matrix is near singular: some classes leave the same noisy labels, and the clean posterior"
            " cannot tell them apart.",
            DualtWarning,
            stacklevel=2,
        )
    dtype = np.float32 if table.dtype in (np.float16, np.float32) else np.float64
    result = np.empty(table.shape, dtype)
    # Newton's method takes a matrix per row.
    rows = chunk_rows(n_classes**2 if n_classes <= _FEW_CLASSES else n_classes, 8)

    def solve(start: int) -> None:
        chunk = np.ascontiguousarray(table[start : start + rows], dtype=dtype)
        check_probability_chunk(chunk, start)
        result[start : start + rows] = _solve(chunk, matrix, inverse)

    with ThreadPoolExecutor(check_n_jobs(n_jobs)) as pool:
        for _ in pool.map(solve, range(0, len(table), rows)):  # in order: the error is that of the first bad row
            pass
    return result


def _well_conditioned_inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the inverse; None if the matrix is near singular, or too large for an inverse in seconds."""
    if len(matrix) > _MANY_CLASSES or not np.linalg.cond(matrix) <= NEAR_SINGULAR:  # nor is NaN
        return None
    return np.asarray(np.linalg.inv(matrix), np.float64)


def _solve(
    probs: NDArray[Any],
    matrix: NDArray[np.float64],
    inverse: NDArray[np.float64] | None,
    max_steps: int = 100,
    tolerance: float = 1e-6,
) -> NDArray[np.float64]:
    """Return the clean posterior of rows that are known to be probabilities; see `clean_posterior`.

    An EM step is q ← q · g, where g_i = Σ_j T_ij p_j / (q @ T)_j, and max g − 1 bounds how far KL(p ‖ q @ T) is above
    its minimum: EM stops once that is below `tolerance`.
    """
    # Ignore all-zero columns of T; rows with only such labels stay uniform.
    target = np.where(matrix.any(axis=0), probs, 0).astype(np.float64, copy=False)
    total = target.sum(axis=1, keepdims=True)
    target /= np.where(total > 0, total, 1)
    posterior = np.full(target.shape, 1 / len(matrix))
    active = np.flatnonzero(total > 0)
    if inverse is not None:
        posterior = target @ inverse
        active = np.flatnonzero(posterior.min(axis=1) < -_ROUNDING)
        posterior = np.maximum(posterior, 0)
        posterior /= posterior.sum(axis=1, keepdims=True)
    if len(matrix) <= _FEW_CLASSES:
        posterior[active] = _newton(target[active], matrix) if len(active) else 0
        return posterior
    posterior[active] = 0.9 * target[active] + 0.1 / len(matrix)
    for _ in range(max_steps):
        noisy = np.maximum(posterior[active] @ matrix, np.finfo(float).tiny)
        gain = (target[active] / noisy) @ matrix.T
        posterior[active] *= gain
        active = active[gain.max(axis=1) > 1 + tolerance]
    return posterior


def _newton(target: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minimise Σ q − Σ p log(q @ T) over q ≥ 0 by a primal-dual interior-point method, all rows together."""
    q, dual = np.full(target.shape, 1 / len(matrix)), np.full(target.shape, 1e-2)
    for _ in range(_NEWTON_STEPS):
        noisy = np.maximum(q @ matrix, _ROUNDING**2)  # zero only for all-zero columns
        barrier = 0.1 * (q * dual).mean(axis=1, keepdims=True)
        slope = matrix.sum(axis=1) - (target / noisy) @ matrix.T - barrier / q
        curvature = (matrix * (target / noisy**2)[:, None, :]) @ matrix.T
        system = curvature + (dual / q + 1e-14)[:, :, None] * np.eye(len(matrix))
        move = -np.linalg.solve(system, slope[:, :, None])[:, :, 0]
        dual_move = barrier / q - dual - dual / q * move
        # The whole step, or 0.99 of the way to the boundary.
        q = q + move * 0.99 / np.maximum(0.99, (-move / q).max(axis=1, keepdims=True))
        dual = dual + dual_move * 0.99 / np.maximum(0.99, (-dual_move / dual).max(axis=1, keepdims=True))
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def early_posterior(probs: NDArray[Any], transition: NDArray[Any]) -> NDArray[Any]:
    """Return the clean posterior of every row after a few EM steps; see `EarlyPosterior`.

    All-zero columns of the matrix are ignored; rows with only such labels are returned unchanged.
    """
    found = EarlyPosterior(transition, probs.dtype)(probs)
    if np.asarray(transition).any(axis=0).all():
        return found
    total = found.sum(axis=1, keepdims=True)
    there = total > np.finfo(found.dtype).tiny
    return np.where(there, found / np.where(there, total, 1), probs)


class EarlyPosterior:
    """The clean posterior after a few EM steps q ← q · ((p / (q @ T)) @ Tᵀ) from the uniform distribution.

    Predicted probabilities are themselves estimates, and following them to convergence fits their errors:
    stopping early finds wrong labels and true classes at least as well, in a third of the time. With many classes,
    nearly equal entries of a row of the matrix are taken to be equal; see `split_background`.

    The matrix, which must be valid, is prepared once, for any number of chunks of rows of float32 or float64.

    Steps that go on from another posterior are meant to converge: every other step cubes its factor and the last does
    not. Six of them are nearer to convergence than twelve plain ones, and fast and slow directions both contract, since
    an error that a plain step multiplies by λ, 0 ≤ λ < 1, is multiplied by λ(3λ − 2) in two.
    """

    def __init__(self, transition: NDArray[Any], dtype: Any = np.float64, steps: int = EM_STEPS) -> None:
        self._matrix: NDArray[Any] = np.asarray(transition, dtype)
        self._steps = steps
        self._kernel = PosteriorKernel(self._matrix, steps) if kernels.library else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to workers as the matrix; they prepare it anew."""
        return EarlyPosterior, (self._matrix, self._matrix.dtype, self._steps)

    def __call__(self, probs: NDArray[Any], n_jobs: int = 1, start: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the posterior (n_samples, n_classes), by steps from the uniform distribution or from `start`."""
        if not self._kernel:
            return self._posterior(probs, start)
        posterior = np.empty(probs.shape, self._matrix.dtype) if start is None else start.astype(self._matrix.dtype)
        _in_threads(partial(self._kernel.posterior, goes_on=start is not None), n_jobs, probs, posterior)
        return posterior

    def clearest(self, probs: NDArray[Any], n_jobs: int = 1) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return the most probable class of every row, the first of equals, and its posterior."""
        if n_jobs > 1:
            best, sureness = zip(*_in_threads(self.clearest, n_jobs, probs), strict=True)
            return np.concatenate(best), np.concatenate(sureness)
        if self._kernel:
            return self._kernel.clearest(probs)
        posterior = self._posterior(probs)
        return posterior.argmax(axis=1), posterior.max(axis=1)

    def scores(self, probs: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[Any]]:
        """Return P(label is right), the most probable class and its probability, all given the label y of the row.

        P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky. If the matrix rules the label out for every class that the row
        could be, the label is wrong, and the most probable class is that of q.
        """
        if self._kernel:
            return self._kernel.scores(probs, labels)
        posterior = self._posterior(probs)
        weights = posterior * self._matrix.T[labels]
        total = weights.sum(axis=1, keepdims=True)
        ruled_out = total < np.finfo(total.dtype).tiny
        shares = np.where(ruled_out, posterior, weights / np.where(ruled_out, 1, total))
        right = np.where(ruled_out[:, 0], 0, shares[np.arange(len(labels)), labels])
        return right, shares.argmax(axis=1), shares.max(axis=1)

    def _posterior(self, probs: NDArray[Any], start: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return what the kernel returns, up to rounding."""
        background, kept = split_background(self._matrix)
        entries = np.where(kept, self._matrix - background[:, None], 0)
        if not kept.all():
            from scipy.sparse import csr_array

            entries = csr_array(entries)
        uniform = np.full(probs.shape, 1 / len(background))
        posterior = (uniform if start is None else start).astype(self._matrix.dtype)
        limits = np.finfo(posterior.dtype)
        for left in range(self._steps, 0, -1):
            common = (posterior @ background)[:, None]
            # An entry may lie below the background of its row. Where that leaves nothing, rounding is all there is.
            ratio = probs / np.maximum(posterior @ entries + common, 4 * limits.eps * common + limits.tiny)
            gain = np.maximum(ratio @ entries.T + np.outer(ratio.sum(axis=1), background), 0)
            posterior *= gain if start is None or left % 2 else np.minimum(gain, MOST_CUBED) ** 3
        return posterior


def _in_threads(function: Callable[..., Any], n_jobs: int, *arrays: NDArray[Any]) -> list[Any]:
    """Return the function's results for equal parts of the arrays' rows, each in a thread of its own."""
    if n_jobs == 1:
        return [function(*arrays)]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(function, *(np.array_split(array, n_jobs) for array in arrays)))


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Return exp(x) / Σ exp(x) over each row."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights)


def chunk_rows(n_classes: int, itemsize: int) -> int:
    """Return how many rows fit a core's cache: a power of two, at least 32."""
    rows = max(32, _CHUNK_BYTES // (itemsize * n_classes))
    return 1 << (int(rows).bit_length() - 1)
