"""A small head q(p) and a matrix T that explain the given labels together; gradients written by hand.

    q = softmax(s · log p + W₂ relu(W₁ x + b₁) + b₂),   P(given label | x) = q @ T

Examples are columns here, so that reductions over classes run along whole rows, and a bias is the weight
of a constant row. All parameters are views of one vector: an Adam step is a few operations on one array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes
from dualt.results.fit import Matrix

Floats: TypeAlias = NDArray[np.float32]

BATCH = 512
_HIDDEN = 64
_DISTANCE_WEIGHT = 0.05
_WEIGHT_DECAY = 3.0
_HEAD_RATE, _MATRIX_RATE, _LAST_RATE = 5e-3, 1e-2, 0.05
_MEMORY, _SQUARE_MEMORY, _EPSILON = 0.9, 0.999, 1e-8
_INPUT_FLOOR, _BASE_FLOOR, _START_FLOOR = 1e-6, 1e-4, 1e-3
# No posterior below e^−30 and no square below 1e−30: smaller ones become subnormal, whose arithmetic is slow.
_LOGIT_FLOOR, _TINY = np.float32(-30), np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Examples:
    """What the head sees of each example (a column): standardised log p and a one, log p, and the given label."""

    inputs: Floats
    base: Floats
    labels: Codes

    @classmethod
    def of(cls, probs: Floats, labels: Codes) -> Examples:
        """Prepare probabilities, (n_samples, n_classes)."""
        inputs = np.ones((probs.shape[1] + 1, len(probs)), np.float32)
        np.log(np.maximum(probs.T, np.float32(_INPUT_FLOOR)), out=inputs[:-1])
        base = np.maximum(inputs[:-1], np.float32(np.log(_BASE_FLOOR)))
        inputs[:-1] -= inputs[:-1].mean(axis=1, dtype=np.float64, keepdims=True)
        inputs[:-1] /= np.maximum(inputs[:-1].std(axis=1, dtype=np.float64, keepdims=True), 1e-6)
        return cls(inputs, base, labels)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: NDArray[np.intp] | slice) -> Examples:
        """Return some of the examples."""
        return Examples(self.inputs[:, index], self.base[:, index], self.labels[index])


class JointModel:
    """The head and the matrix, started at `transition` with a head that returns p itself."""

    def __init__(self, transition: Matrix, n_examples: int, rng: np.random.Generator) -> None:
        n_classes = len(transition)
        shapes = [(_HIDDEN, n_classes + 1), (n_classes, _HIDDEN + 1), (1,), (n_classes, n_classes)]
        size = sum(int(np.prod(shape)) for shape in shapes)
        self._vector, self._gradient, self._mean, self._square, self._rates, self._decay = np.zeros(
            (6, size), np.float32
        )
        self._weights, self._gradients = _views(self._vector, shapes), _views(self._gradient, shapes)
        rates, decay = _views(self._rates, shapes), _views(self._decay, shapes)
        self._rates[:] = _HEAD_RATE
        rates[-1][:] = _MATRIX_RATE * min(1, np.sqrt(10 / n_classes))
        decay[0][:, :-1] = decay[1][:, :-1] = _WEIGHT_DECAY / n_examples
        inward, _, scale, logits = self._weights
        inward[:, :-1] = rng.normal(0, n_classes**-0.5, (_HIDDEN, n_classes))
        inward[:, -1] = rng.normal(0, 0.5, _HIDDEN)
        scale[:] = 1
        logits[:] = np.log(np.maximum(transition, _START_FLOOR))
        self._steps = 0

    @property
    def transition(self) -> Floats:
        """T, the softmax of each row of its logits."""
        return np.ascontiguousarray(_softmax(self._weights[-1].T.copy()).T)

    def posterior(self, examples: Examples) -> Floats:
        """Return q, (n_classes, n_examples)."""
        parts = range(0, len(examples), BATCH)
        return np.concatenate([self._forward(examples.take(slice(k, k + BATCH)))[1] for k in parts], axis=1)

    def objective(self, examples: Examples) -> float:
        """Return −mean log (q @ T)_y, less the mean distance of the posteriors of neighbouring examples."""
        posterior = self.posterior(examples)
        chance = np.einsum("ij,ij->j", posterior, self.transition[:, examples.labels])
        distance = np.abs(np.diff(posterior)).sum() / max(len(examples) - 1, 1)
        return float(-np.log(np.maximum(chance, _TINY)).mean() - _DISTANCE_WEIGHT / 2 * distance)

    def train(self, examples: Examples, n_steps: int, rng: np.random.Generator, *, decay: bool) -> None:
        """Take Adam steps on shuffled batches; with `decay` the rate falls linearly to a twentieth."""
        size = min(BATCH, len(examples))
        place = len(examples)
        for step in range(n_steps):
            if place + size > len(examples):
                order, place = rng.permutation(len(examples)), 0
            self.differentiate(examples.take(order[place : place + size]))
            self._adam(1 - (1 - _LAST_RATE) * step / n_steps if decay else 1.0)
            place += size

    def differentiate(self, batch: Examples) -> Floats:
        """Return the gradient of the objective and the weight decay by all parameters, in one vector."""
        hidden, posterior = self._forward(batch)
        transition = self.transition
        n_examples, columns = len(batch), np.arange(len(batch))
        # By (q @ T) the loss has a slope at the given label only: −1 / (n (q @ T)_y) there.
        chance = np.einsum("ij,ij->j", posterior, transition[:, batch.labels])
        by_label = np.zeros_like(posterior)
        by_label[batch.labels, columns] = -1 / (n_examples * np.maximum(chance, _TINY))
        slope = transition @ by_label
        if n_examples > 1:
            pull = np.sign(np.diff(posterior)) * np.float32(_DISTANCE_WEIGHT / 2 / (n_examples - 1))
            slope[:, 1:] -= pull
            slope[:, :-1] += pull
        slope = _through_softmax(slope, posterior)
        inward, outward, scale, logits = self._gradients
        logits[:] = _through_softmax(by_label @ posterior.T, transition.T).T
        scale[:] = np.vdot(slope, batch.base)
        np.matmul(slope, hidden.T, out=outward)
        inner = self._weights[1][:, :-1].T @ slope
        inner *= hidden[:-1] > 0
        np.matmul(inner, batch.inputs.T, out=inward)
        self._gradient += self._decay * self._vector
        return self._gradient

    def _forward(self, batch: Examples) -> tuple[Floats, Floats]:
        """Return the hidden layer, its last row one, and q."""
        inward, outward, scale, _ = self._weights
        hidden = np.ones((_HIDDEN + 1, len(batch)), np.float32)
        np.matmul(inward, batch.inputs, out=hidden[:-1])
        np.maximum(hidden, 0, out=hidden)
        logits = outward @ hidden
        logits += scale * batch.base
        return hidden, _softmax(logits)

    def _adam(self, rate: float) -> None:
        self._steps += 1
        self._mean += np.float32(1 - _MEMORY) * (self._gradient - self._mean)
        squares = np.maximum(self._gradient * self._gradient, _TINY)
        self._square += np.float32(1 - _SQUARE_MEMORY) * (squares - self._square)
        # Both moments start at zero; correcting the step for that is cheaper than correcting them.
        shortfall = np.sqrt(1 - _SQUARE_MEMORY**self._steps)
        scale = np.sqrt(self._square) + np.float32(_EPSILON * shortfall)
        rate *= shortfall / (1 - _MEMORY**self._steps)
        self._vector -= np.float32(rate) * self._rates * self._mean / scale


def _views(vector: Floats, shapes: list[tuple[int, ...]]) -> list[Floats]:
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes, strict=True)]


def _softmax(logits: Floats) -> Floats:
    """Turn each column into a softmax, in place."""
    logits -= logits.max(axis=0)
    np.maximum(logits, _LOGIT_FLOOR, out=logits)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def _through_softmax(slope: Floats, softmax: Floats) -> Floats:
    """Return the slope by the logits of each column from that by their softmax."""
    return np.asarray((slope - np.einsum("ij,ij->j", slope, softmax)) * softmax)
