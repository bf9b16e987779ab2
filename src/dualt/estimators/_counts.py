"""Counts of (true class, given label): as a fit, resampled, and as rows pooled over classes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.results.fit import Fit, Matrix
from dualt.rows.chunks import normalize_counts
from dualt.rows.summary import PosteriorSummary

_STRENGTHS = np.geomspace(0.1, 1e4, 41)


def count_fit(counts: NDArray[np.int64], to_rows: Callable[[NDArray[Any]], Matrix] = normalize_counts) -> Fit:
    """Return the `Fit` of counts[true, given], resampled as a multinomial."""
    return Fit(to_rows(counts), counts.sum(axis=1), partial(_resampled_rows, counts, to_rows))


def _resampled_rows(counts: NDArray[np.int64], to_rows: Callable[..., Matrix], rng: np.random.Generator) -> Matrix:
    return to_rows(resample_counts(counts, rng))


def resample_counts(counts: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the counts of a sample of the same size drawn with replacement."""
    cells = np.flatnonzero(counts)
    filled = counts.ravel()[cells].astype(np.float64)
    drawn = np.zeros(counts.size, np.int64)
    if len(cells):  # a handful of rows may round to none
        drawn[cells] = rng.multinomial(round(filled.sum()), filled / filled.sum())
    return drawn.reshape(counts.shape)


def pooled_rows(counts: NDArray[Any]) -> Matrix:
    """Return counts[true, given] as rows, where classes with few labels borrow from the others (empirical Bayes).

    The (right, wrong) counts of each class are drawn to the common noise rate, and its errors to a uniform spread over
    the other classes, each by the Dirichlet strength s that makes the counts of all classes likeliest:
    (counts + s · mean) / (total + s). Symmetric noise becomes symmetric, pair noise hardly moves.
    """
    totals, others = counts.sum(axis=1), len(counts) - 1
    errors: Matrix = counts.astype(np.float64)
    np.fill_diagonal(errors, 0)
    wrong = errors.sum(axis=1)
    common = (wrong.sum() + 0.5) / (totals.sum() + 1)
    strength = _likeliest_strength(totals, [(wrong, common), (totals - wrong, 1 - common)])
    rates = (wrong + strength * common) / (totals + strength)
    strength = _likeliest_strength(wrong, [(errors.ravel(), 1 / others)])
    errors += strength / others
    errors *= (rates / (wrong + strength))[:, None]
    np.fill_diagonal(errors, 1 - rates)
    return errors


def _likeliest_strength(totals: NDArray[Any], cells: Sequence[tuple[NDArray[Any], float]]) -> float:
    """Return the strength of a Dirichlet prior that makes rows of counts likeliest; `cells` are (counts, mean)."""
    from scipy.special import gammaln

    strength = _STRENGTHS[:, None]
    fits = (gammaln(strength) - gammaln(strength + totals)).sum(axis=1)
    for counts, mean in cells:
        # Most cells of many classes are empty, and few counts differ: each gamma function is computed once.
        values, times = np.unique(np.round(counts[counts > 0], 1), return_counts=True)
        fits += (gammaln(values + strength * mean) - gammaln(strength * mean)) @ times
    return float(_STRENGTHS[int(np.argmax(fits))])


def canonical_order(summary: PosteriorSummary) -> NDArray[np.intp]:
    """Return the classes by how often they are given and predicted, and how surely.

    An estimator that iterates or starts at random works in this order, so that relabelling the classes permutes its
    result exactly.
    """
    return np.lexsort((summary.confidence_sums, summary.predicted_counts, summary.label_counts))
