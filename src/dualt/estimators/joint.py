"""Train a small head q(p) and the matrix T together: the most accurate where noise depends on the class alone.

    q = softmax(s · log p + W₂ relu(W₁ x + b₁) + b₂),   P(given label | x) = q @ T

with x = log p, standardised.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import canonical_order, count_fit, pooled_rows
from dualt.estimators.clean_count import clean_count
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rng import RandomState, as_generator
from dualt.rows.posterior import NoisyPosterior

Floats: TypeAlias = NDArray[np.float64]

# Weight of the distance between clean posteriors: without it, T and q could trade noise.
DISTANCE = 0.05
# Weight decay of the head, in examples.
DECAY = 3.0
# Units of the head; 16 and 64 are no better, and slower.
HIDDEN = 8
# Cost only: L-BFGS steps, rows and entries of the sample that stands for more.
_STEPS, _ROWS, _ENTRIES = 200, 20_000, 1 << 21
_LEAST = 1e-6


def joint(posterior: NoisyPosterior, *, random_state: RandomState = 0) -> Fit:
    """T̂ of the q(p) and T that minimise −mean log (q @ T)_y − λ · (mean distance of two clean posteriors).

    A small network q(p) corrects the probabilities while T is learned, so neither calibration nor anchors are
    needed; the distance (total variation, λ = 0.05) pushes clean posteriors apart. Training starts from the counts
    of `clean_count`, and classes with few labels borrow from the others (`pooled_rows`).

    Needs out-of-fold probabilities: in-sample ones ruin it, and nothing in the result shows it. It assumes that noise
    depends on the class alone; if hard examples are mislabelled more often, it mistakes uncertainty for noise, and
    `clean-count` is better.

    Parameters
    ----------
    random_state
        Seed or generator of the network's first weights, and of the sample of 20,000 rows (fewer with hundreds of
        classes) that stands for more.

    Notes
    -----
    The interval is a band, not a confidence interval: it resamples row k as if Σ q_k labels of known class had been
    counted, without training anew, and leaves out what the head does not know.
    """
    rng, summary = as_generator(random_state), posterior.summary
    order = canonical_order(summary)  # renaming the classes must permute the result exactly
    place = np.argsort(order)
    size = min(posterior.n_samples, _ROWS, _ENTRIES // posterior.n_classes)
    probs, labels = posterior.take(rng.choice(posterior.n_samples, size, replace=False))
    first = clean_count(posterior, determined=True).transition[np.ix_(order, order)]
    shares, matrix = JointModel(probs[:, order], place[labels], first, rng).fit()
    counts = np.rint(summary.n_samples * shares[:, None] * matrix).astype(np.int64)
    return count_fit(counts[np.ix_(place, place)], pooled_rows)


class JointModel:
    """The head and the matrix, started at `transition` with a head that returns p itself."""

    def __init__(self, probs: NDArray[Any], labels: Codes, transition: Matrix, rng: np.random.Generator) -> None:
        n_samples, n_classes = probs.shape
        logs = np.log(np.maximum(probs.astype(np.float64), _LEAST))
        self.labels, self.base = labels, np.maximum(logs, np.log(1e-4))
        scaled = (logs - logs.mean(axis=0)) / np.maximum(logs.std(axis=0), _LEAST)
        self.inputs = np.column_stack([scaled, np.ones(n_samples)])
        self._shapes = ((n_classes + 1, HIDDEN), (HIDDEN + 1, n_classes), (1,), (n_classes, n_classes))
        inward = rng.normal(0, 1, (n_classes + 1, HIDDEN)) * np.r_[np.full(n_classes, n_classes**-0.5), 0.5][:, None]
        start = inward, np.zeros(self._shapes[1]), np.ones(1), np.log(np.maximum(transition, 1e-3))
        self.vector: Floats = np.concatenate([part.ravel() for part in start])

    def fit(self) -> tuple[Floats, Matrix]:
        """Return the share of each clean class and the matrix at the minimum."""
        from scipy.optimize import minimize

        self.vector = minimize(self.objective, self.vector, method="L-BFGS-B", jac=True, options={"maxiter": _STEPS}).x
        _, posterior, transition = self.forward(self.vector)
        return posterior.mean(axis=0), transition

    def forward(self, vector: Floats) -> tuple[Floats, Floats, Matrix]:
        """Return the hidden layer, its last column one, q and T."""
        from scipy.special import softmax

        inward, outward, scale, logits = self._parts(vector)
        hidden = np.column_stack([np.maximum(self.inputs @ inward, 0), np.ones(len(self.inputs))])
        return hidden, softmax(scale * self.base + hidden @ outward, axis=1), softmax(logits, axis=1)

    def objective(self, vector: Floats) -> tuple[float, Floats]:
        """Return the loss with its weight decay, and its gradient."""
        hidden, posterior, transition = self.forward(vector)
        inward, outward, _, _ = self._parts(vector)
        n_samples = len(posterior)
        given = transition.T[self.labels]
        chance = np.maximum((posterior * given).sum(axis=1), 1e-30)
        step = np.diff(posterior, axis=0)  # rows are in random order: neighbours are random pairs
        weight = DISTANCE / 2 / max(n_samples - 1, 1)
        decay = DECAY / n_samples
        loss = -np.log(chance).mean() - weight * np.abs(step).sum()
        loss += decay / 2 * ((inward[:-1] ** 2).sum() + (outward[:-1] ** 2).sum())

        by_chance = -1 / (n_samples * chance)[:, None]
        slope = by_chance * given
        slope[1:] -= weight * np.sign(step)
        slope[:-1] += weight * np.sign(step)
        slope = _through_softmax(slope, posterior)
        by_matrix = np.zeros_like(transition)
        np.add.at(by_matrix.T, self.labels, by_chance * posterior)
        by_inward = self.inputs.T @ ((slope @ outward[:-1].T) * (hidden[:, :-1] > 0))
        by_outward = hidden.T @ slope
        by_inward[:-1] += decay * inward[:-1]
        by_outward[:-1] += decay * outward[:-1]
        by_scale = (slope * self.base).sum(keepdims=True)
        gradient = (by_inward, by_outward, by_scale, _through_softmax(by_matrix, transition))
        return float(loss), np.concatenate([part.ravel() for part in gradient])

    def _parts(self, vector: Floats) -> list[Floats]:
        ends = np.cumsum([np.prod(shape) for shape in self._shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(vector, ends), self._shapes, strict=True)]


def _through_softmax(slope: Floats, softmax: Floats) -> Floats:
    """Return the slope by the logits of each row from that by their softmax."""
    return np.asarray(softmax * (slope - (softmax * slope).sum(axis=1, keepdims=True)))
