"""Train a small head and the matrix together: the most accurate where noise depends on the class alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import canonical_order, count_fit, match_rows, shrink_off_diagonals
from dualt.estimators.clean_count import clean_count
from dualt.estimators.joint.model import BATCH, Examples, JointModel
from dualt.estimators.joint.starts import starting_points
from dualt.labels import Codes
from dualt.results.fit import Fit, Matrix
from dualt.rng import RandomState, as_generator
from dualt.rows.posterior import NoisyPosterior

_MOST_ROWS, _MOST_ENTRIES, _JUDGED = 200_000, 1 << 25, 10_000
_FIRST_STEPS, _LEAST_STEPS, _MOST_STEPS, _EPOCHS = 300, 300, 1_500, 40
_FINALISTS, _FINALISTS_OF_MANY, _MANY_CLASSES = 3, 2, 20

_log = logging.getLogger(__name__)


def joint(posterior: NoisyPosterior, *, shrink: bool = True, random_state: RandomState = 0) -> Fit:
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
    shrink
        Draw off-diagonals towards uniform by as much as chance explains; see `shrink_off_diagonals`.
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
    first = clean_count(posterior, shrink=False).transition[np.ix_(order, order)]
    place = np.argsort(order)
    matrix, shares = _fit(probs[:, order], place[labels], first, generator)
    matrix, shares = matrix[np.ix_(place, place)], shares[place]
    counts = np.rint(posterior.summary.n_samples * shares[:, None] * matrix).astype(np.int64)
    transition = shrink_off_diagonals(matrix, counts.sum(axis=1)) if shrink else matrix
    return replace(count_fit(counts, shrink=shrink), transition=transition)


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
