"""Fit θ and r of `calibration` to verified rows: Newton steps, and Laplace's evidence for the scale of r."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dualt.audit.design import Floats
from dualt.labels import Codes

# Bayes' rule as it stands, and how firmly it is believed: a ridge of 2/m on the mean loss of m rows.
BAYES = np.array([1.0, 1.0, 0.0, 0.0])
_RIDGE = 2.0
# Scales of the pairs' offsets, from hardly any to a factor of e² in the odds.
_SCALES = 2.0 ** np.arange(-3, 2)
_STEPS, _CLOSE = 50, 1e-9


def softmax(scores: Floats) -> Floats:
    """Return exp(scores) with rows that sum to one."""
    values = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(values / values.sum(axis=1, keepdims=True))


class Point(NamedTuple):
    """Where the fit stands: θ and r."""

    theta: Floats
    offsets: Floats


class Column(NamedTuple):
    """The verified rows of one given label: the offsets r[:, label] depend on no others."""

    label: int
    features: Floats
    true: Codes
    weights: Floats


class VerifiedColumns(NamedTuple):
    """Verified rows, grouped by given label."""

    columns: tuple[Column, ...]
    n_classes: int

    @classmethod
    def of(cls, features: Floats, given: Codes, true: Codes, weights: Floats) -> VerifiedColumns:
        """Group rows by their given label."""
        groups = ((int(label), given == label) for label in np.unique(given))
        columns = (Column(label, features[at], np.asarray(true)[at], weights[at]) for label, at in groups)
        return cls(tuple(columns), features.shape[1])


def likely_scale(data: VerifiedColumns, start: Point) -> float:
    """Return exp of the mean of log τ, each scale weighed by the marginal likelihood of the verified rows."""
    scores = []
    for scale in _SCALES:
        start, score = maximise(data, start, float(scale))
        scores.append(score)
    likelihood = np.exp(np.array(scores) - max(scores))
    return float(np.exp(likelihood @ np.log(_SCALES) / likelihood.sum()))


def maximise(data: VerifiedColumns, point: Point, scale: float) -> tuple[Point, float]:
    """Return the densest (θ, r), by Newton steps halved until they help, and Laplace's log marginal likelihood."""
    value = loss(data, point, scale)
    for _ in range(_STEPS):
        step, decrement, log_det = newton_step(data, point, scale)
        if decrement < _CLOSE:
            break
        size = 1.0
        while size > 1e-6:
            after = Point(point.theta - size * step.theta, point.offsets - size * step.offsets)
            if (reached := loss(data, after, scale)) <= value - 1e-4 * size * decrement:
                break
            size /= 2
        else:
            break
        point, value = after, reached
    # Offsets of labels without verified rows are zero, and do not enter.
    n_offsets = len(data.columns) * data.n_classes
    return point, -value - log_det / 2 - n_offsets * np.log(scale)


def loss(data: VerifiedColumns, point: Point, scale: float) -> float:
    """Return −Σ w·log P(Y=true) + 2|θ − (1, 1, 0, 0)|² + |r|²/2τ²."""
    total = _RIDGE * ((point.theta - BAYES) ** 2).sum() + (point.offsets**2).sum() / (2 * scale**2)
    for column in data.columns:
        scores = column.features @ point.theta + point.offsets[:, column.label]
        top = scores.max(axis=1)
        log_sum = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        total += column.weights @ (log_sum - scores[np.arange(len(scores)), column.true])
    return float(total)


def newton_step(data: VerifiedColumns, point: Point, scale: float) -> tuple[Point, float, float]:
    """Return the Newton step of (θ, r), gradient · step, and log det of the Hessian.

    Offsets of different labels meet only through θ, so the Hessian is a border of 4 around blocks: each block is
    eliminated, and a 4×4 system remains.
    """
    slope = 2 * _RIDGE * (point.theta - BAYES)
    hessian = 2 * _RIDGE * np.eye(4)
    log_det, eliminated = 0.0, []
    gradient_r = np.zeros_like(point.offsets)
    for column in data.columns:
        offsets = point.offsets[:, column.label]
        posterior = softmax(column.features @ point.theta + offsets)
        weighted = column.weights[:, None] * posterior
        surprise = weighted.copy()
        surprise[np.arange(len(surprise)), column.true] -= column.weights
        slope = slope + np.einsum("kc,kcf->f", surprise, column.features)
        gradient = surprise.sum(axis=0) + offsets / scale**2
        means = np.einsum("kc,kcf->kf", posterior, column.features)
        hessian += np.einsum("kc,kcf,kcg->fg", weighted, column.features, column.features, optimize=True)
        hessian -= (means * column.weights[:, None]).T @ means
        border = np.einsum("kc,kcf->cf", weighted, column.features) - weighted.T @ means
        block = Block.of(weighted.sum(axis=0) + scale**-2, np.sqrt(column.weights[:, None]) * posterior)
        solved = block.solve(np.column_stack((border, gradient)))
        hessian -= border.T @ solved[:, :-1]
        slope = slope - border.T @ solved[:, -1]
        log_det += block.log_det
        gradient_r[:, column.label] = gradient
        eliminated.append((column.label, solved))
    step = np.linalg.solve(hessian, slope)
    offsets_step = np.zeros_like(point.offsets)
    for label, solved in eliminated:
        offsets_step[:, label] = solved[:, -1] - solved[:, :-1] @ step
    # gᵀH⁻¹g, from the eliminated blocks and the border.
    decrement = sum(float(gradient_r[:, label] @ solved[:, -1]) for label, solved in eliminated) + float(slope @ step)
    return Point(step, offsets_step), decrement, log_det + float(np.linalg.slogdet(hessian)[1])


class Block(NamedTuple):
    """diag(d) − UᵀU, to be solved with; U has a row for each verified row.

    Of many classes and few rows, the Sherman–Morrison–Woodbury form costs rows³ instead of classes³.
    """

    diagonal: Floats
    rows: Floats
    small: Floats
    log_det: float

    @classmethod
    def of(cls, diagonal: Floats, rows: Floats) -> Block:
        """Prepare diag(d) − UᵀU for solving."""
        if len(rows) < len(diagonal):
            small = np.eye(len(rows)) - (rows / diagonal) @ rows.T
            log_det = np.linalg.slogdet(small)[1] + np.log(diagonal).sum()
        else:
            small = np.diag(diagonal) - rows.T @ rows
            log_det = np.linalg.slogdet(small)[1]
        return cls(diagonal, rows, small, float(log_det))

    def solve(self, right: Floats) -> Floats:
        """Return (diag(d) − UᵀU)⁻¹ @ right."""
        if len(self.rows) >= len(self.diagonal):
            return np.asarray(np.linalg.solve(self.small, right))
        scaled = right / self.diagonal[:, None]
        inner = np.linalg.solve(self.small, self.rows @ scaled)
        return np.asarray(scaled + (self.rows.T @ inner) / self.diagonal[:, None])
