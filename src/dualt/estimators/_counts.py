"""Counting: from counts of (clean class, given label) to a fit, resampled, shrunk, with its classes in order."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.results.fit import Fit, Matrix
from dualt.rows.counts import normalize_counts
from dualt.rows.summary import PosteriorSummary

_FLOOR = 1e-6
# A share of fewer examples says little.
_FEWEST_SUREST = 30
_CONCENTRATIONS = np.geomspace(0.02, 200, 40)


def count_fit(counts: NDArray[np.int64], *, shrink: bool = False) -> Fit:
    """Return the `Fit` of counts[clean, noisy]: rows normalised, perhaps shrunk, resampled as a multinomial."""
    return Fit(_counted_rows(counts, shrink), counts.sum(axis=1), partial(_resampled_rows, counts, shrink))


def _counted_rows(counts: NDArray[np.int64], shrink: bool) -> Matrix:
    rows = normalize_counts(counts)
    return shrink_off_diagonals(rows, counts.sum(axis=1)) if shrink else rows


def _resampled_rows(counts: NDArray[np.int64], shrink: bool, rng: np.random.Generator) -> Matrix:
    return _counted_rows(resample_counts(counts, rng), shrink)


def resample_counts(counts: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the counts of a sample of the same size drawn with replacement."""
    cells = np.flatnonzero(counts)
    filled = counts.ravel()[cells].astype(np.float64)
    drawn = np.zeros(counts.size, np.int64)
    drawn[cells] = rng.multinomial(round(filled.sum()), filled / filled.sum())
    return drawn.reshape(counts.shape)


def shrink_off_diagonals(transition: Matrix, support: NDArray[np.int64]) -> Matrix:
    """Return rows whose off-diagonals are drawn towards uniform by as much as chance explains them.

    It assumes that how a row's errors spread over the other classes varies around "all alike", by a
    variance common to all rows, which the data tell: symmetric noise is drawn to symmetric all the way,
    pair noise, whose spread no chance explains, hardly moves. Noise rates are not touched.

    With o the share of each other class among a row's errors, u = 1/(C−1) and m the number of errors, a
    row of chance alone has variance e = u(1−u)/m; the excess over all rows estimates τ², and a row
    keeps τ²/(τ² + e) of its spread.

    Parameters
    ----------
    transition : (n_classes, n_classes)
    support : (n_classes,)
        Number of labels that each row rests on.
    """
    n_classes = len(transition)
    if n_classes < 3:
        return transition
    off = ~np.eye(n_classes, dtype=bool)
    rates = 1 - np.diagonal(transition)
    uniform = 1 / (n_classes - 1)
    spread = transition / np.maximum(rates, 1e-12)[:, None]
    errors = np.maximum(support * rates, 1)
    chance = uniform * (1 - uniform) / errors
    seen = np.where(off, (spread - uniform) ** 2, 0).sum(axis=1) * uniform
    noisy = rates > 1e-3
    if not noisy.any():
        return transition
    excess = max(0.0, float(np.average((seen - chance)[noisy], weights=errors[noisy])))
    kept = (excess / (excess + chance))[:, None]
    shrunk = rates[:, None] * (kept * spread + (1 - kept) * uniform)
    return np.where(off, shrunk, transition)


def pooled_rows(counts: NDArray[np.int64], concentration: float | None = None) -> Matrix:
    """Return counts[clean, given] as rows: what few labels cannot tell of a class is taken from all classes.

    Noise rates are drawn to the rate of all classes, and how a class's errors spread over the others is drawn to
    uniform, each by as much as chance explains: see `pooled_rates` and `pooled_spread`.
    """
    rates = pooled_rates(counts)
    transition = pooled_spread(counts, concentration)
    transition *= rates[:, None]
    np.fill_diagonal(transition, 1 - rates)
    return transition


def pooled_rates(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return every class's share of errors, drawn to that of all classes (a beta-binomial model, by moments)."""
    totals = counts.sum(axis=1)
    errors = totals - np.diagonal(counts)
    total = totals.sum()
    if total == 0:
        return np.zeros(len(counts))
    common = errors.sum() / total
    own = errors / np.maximum(totals, 1)
    chance = common * (1 - common) + 1e-6
    excess = (totals * (own - common) ** 2).sum() - (np.count_nonzero(totals) - 1) * chance
    between = max(0.0, excess / max(total - (totals.astype(float) ** 2).sum() / total, 1e-9))
    kept = between * totals / (between * totals + chance)
    return np.asarray(kept * own + (1 - kept) * common)


def pooled_spread(counts: NDArray[np.int64], concentration: float | None = None) -> Matrix:
    """Return how each class's errors spread over the others: (errors + a) / Σ (errors + a), zero on the diagonal.

    a is `concentration`, by default that of `spread_concentration`.
    """
    a = spread_concentration(counts) if concentration is None else concentration
    off: NDArray[Any] = counts + np.float64(a)
    np.fill_diagonal(off, 0)
    off /= off.sum(axis=1, keepdims=True)
    return off


def spread_concentration(counts: NDArray[np.int64]) -> float:
    """Return the parameter of the symmetric Dirichlet, common to all classes, that makes their errors most probable.

    Errors of symmetric noise find a large one, which draws each class's spread to uniform all the way; those of pair
    noise a small one, which hardly moves it.
    """
    from scipy.special import gammaln

    others = len(counts) - 1
    a = _CONCENTRATIONS[:, None]
    # Most cells of many classes are empty, and few counts differ: each gamma function is computed once.
    totals = counts.sum(axis=1) - np.diagonal(counts)
    times = np.bincount(counts.ravel())
    times -= np.bincount(np.diagonal(counts), minlength=len(times))
    values = np.flatnonzero(times)
    likelihood = (gammaln(others * a) - gammaln(others * a + totals)).sum(axis=1)
    likelihood += (gammaln(values + a) - gammaln(a)) @ times[values]
    return float(_CONCENTRATIONS[int(np.argmax(likelihood))])


def canonical_order(summary: PosteriorSummary) -> NDArray[np.intp]:
    """Return the classes by how often they are given and predicted, and how surely.

    An estimator that starts at random or iterates works in this order, so that relabelling the classes
    permutes its result exactly.
    """
    return np.lexsort((summary.confidence_sums, summary.predicted_counts, summary.label_counts))


def match_rows(transition: Matrix) -> tuple[Matrix, NDArray[np.intp]]:
    """Return the rows in the order that makes Σ log T_kk largest, and that order: clusters get their classes.

    Rows that are largest on the diagonal, as those of most noise, stay where they are.
    """
    if (np.diagonal(transition) == transition.max(axis=1)).all():
        return transition, np.arange(len(transition))
    from scipy.optimize import linear_sum_assignment

    row, column = linear_sum_assignment(-np.log(np.maximum(transition, _FLOOR)))
    order = row[np.argsort(column)]
    return transition[order], order


def alikeness(sure: Matrix, doubtful: NDArray[np.int64]) -> float:
    """Return how far doubtful examples err in the way of the sure ones: 0 not at all, 1 alike.

    Of the doubtful examples' labels, those are in excess that noise as among the sure ones does not explain. Where the
    excess goes to other classes than the sure ones' errors, it is the classifier that is weak; where it goes to the
    same, noise may grow with difficulty. The overlap of the two spreads, Σ min, weighted by the excess.
    """
    spread = sure.copy()
    np.fill_diagonal(spread, 0)
    spread /= np.maximum(spread.sum(axis=1, keepdims=True), 1e-12)
    # In place from here on: of many classes, memory is what takes time.
    excess = sure * -doubtful.sum(axis=1, keepdims=True)
    excess += doubtful
    np.maximum(excess, 0, out=excess)
    np.fill_diagonal(excess, 0)
    totals = excess.sum(axis=1)
    excess /= np.maximum(totals, 1e-12)[:, None]
    overlap = np.minimum(spread, excess, out=excess).sum(axis=1)
    return float((overlap * totals).sum() / max(totals.sum(), 1.0))


def surest_few(summary: PosteriorSummary) -> tuple[int, int]:
    """Return how many of the surest few contradict their labels, of how many, if they do so less than the next.

    Noise that depends on the class alone is the same among all that are sure: agreement has reached a plateau, and
    (0, 0) is returned. Where it still rises, by more than a standard error, what looks like noise may be classes that
    overlap, and only the surest few speak for noise.
    """
    rows = summary.sample_rows
    agrees = (rows.argmax(axis=1) == summary.sample_labels)[np.argsort(-rows.max(axis=1), kind="stable")]
    n_surest = max(_FEWEST_SUREST, len(agrees) // 20)
    surest, following = agrees[:n_surest], agrees[n_surest : 5 * n_surest]
    if not len(following):
        return 0, 0
    share = (surest.sum() + following.sum() + 1) / (len(surest) + len(following) + 2)
    error = np.sqrt(share * (1 - share) * (1 / len(surest) + 1 / len(following)))
    rises = surest.mean() - following.mean() > error
    return (int((~surest).sum()), n_surest) if rises else (0, 0)
