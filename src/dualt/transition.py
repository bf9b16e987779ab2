"""The algebra of a transition matrix, `transition[i, j] = P(noisy=j | clean=i)`.

Rows are clean classes and sum to one, so `noisy_posterior = clean_posterior @ transition`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt import kernels
from dualt.errors import DualtWarning, TransitionError
from dualt.kernels.posterior import PosteriorKernel, split_background
from dualt.validation import (
    as_probability_table,
    check_count,
    check_fraction,
    check_n_jobs,
    check_probability_chunk,
    check_transition,
    scale_with_warning,
)

# Above this condition number a matrix is called near singular: its inverse amplifies errors of the
# posterior so much that nothing about the clean class can be read from it.
NEAR_SINGULAR = 1e3
_FEW_CLASSES, _MANY_CLASSES = 64, 512
_ROUNDING = 1e-9
_NEWTON_STEPS = 30
# SQUAREM asks for longer ones only where there is nothing left to gain, and their squares overflow.
_LONGEST_STRETCH = 1e6
_CHUNK_BYTES = 1 << 22
# Matrix entries that the steps of one prior may read: some seconds' worth.
_MOST_READ = 2e9


def to_noisy(clean_posterior: ArrayLike, transition: ArrayLike) -> NDArray[np.float64]:
    """Return P(noisy | x) = P(clean | x) @ transition.

    The classes of an estimate are matched by name with the columns of a data frame.

    Examples
    --------
    >>> to_noisy([[1.0, 0.0]], [[0.8, 0.2], [0.3, 0.7]])
    array([[0.8, 0.2]])
    """
    table, names = as_probability_table(clean_posterior)
    clean = np.asarray(scale_with_warning(table), dtype=np.float64)
    check_probability_chunk(clean, 0)
    return np.asarray(clean @ _matrix_of(transition, clean.shape[1], names))


def _matrix_of(transition: Any, n_classes: int, names: Sequence[str] | None) -> NDArray[np.float64]:
    """Return a matrix of `n_classes`; that of an estimate, which has names, in the order of the columns' names."""
    matrix = check_transition(transition, n_classes)
    return match_transition(matrix, getattr(transition, "class_names", None), names)


def compose(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix of noise `first` followed by noise `second`: first @ second."""
    first = check_transition(first)
    return first @ check_transition(second, n_classes=len(first))


def match_transition(
    matrix: NDArray[np.float64], names: Sequence[str] | None, class_names: Sequence[str] | None
) -> NDArray[np.float64]:
    """Return the matrix with its classes, called `names`, in the order of `class_names`.

    Where they are not the same names, 0, 1, 2… are only the numbers of the columns, and fit any.
    """
    numbers = [str(number) for number in range(len(matrix))]
    if names is None or class_names is None or list(names) == list(class_names):
        return matrix
    if {*names} != {*class_names}:
        if list(names) == numbers or list(class_names) == numbers or len(class_names) != len(matrix):
            return matrix
        odd = sorted({*names} ^ {*class_names})[:4]
        raise TransitionError(
            f"Expected a matrix of the classes of the data, got another: {', '.join(map(repr, odd))} are not in both."
        )
    order = [list(names).index(name) for name in class_names]
    return matrix[np.ix_(order, order)]


def noise_rates(transition: ArrayLike) -> NDArray[np.float64]:
    """Return P(noisy ≠ clean | clean=i) for every class i: one minus the diagonal."""
    return 1.0 - np.diagonal(check_transition(transition))


def clean_prior(transition: NDArray[np.float64], label_counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of each true class: the solution of label shares = prior @ transition on the simplex."""
    shares = label_counts[None] / label_counts.sum()
    max_steps = int(np.clip(_MOST_READ / (2 * transition.size), 12, 90))
    prior: NDArray[np.float64] = PosteriorSolver(transition, max_steps=max_steps, tolerance=1e-8)(shares)[0]
    return prior


def l1_error(a: ArrayLike, b: ArrayLike, *, normalize: bool = False) -> float:
    """Return Σ|a − b| over all entries (Theorem 1), or its mean per row if `normalize`.

    The mean per row lies between 0 and 2 whatever the number of classes.

    Examples
    --------
    >>> l1_error([[1, 0], [0, 1]], [[0.9, 0.1], [0, 1]])
    0.2
    >>> l1_error([[1, 0], [0, 1]], [[0.9, 0.1], [0, 1]], normalize=True)
    0.1
    """
    first = check_transition(a)
    total = float(np.abs(first - check_transition(b, n_classes=len(first))).sum())
    return round(total / len(first) if normalize else total, 12)


def clean_posterior(
    pred_probs: Any, transition: ArrayLike, *, max_steps: int = 100, tolerance: float = 1e-6, n_jobs: int | None = 1
) -> NDArray[Any]:
    """Solve P(noisy | x) = q @ transition for q on the simplex: the posterior of the clean class.

    Where the plain inverse is a distribution it is the answer. Elsewhere q minimises KL(p ‖ q @ transition), by EM
    steps and, with up to 64 classes, Newton steps; see `PosteriorSolver`.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Posterior of the noisy label.
    transition : (n_classes, n_classes)
        A matrix or an estimate, whose classes are matched by name with the columns of a data frame.
    max_steps
        The most EM steps. With more than 64 classes they may end before the tolerance is met.
    tolerance
        How far the divergence may be above its minimum, in nats.
    n_jobs
        How many threads work on the rows; −1 for all cores. The result does not depend on it.

    Returns
    -------
    (n_samples, n_classes), never negative, rows sum to one; float32 for float32 or float16 input.

    Warns
    -----
    DualtWarning
        If the matrix is near singular: the answer is then one of many that fit. With more than 512 classes this is
        not checked.

    Examples
    --------
    >>> clean_posterior([[0.8, 0.2]], [[0.8, 0.2], [0.3, 0.7]]).round(3)
    array([[1., 0.]])
    """
    table, names = as_probability_table(pred_probs)
    table = scale_with_warning(table)
    matrix = _matrix_of(transition, table.shape[1], names)
    check_fraction(tolerance, "tolerance")
    check_count(max_steps, "max_steps", least=1)
    solver = PosteriorSolver(matrix, max_steps=max_steps, tolerance=tolerance)
    if solver.near_singular:
        warnings.warn(
            "The transition matrix is near singular: some classes leave the same noisy labels, and the"
            " clean posterior cannot tell them apart.",
            DualtWarning,
            stacklevel=2,
        )
    dtype = np.float32 if table.dtype in (np.float16, np.float32) else np.float64
    result = np.empty(table.shape, dtype)
    rows = chunk_rows(table.shape[1], np.dtype(dtype).itemsize)

    def solve(start: int) -> None:
        chunk = np.ascontiguousarray(table[start : start + rows], dtype=dtype)
        check_probability_chunk(chunk, start)
        result[start : start + rows] = solver(chunk)

    with ThreadPoolExecutor(check_n_jobs(n_jobs)) as pool:
        for _ in pool.map(solve, range(0, len(table), rows)):  # in order: the error is that of the first bad row
            pass
    return result


class PosteriorSolver:
    """`clean_posterior` for one matrix and chunks that are known to be probabilities.

    With g_i = Σ_j T_ij p_j / (q @ T)_j, an EM step is q ← q · g, and max g − 1 bounds how far KL(p ‖ q @ T) is above
    its minimum: that is when to stop. Up to `_FEW_CLASSES` what EM has not finished is left to Newton's method. Up to
    `_MANY_CLASSES` the inverse is tried first; of more neither it nor a condition number can be had in seconds.
    """

    def __init__(self, transition: NDArray[Any], *, max_steps: int = 100, tolerance: float = 1e-6) -> None:
        self._matrix: NDArray[np.float64] = np.ascontiguousarray(transition, np.float64)
        self._max_steps = max_steps
        self._tolerance = tolerance
        self._possible = self._matrix.max(axis=0) > 0
        self.near_singular = False
        self._inverse: NDArray[np.float64] | None = None
        if len(transition) <= _MANY_CLASSES:
            self._inverse = _well_conditioned_inverse(self._matrix)
            self.near_singular = self._inverse is None

    def __call__(self, probs: NDArray[Any]) -> NDArray[Any]:
        """Return the clean posterior of every row of `probs`."""
        # Ignore all-zero columns of T; rows with only such labels stay uniform.
        target = np.where(self._possible, probs, 0).astype(np.float64, copy=False)
        total = target.sum(axis=1, keepdims=True)
        target /= np.where(total > 0, total, 1)
        posterior = np.full(probs.shape, 1 / probs.shape[1])
        if self._inverse is not None:
            posterior = target @ self._inverse
            outside = posterior.min(axis=1) < -_ROUNDING
            # EM cannot leave a face of the simplex, so the start keeps a little of every class.
            posterior = np.maximum(posterior, np.where(outside, 1e-3, 0)[:, None])
        else:
            outside = total[:, 0] > 0
            # Of a near singular matrix many posteriors fit, and the least committed is near the uniform one.
            closeness = 0 if self.near_singular else 0.9
            posterior = np.where(outside[:, None], closeness * target + (1 - closeness) * posterior, posterior)
        posterior /= posterior.sum(axis=1, keepdims=True)
        posterior[outside] = self._minimize(target[outside], posterior[outside])
        return posterior.astype(probs.dtype, copy=False)

    def _minimize(self, target: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take EM steps, extrapolated by SQUAREM (Varadhan and Roland 2008), then Newton steps where those were few."""
        active = np.arange(len(target))
        for _ in range(-(-self._max_steps // 3)):
            now, goal = posterior[active], target[active]
            once, gap, _ = self._em_step(goal, now)
            open_ = gap > self._tolerance
            active, now, once, goal = active[open_], now[open_], once[open_], goal[open_]
            if not len(active):
                return posterior
            twice, _, likelihood = self._em_step(goal, once)
            first, second = once - now, twice - 2 * once + now
            stretch = np.clip(_norm(first) / np.maximum(_norm(second), np.finfo(float).tiny), 1, _LONGEST_STRETCH)
            further = np.maximum(now + 2 * stretch * first + stretch**2 * second, 0.1 * twice)
            after, _, reached = self._em_step(goal, further / further.sum(axis=1, keepdims=True))
            posterior[active] = np.where((reached >= likelihood)[:, None], after, twice)
        if len(self._matrix) <= _FEW_CLASSES:
            posterior[active] = self._newton(target[active], posterior[active])
        return posterior

    def _em_step(
        self, target: NDArray[np.float64], posterior: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the posterior after a step and, before it, the bound of the divergence and the log-likelihood."""
        noisy = np.maximum(posterior @ self._matrix, np.finfo(float).tiny)
        gain = (target / noisy) @ self._matrix.T
        return posterior * gain, gain.max(axis=1) - 1, (target * np.log(noisy)).sum(axis=1)

    def _newton(self, target: NDArray[np.float64], posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Minimise Σ q − Σ p log(q @ T) over q ≥ 0 by a primal-dual interior-point method, all rows together."""
        q = np.maximum(posterior, 1e-4)
        dual = np.full_like(q, 1e-2)
        identity = np.eye(q.shape[1])
        for _ in range(_NEWTON_STEPS):
            # A label that no class leaves has an empty column: whatever stands for its share counts for nothing.
            noisy = np.maximum(q @ self._matrix, _ROUNDING**2)
            barrier = 0.1 * (q * dual).mean(axis=1, keepdims=True)
            slope = self._matrix.sum(axis=1) - (target / noisy) @ self._matrix.T - barrier / q
            curvature = (self._matrix * (target / noisy**2)[:, None, :]) @ self._matrix.T
            system = curvature + (dual / q + 1e-14)[:, :, None] * identity
            move = -np.linalg.solve(system, slope[:, :, None])[:, :, 0]
            dual_move = barrier / q - dual - dual / q * move
            q = q + _step_inside(q, move) * move
            dual = dual + _step_inside(dual, dual_move) * dual_move
        found = q / q.sum(axis=1, keepdims=True)
        better = self._em_step(target, found)[2] >= self._em_step(target, posterior)[2]
        return np.where(better[:, None], found, posterior)


def _well_conditioned_inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the inverse; None if the condition number is above `NEAR_SINGULAR`."""
    return np.asarray(np.linalg.inv(matrix), np.float64) if np.linalg.cond(matrix) <= NEAR_SINGULAR else None


def _norm(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt((rows**2).sum(axis=1, keepdims=True)))


def _step_inside(values: NDArray[np.float64], move: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what part of a move, at most all of it, leaves the values of every row positive."""
    longest = np.where(move < 0, -values / np.where(move < 0, move, -1), np.inf).min(axis=1, keepdims=True)
    return np.asarray(np.minimum(1, 0.99 * longest))


def early_posterior(probs: NDArray[Any], transition: NDArray[Any]) -> NDArray[Any]:
    """Return the clean posterior of every row after a few EM steps; see `EarlyPosterior`.

    Labels that the matrix gives to no class are ignored; rows with only such labels are returned unchanged.
    """
    found = EarlyPosterior(transition, probs.dtype)(probs)
    if np.asarray(transition).any(axis=0).all():
        return found
    total = found.sum(axis=1, keepdims=True)
    there = total > np.finfo(found.dtype).tiny
    return np.where(there, found / np.where(there, total, 1), probs)


def bayes_scores(
    probs: NDArray[Any], labels: NDArray[Any], transition: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[Any]]:
    """Return P(given label is right), the most probable class and its probability; see `EarlyPosterior.scores`."""
    return EarlyPosterior(transition, probs.dtype).scores(probs, labels)


class EarlyPosterior:
    """The clean posterior after a few EM steps q ← q · ((p / (q @ T)) @ Tᵀ) from the uniform distribution.

    Predicted probabilities are themselves estimates, and following them to convergence fits their errors:
    stopping early finds wrong labels and true classes at least as well, in a third of the time.

    With many classes, the entries of a row of the matrix that are as good as equal are taken to be equal, which makes a
    step cost as many products as other entries are left; see `split_background`.

    Parameters
    ----------
    transition : (n_classes, n_classes)
        Valid. What can be prepared is prepared once, for any number of chunks of rows, in any number of threads.
    dtype
        float32 or float64: that of the rows, which are valid too.
    steps
        Number of EM steps.
    """

    def __init__(self, transition: NDArray[Any], dtype: Any = np.float64, steps: int = 10) -> None:
        self._matrix: NDArray[Any] = np.asarray(transition, dtype)
        self._steps = steps
        self._kernel = PosteriorKernel(self._matrix, steps) if kernels.library else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to workers as the matrix; they prepare it anew."""
        return EarlyPosterior, (self._matrix, self._matrix.dtype, self._steps)

    def __call__(self, probs: NDArray[Any], n_jobs: int = 1) -> NDArray[Any]:
        """Return the posterior (n_samples, n_classes)."""
        if not self._kernel:
            return self._posterior(probs)
        posterior = np.empty(probs.shape, self._matrix.dtype)
        _in_threads(self._kernel.posterior, n_jobs, probs, posterior)
        return posterior

    def clearest(self, probs: NDArray[Any], n_jobs: int = 1) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return the most probable class of every row, the first of equals, and its posterior."""
        if n_jobs > 1:
            best, sureness = zip(*_in_threads(self.clearest, n_jobs, probs), strict=True)
            return np.concatenate(best), np.concatenate(sureness)
        return self._kernel.clearest(probs) if self._kernel else _largest(self._posterior(probs))

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
        right = weights[np.arange(len(labels)), labels] / np.maximum(total[:, 0], np.finfo(total.dtype).tiny)
        ruled_out = total < np.finfo(total.dtype).tiny
        shares = np.where(ruled_out, posterior, weights / np.where(ruled_out, 1, total))
        return np.where(ruled_out[:, 0], 0, right), *_largest(shares)

    def _posterior(self, probs: NDArray[Any]) -> NDArray[Any]:
        """Return what the kernel returns, up to rounding."""
        background, kept = split_background(self._matrix)
        entries = np.where(kept, self._matrix - background[:, None], 0)
        if not kept.all():
            from scipy.sparse import csr_array

            entries = csr_array(entries)
        posterior = np.full(probs.shape, 1 / len(background), self._matrix.dtype)
        limits = np.finfo(posterior.dtype)
        for _ in range(self._steps):
            common = (posterior @ background)[:, None]
            # An entry may lie below the background of its row. Where that leaves nothing, rounding is all there is.
            ratio = probs / np.maximum(posterior @ entries + common, 4 * limits.eps * common + limits.tiny)
            posterior *= np.maximum(ratio @ entries.T + np.outer(ratio.sum(axis=1), background), 0)
        return posterior


def _in_threads(function: Callable[..., Any], n_jobs: int, *arrays: NDArray[Any]) -> list[Any]:
    """Return what the function finds of equal parts of the arrays' rows, each in a thread of its own."""
    if n_jobs == 1:
        return [function(*arrays)]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(function, *(np.array_split(array, n_jobs) for array in arrays)))


def _largest(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return where each row is largest, the first of equals, and that entry."""
    best = rows.argmax(axis=1)
    return best, rows[np.arange(len(best)), best]


def chunk_rows(n_classes: int, itemsize: int) -> int:
    """Return how many rows fit a core's cache: a power of two, at least 32."""
    rows = max(32, _CHUNK_BYTES // (itemsize * n_classes))
    return 1 << (int(rows).bit_length() - 1)
