"""Count the given labels among the examples whose *true* class is clear."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.counting import add_counts, normalize_counts
from dualt.estimators.fit import Fit, Matrix
from dualt.estimators.posterior import NoisyPosterior
from dualt.estimators.shrinkage import counted_rows, resampled_rows
from dualt.estimators.summary import PosteriorSummary
from dualt.labels import Codes
from dualt.transition import early_posterior
from dualt.validation import check_fraction

Chunk: TypeAlias = tuple[NDArray[Any], Codes]
# A class that is seldom clear still counts its clearest members: this share, and this many, of them.
_LEAST_SHARE, _LEAST_MEMBERS = 0.1, 50
# The sample stands for the data in the first round if it has this many rows for each class.
_ENOUGH_PER_CLASS = 200
_ROUNDING = 1e-5


def clean_count(posterior: NoisyPosterior, *, confidence: float = 0.8, shrink: bool = True) -> Fit:
    """T̂[i, j] = share of given label j among the examples whose clean class is i with `confidence`.

    dual-T with a better intermediate class: not the prediction, which follows the noise, but the most
    probable *clean* class under a first estimate (the confident joint), among examples that are sure of
    it. T♣ is then the identity, and the counted T♠ is the whole transition. Two rounds: the second
    reads the clean class with the matrix of the first.

    Needs out-of-fold probabilities: counting is honest only if the choice has not seen the labels.

    Parameters
    ----------
    posterior
    confidence
        Clean posterior that makes a class clear. In a class where few examples reach it, the clearest tenth,
        and at least fifty, count.
    shrink
        Draw off-diagonals towards uniform by as much as chance explains; see `shrink_off_diagonals`.
    """
    check_fraction(confidence, "confidence")
    summary = posterior.summary
    first: Iterable[Chunk] = (
        [(summary.sample_rows, summary.sample_labels)]
        if len(summary.sample_rows) >= _ENOUGH_PER_CLASS * summary.n_classes
        else posterior.chunks()
    )
    rough = normalize_counts(_count_clear(first, summary, confident_joint(posterior).transition, confidence))
    counts = _count_clear(posterior.chunks(), summary, rough, confidence)
    return Fit(counted_rows(counts, shrink), counts.sum(axis=1), partial(resampled_rows, counts, shrink))


def _count_clear(
    chunks: Iterable[tuple[NDArray[Any], Codes]],
    summary: PosteriorSummary,
    transition: Matrix,
    confidence: float,
) -> NDArray[np.int64]:
    """Count (clean class, given label) over the examples that are sure of their clean class."""
    n_classes = summary.n_classes
    matrix = transition.astype(summary.sample_rows.dtype)
    thresholds = _thresholds(summary, matrix, confidence)
    counts = np.zeros(n_classes * n_classes, np.int64)
    for probs, labels in chunks:
        clean, sureness = _clean_class(probs, matrix)
        clear = np.flatnonzero(sureness >= thresholds[clean])
        add_counts(counts, clean[clear] * n_classes + labels[clear])
    return counts.reshape(n_classes, n_classes)


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
