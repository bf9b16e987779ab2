"""Empirical-Bayes shrinkage of a matrix's off-diagonals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualt.rows.counts import normalize_counts, resample_counts


def shrink_off_diagonals(transition: NDArray[np.float64], support: NDArray[np.int64]) -> NDArray[np.float64]:
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


def counted_rows(counts: NDArray[np.int64], shrink: bool) -> NDArray[np.float64]:
    """Return counts[clean, noisy] as rows, shrunk if asked."""
    rows = normalize_counts(counts)
    return shrink_off_diagonals(rows, counts.sum(axis=1)) if shrink else rows


def resampled_rows(counts: NDArray[np.int64], shrink: bool, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the rows of a bootstrap resample of the counts."""
    return counted_rows(resample_counts(counts, rng), shrink)
