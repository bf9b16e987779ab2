"""A small head q(p) and a matrix T that explain the given labels together; gradients written by hand.

    q = softmax(s · log p + relu(X W₁ + b₁) W₂ + b₂),   P(given label | x) = q @ T

All parameters live in one float32 vector, of which the weights are views: an Adam step is then a few
operations on one short array, and a step on 512 × 10 rows takes a quarter of a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.estimators.fit import Matrix
from dualt.labels import Codes

Floats: TypeAlias = NDArray[np.float32]

BATCH = 512
_HIDDEN = 64
_DISTANCE_WEIGHT = 0.05
_WEIGHT_DECAY = 3.0
_HEAD_RATE, _MATRIX_RATE, _LAST_RATE = 5e-3, 1e-2, 0.05
_MOMENTUM, _SCALE_MEMORY, _ADAM_EPSILON = 0.9, 0.999, 1e-8
_INPUT_FLOOR, _BASE_FLOOR, _START_FLOOR = 1e-6, 1e-4, 1e-3
_TINY = np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Rows:
    """What the head sees of each example: standardised log p, log p, and the given label."""

    inputs: Floats
    base: Floats
    labels: Codes

    @classmethod
    def of(cls, probs: Floats, labels: Codes) -> Rows:
        """Prepare probabilities, (n_samples, n_classes)."""
        inputs = np.log(np.maximum(probs, np.float32(_INPUT_FLOOR)))
        inputs -= inputs.mean(axis=0, dtype=np.float64).astype(np.float32)
        inputs /= np.maximum(inputs.std(axis=0, dtype=np.float64), 1e-6).astype(np.float32)
        return cls(inputs, np.log(np.maximum(probs, np.float32(_BASE_FLOOR))), labels)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: NDArray[np.intp] | slice) -> Rows:
        """Return some of the rows."""
        return Rows(self.inputs[index], self.base[index], self.labels[index])


class JointModel:
    """The head and the matrix, started at `transition` with a head that returns p itself."""

    def __init__(self, transition: Matrix, n_rows: int, rng: np.random.Generator) -> None:
        n_classes = len(transition)
        self._n_classes = n_classes
        shapes = [(n_classes, _HIDDEN), (_HIDDEN, n_classes), (_HIDDEN,), (n_classes,), (1,), (n_classes, n_classes)]
        sizes = [int(np.prod(shape)) for shape in shapes]
        self._vector, self._gradient, self._mean, self._square, self._update = np.zeros((5, sum(sizes)), np.float32)
        self._rates = np.full(sum(sizes), _HEAD_RATE, np.float32)
        self._rates[-sizes[-1] :] = _MATRIX_RATE * min(1, np.sqrt(10 / n_classes))
        self._decay = slice(0, sizes[0] + sizes[1])
        self._decay_weight = np.float32(_WEIGHT_DECAY / n_rows)
        self._weights = _views(self._vector, shapes)
        self._gradients = _views(self._gradient, shapes)
        inward, _, inner_bias, _, scale, logits = self._weights
        inward[:] = rng.normal(0, n_classes**-0.5, inward.shape)
        inner_bias[:] = rng.normal(0, 0.5, inner_bias.shape)
        scale[:] = 1
        logits[:] = np.log(np.maximum(transition, _START_FLOOR))
        self._buffers: dict[int, tuple[Floats, ...]] = {}
        self._steps = 0

    @property
    def transition(self) -> Floats:
        """T, the softmax of each row of its logits."""
        return _softmax(self._weights[-1].copy())

    def posterior(self, rows: Rows) -> Floats:
        """Return q of every row."""
        return np.concatenate(
            [
                self._forward(rows.take(slice(low, low + BATCH)))[1].copy()
                for low in range(0, len(rows), BATCH)
            ]
        )

    def objective(self, rows: Rows) -> float:
        """Return the negative log-likelihood less the distance between the posteriors of neighbouring rows."""
        posterior = self.posterior(rows)
        chance = np.einsum("ij,ij->i", posterior, self.transition.T[rows.labels])
        distance = np.abs(np.diff(posterior, axis=0)).sum() / max(len(rows) - 1, 1)
        return float(-np.log(np.maximum(chance, _TINY)).mean() - _DISTANCE_WEIGHT / 2 * distance)

    def train(self, rows: Rows, n_steps: int, rng: np.random.Generator, *, decay: bool) -> None:
        """Take Adam steps on shuffled batches; with `decay` the rate falls linearly to a twentieth."""
        size = min(BATCH, len(rows))
        order, place = rng.permutation(len(rows)), 0
        for step in range(n_steps):
            if place + size > len(rows):
                order, place = rng.permutation(len(rows)), 0
            self._backward(rows.take(order[place : place + size]))
            self._adam(1 - (1 - _LAST_RATE) * step / n_steps if decay else 1.0)
            place += size

    def _forward(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return (hidden, posterior) in buffers that the next call overwrites."""
        inward, outward, inner_bias, outer_bias, scale, _ = self._weights
        hidden, posterior = self._buffer(len(rows))[:2]
        np.matmul(rows.inputs, inward, out=hidden)
        hidden += inner_bias
        np.maximum(hidden, 0, out=hidden)
        np.matmul(hidden, outward, out=posterior)
        posterior += outer_bias
        posterior += scale * rows.base
        return hidden, _softmax(posterior)

    def _backward(self, rows: Rows) -> None:
        """Write the gradient of the loss on a batch."""
        hidden, posterior = self._forward(rows)
        _, _, hidden_gradient, by_label, gradient = self._buffer(len(rows))
        inward, outward, inner_bias, outer_bias, scale, logits = self._gradients
        transition = self.transition
        n_rows = len(rows)
        # d loss / d (q @ T) is nonzero at the given label only: there −1 / (n (q @ T)_y).
        np.matmul(posterior, transition, out=gradient)
        numbers = np.arange(n_rows)
        by_label[:] = 0
        by_label[numbers, rows.labels] = -1 / (n_rows * np.maximum(gradient[numbers, rows.labels], _TINY))
        _softmax_gradient(posterior.T @ by_label, transition, logits)
        np.matmul(by_label, transition.T, out=gradient)
        if n_rows > 1:
            pull = np.sign(posterior[1:] - posterior[:-1]) * np.float32(_DISTANCE_WEIGHT / 2 / (n_rows - 1))
            gradient[1:] -= pull
            gradient[:-1] += pull
        _softmax_gradient(gradient, posterior, gradient)
        np.vdot(gradient, rows.base)
        scale[:] = np.vdot(gradient, rows.base)
        gradient.sum(axis=0, out=outer_bias)
        np.matmul(hidden.T, gradient, out=outward)
        np.matmul(gradient, self._weights[1].T, out=hidden_gradient)
        hidden_gradient *= hidden > 0
        np.matmul(rows.inputs.T, hidden_gradient, out=inward)
        hidden_gradient.sum(axis=0, out=inner_bias)
        self._gradient[self._decay] += self._decay_weight * self._vector[self._decay]

    def _adam(self, rate: float) -> None:
        self._steps += 1
        mean, square, update = self._mean, self._square, self._update
        mean += np.float32(1 - _MOMENTUM) * (self._gradient - mean)
        np.multiply(self._gradient, self._gradient, out=update)
        square += np.float32(1 - _SCALE_MEMORY) * (update - square)
        np.sqrt(square, out=update)
        correction = np.sqrt(1 - _SCALE_MEMORY**self._steps)
        update += np.float32(_ADAM_EPSILON * correction)
        np.divide(mean, update, out=update)
        update *= self._rates
        update *= np.float32(rate * correction / (1 - _MOMENTUM**self._steps))
        self._vector -= update

    def _buffer(self, n_rows: int) -> tuple[Floats, ...]:
        """Return arrays for a batch: hidden, posterior, hidden gradient, by label, gradient."""
        if n_rows not in self._buffers:
            widths = (_HIDDEN, self._n_classes, _HIDDEN, self._n_classes, self._n_classes)
            self._buffers[n_rows] = tuple(np.empty((n_rows, width), np.float32) for width in widths)
        return self._buffers[n_rows]


def _views(vector: Floats, shapes: list[tuple[int, ...]]) -> list[Floats]:
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes, strict=True)]


def _softmax(logits: Floats) -> Floats:
    """Turn each row into a softmax, in place."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _softmax_gradient(gradient: Floats, softmax: Floats, out: Floats) -> None:
    """Write d loss / d logits from d loss / d softmax."""
    inner = np.einsum("ij,ij->i", gradient, softmax)
    np.subtract(gradient, inner[:, None], out=out)
    out *= softmax
