"""Undoes a transition matrix: solves p = q @ transition for distributions q, as well as it can be solved."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Above this condition number a matrix is called near singular: its inverse amplifies errors of the
# posterior so much that nothing about the clean class can be read from it.
NEAR_SINGULAR = 1e3
_FEW_CLASSES, _MANY_CLASSES = 64, 512
_ROUNDING = 1e-9
_NEWTON_STEPS, _POWER_STEPS = 30, 30
# SQUAREM asks for longer ones only where there is nothing left to gain, and their squares overflow.
_LONGEST_STRETCH = 1e6


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
        # Labels that no class leaves say nothing of the class, nor do rows that have no others.
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
    try:
        inverse: NDArray[np.float64] = np.asarray(np.linalg.inv(matrix), np.float64)
    except np.linalg.LinAlgError:
        return None
    norm = _spectral_norm if len(matrix) > _FEW_CLASSES else partial(np.linalg.norm, ord=2)
    condition = norm(matrix) * norm(inverse)
    return inverse if condition <= NEAR_SINGULAR else None


def _spectral_norm(matrix: NDArray[np.float64]) -> float:
    """Return the largest singular value, by power iteration: within some percent, for a thousandth of the work."""
    vector = np.random.default_rng(0).normal(size=len(matrix))
    for _ in range(_POWER_STEPS):
        vector = matrix.T @ (matrix @ (vector / np.linalg.norm(vector)))
    return float(np.sqrt(np.linalg.norm(vector)))


def _norm(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt((rows**2).sum(axis=1, keepdims=True)))


def _step_inside(values: NDArray[np.float64], move: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what part of a move, at most all of it, leaves the values of every row positive."""
    longest = np.where(move < 0, -values / np.where(move < 0, move, -1), np.inf).min(axis=1, keepdims=True)
    return np.asarray(np.minimum(1, 0.99 * longest))
