"""Train a small head q(p) and the matrix T together: the most accurate where noise depends on the class alone.

    q = softmax(s · log p + W₂ relu(W₁ x + b₁) + b₂),   P(given label | x) = q @ T

Gradients are written by hand. In the model, examples are columns, so that reductions over classes run along whole
rows, and a bias is the weight of a constant row. All parameters are views of one vector: an Adam step is a few
operations on one array.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import canonical_order, count_fit, match_rows
from dualt.estimators.clean_count import clean_count
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rng import RandomState, as_generator
from dualt.rows.chunks import normalize_counts
from dualt.rows.posterior import NoisyPosterior

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
# A start whose thinnest row rests on fewer labels than this is left out.
_LEAST_LABELS = 50
_TOP_SHARES = (0.5, 0.05)
_CLUSTER_SHARES = (0.5, 0.2)
_CLUSTER_ROUNDS = 10
_PRIOR_LABELS = 0.5
_CLUSTER_FLOOR = 1e-6
_MOST_ROWS, _MOST_ENTRIES, _JUDGED = 200_000, 1 << 25, 10_000
_FIRST_STEPS, _LEAST_STEPS, _MOST_STEPS, _EPOCHS = 300, 300, 1_500, 40
_FINALISTS, _FINALISTS_OF_MANY, _MANY_CLASSES = 3, 2, 20

_log = logging.getLogger(__name__)


def joint(posterior: NoisyPosterior, *, pool: bool = True, random_state: RandomState = 0) -> Fit:
    """T̂ of the q(p) and T that minimise −mean log (q @ T)_y − λ·(mean distance of two clean posteriors).

    A small network q(p) corrects the probabilities while T is learnt, so neither calibration nor anchors are
    needed; the distance (total variation, λ = 0.05) pushes clean posteriors apart, without which T and q
    could trade noise. Training starts from several counted matrices; the run from `clean_count`'s is taken
    unless another explains the labels clearly better.

    Needs out-of-fold probabilities: in-sample ones ruin it, and nothing in the result shows it. It takes
    noise to depend on the class alone; if hard examples are mislabelled more often, it reads unsureness as
    noise and `clean-count` is better.

    Parameters
    ----------
    posterior
    pool
        Let classes with few labels borrow from the others; see `pooled_rows`.
    random_state
        Seed or generator of the network's first weights, of batches, and of the sample of 200,000 rows (fewer
        for hundreds of classes) that stands for more.

    Notes
    -----
    The interval is a band, not a confidence interval: it resamples row k as if Σ q_k labels of known class had been
    counted, without training anew, and leaves out what the head does not know. A nominal 95 % covered 52
    to 97 % (docs/benchmarks.md).
    """
    generator = as_generator(random_state)
    order = canonical_order(posterior.summary)
    probs, labels = _sample(posterior, generator)
    first = clean_count(posterior, determined=True).transition[np.ix_(order, order)]
    place = np.argsort(order)
    matrix, shares = _fit(probs[:, order], place[labels], first, generator)
    matrix, shares = matrix[np.ix_(place, place)], shares[place]
    counts = np.rint(posterior.summary.n_samples * shares[:, None] * matrix).astype(np.int64)
    fit = count_fit(counts, pool=pool)
    return fit if pool else replace(fit, transition=matrix)


def _sample(posterior: NoisyPosterior, rng: np.random.Generator) -> tuple[NDArray[np.float32], Codes]:
    """Return all rows as float32, or a uniform sample of those that are too many."""
    n_samples, n_classes = posterior.summary.n_samples, posterior.n_classes
    size = min(n_samples, _MOST_ROWS, _MOST_ENTRIES // n_classes)
    chosen = np.sort(rng.choice(n_samples, size, replace=False, shuffle=False))
    probs, labels = posterior.take(chosen)
    return probs.astype(np.float32, copy=False), labels


def _fit(
    probs: NDArray[np.float32], labels: Codes, first: Matrix, rng: np.random.Generator
) -> tuple[Matrix, NDArray[np.float64]]:
    """Return the matrix and the share of each clean class of the best run."""
    examples = Examples.of(probs, labels)
    judged = examples.take(rng.permutation(len(examples))[:_JUDGED])
    # All runs share first weights and batches: they differ by their start alone.
    first_seed, last_seed = rng.integers(2**32, size=2)
    models = []
    for start in starting_points(probs, labels, first):
        generator = np.random.default_rng(first_seed)
        models.append(JointModel(start, len(examples), generator))
        models[-1].train(examples, _FIRST_STEPS, generator, decay=False)
    finalists = _finalists([model.objective(judged) for model in models], probs.shape[1])
    n_steps = int(np.clip(_EPOCHS * len(examples) / BATCH, _LEAST_STEPS, _MOST_STEPS))
    for number in finalists:
        models[number].train(examples, n_steps, np.random.default_rng(last_seed), decay=True)
    objectives = [models[number].objective(judged) for number in finalists]
    winner = finalists[_winner(objectives, probs.shape)]
    _log.debug("%d starts, finalists %s with objectives %s: %d", len(models), finalists, objectives, winner)
    matrix, rows = match_rows(models[winner].transition.astype(np.float64))
    shares = models[winner].posterior(examples).mean(axis=1, dtype=np.float64)[rows]
    return matrix / matrix.sum(axis=1, keepdims=True), shares


def _finalists(objectives: Sequence[float], n_classes: int) -> list[int]:
    """Return the numbers of the best starts, and of the first in any case, ascending."""
    kept = _FINALISTS if n_classes <= _MANY_CLASSES else _FINALISTS_OF_MANY
    return sorted({0, *np.argsort(objectives)[:kept].tolist()})


def _winner(objectives: Sequence[float], shape: tuple[int, ...]) -> int:
    """Return which run to take: the first, unless the best is lower by half a BIC penalty of the matrix."""
    n_samples, n_classes = shape
    best = int(np.argmin(objectives))
    margin = 0.5 * n_classes * (n_classes - 1) / (2 * n_samples)
    return best if objectives[0] - objectives[best] > margin else 0


def starting_points(probs: NDArray[Any], labels: Codes, first: Matrix) -> Iterator[Matrix]:
    """Yield `first`, then counts among confident examples, then clusters grown from each of them."""
    yield first
    counted = [top_counts(probs, labels, share) for share in _TOP_SHARES]
    for counts in counted:
        if _is_supported(counts):
            yield match_rows(normalize_counts(counts))[0]
    for seed in (first, *map(normalize_counts, counted)):
        for share in _CLUSTER_SHARES:
            counts, clusters = cluster_counts(probs, labels, seed, share)
            if _is_supported(counts):
                yield match_rows(clusters)[0]


def _is_supported(counts: NDArray[np.int64]) -> bool:
    return bool(counts.sum(axis=1).min() >= _LEAST_LABELS)


def top_counts(probs: NDArray[Any], labels: Codes, share: float) -> NDArray[np.int64]:
    """Count the given labels among the `share` of each predicted class with the highest probability of it."""
    predicted = probs.argmax(axis=1)
    return _count_best(predicted, probs[np.arange(len(probs)), predicted], labels, share, probs.shape[1])


def cluster_counts(
    probs: NDArray[Any], labels: Codes, transition: Matrix, share: float
) -> tuple[NDArray[np.int64], Matrix]:
    """Run k-means on p by KL(p ‖ T_k): T_k from the labels of the `share` of cluster k with the widest margin."""
    before = np.zeros(transition.shape, np.int64)
    for _ in range(_CLUSTER_ROUNDS):
        scores = probs @ np.log(np.maximum(transition, _CLUSTER_FLOOR)).T.astype(probs.dtype)
        top_two = np.partition(scores, -2, axis=1)[:, -2:]
        margins = top_two[:, 1] - top_two[:, 0]
        counts = _count_best(scores.argmax(axis=1), margins, labels, share, len(transition))
        transition = normalize_counts(counts + _PRIOR_LABELS * transition)
        if np.array_equal(counts, before) or not _is_supported(counts):
            break
        before = counts
    return counts, transition


def _count_best(
    groups: NDArray[np.intp], scores: NDArray[Any], labels: Codes, share: float, n_classes: int
) -> NDArray[np.int64]:
    """Count (group, label) over the `share` of each group with the highest scores."""
    order = np.lexsort((-scores, groups))
    groups, labels = groups[order], labels[order]
    sizes = np.bincount(groups, minlength=n_classes)
    rank = np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[groups]
    kept = rank < np.ceil(share * sizes)[groups]
    keys = groups[kept] * n_classes + labels[kept]
    return np.bincount(keys, minlength=n_classes**2).reshape(n_classes, n_classes)


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
