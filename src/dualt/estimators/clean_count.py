"""Count the given labels among the examples whose *true* class is clear."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.counting import count_pairs, normalize_counts
from dualt.estimators.fit import Fit, Matrix
from dualt.estimators.posterior import NoisyPosterior, PairsOf
from dualt.estimators.shrinkage import counted_rows, resampled_rows
from dualt.estimators.summary import PosteriorSummary
from dualt.labels import Codes
from dualt.transition import early_posterior
from dualt.validation import check_fraction

# Counts the pairs that a function finds: in the sample, or in all rows.
Count: TypeAlias = Callable[[PairsOf], NDArray[np.int64]]
# A class that is seldom clear still counts its clearest members: this share, and this many, of them.
_LEAST_SHARE, _LEAST_MEMBERS = 0.1, 100
# The sample stands for the data in the first rounds if it has this many rows for each class.
_ENOUGH_PER_CLASS, _FIRST_ROUNDS = 100, 3
_ROUNDING = 1e-5


def clean_count(posterior: NoisyPosterior, *, confidence: float = 0.9, shrink: bool = True) -> Fit:
    """T̂[i, j] = share of given label j among the examples whose clean class is i with `confidence`.

    dual-T with a better intermediate class: not the prediction, which follows the noise, but the most
    probable *clean* class under a first estimate (the confident joint), among examples that are sure of
    it. T♣ is then the identity, and the counted T♠ is the whole transition. Four rounds, each of which reads
    the clean class with the matrix of the one before; all but the last on a sample of the data, or two
    rounds where there are too many classes for a sample.

    Needs out-of-fold probabilities: counting is honest only if the choice has not seen the labels.

    Parameters
    ----------
    posterior
    confidence
        Clean posterior that makes a class clear. In a class where few examples reach it, the clearest tenth,
        and at least a hundred, count.
    shrink
        Draw off-diagonals towards uniform by as much as chance explains; see `shrink_off_diagonals`.
    """
    check_fraction(confidence, "confidence")
    summary = posterior.summary
    n_sampled = len(summary.sample_rows)
    enough = n_sampled == summary.n_samples or n_sampled >= _ENOUGH_PER_CLASS * summary.n_classes
    first: Count = partial(_count_sample, summary) if enough else posterior.count
    rough = confident_joint(posterior).transition
    for _ in range(_FIRST_ROUNDS if enough else 1):
        rough = normalize_counts(_count_clear(first, summary, rough, confidence))
    counts = _count_clear(posterior.count, summary, rough, confidence)
    return Fit(counted_rows(counts, shrink), counts.sum(axis=1), partial(resampled_rows, counts, shrink))


def _count_sample(summary: PosteriorSummary, pairs_of: PairsOf) -> NDArray[np.int64]:
    return count_pairs([pairs_of(summary.sample_rows, summary.sample_labels)], summary.n_classes)


def _count_clear(count: Count, summary: PosteriorSummary, transition: Matrix, confidence: float) -> NDArray[np.int64]:
    """Count (clean class, given label) over the examples that are sure of their clean class."""
    n_classes = summary.n_classes
    matrix = transition.astype(summary.sample_rows.dtype)
    thresholds = _thresholds(summary, matrix, confidence)

    def clear_pairs(probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
        clean, sureness = _clean_class(probs, matrix)
        clear = np.flatnonzero(sureness >= thresholds[clean])
        return np.asarray(clean[clear] * n_classes + labels[clear])

    return count(clear_pairs)


def _clean_class(probs: NDArray[Any], matrix: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    clean = early_posterior(probs, matrix)
    best = clean.argmax(axis=1)
    return best, clean[np.arange(len(best)), best]


def _thresholds(summary: PosteriorSummary, matrix: NDArray[Any], confidence: float) -> NDArray[np.float64]:
    """Return the sureness that counts in each class: `confidence`, or less where too few of the sample reach it."""
    clean, sureness = _clean_class(summary.sample_rows, matrix)
    least = _LEAST_MEMBERS * len(clean) / summary.n_samples
    thresholds = np.full(summary.n_classes, confidence)
    for label in np.unique(clean):
        members = np.sort(sureness[clean == label])[::-1]
        needed = int(np.ceil(max(least, _LEAST_SHARE * len(members))))
        thresholds[label] = min(confidence, members[min(needed, len(members)) - 1])
    # The member that sets a threshold must reach it although its sureness is rounded anew in each pass.
    return thresholds - _ROUNDING
