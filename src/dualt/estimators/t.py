"""The T estimator: read each row at the example most surely of its class (Eq. 1)."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dualt.errors import UnknownNameError
from dualt.results.fit import Fit, Resample
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary
from dualt.validation import check_fraction

AnchorChoice: TypeAlias = Literal["max", "quantile"]


def t_estimator(posterior: NoisyPosterior, *, anchor: AnchorChoice = "max", quantile: float = 0.97) -> Fit:
    """T̂[i, :] = P̂(noisy | x^i) at the anchor x^i = argmax_x P̂(noisy=i | x) (Eq. 1).

    Parameters
    ----------
    posterior
    anchor
        `"max"`, the paper's; or `"quantile"`, the best example below the `quantile` of its column, as in the
        authors' released code (taken on the summary's sample of rows if there are more).
    """
    anchors = find_anchors(posterior.summary, anchor, quantile)
    support = posterior.summary.predicted_counts
    transition = anchors.rows.astype(np.float64)
    return Fit(transition, support, anchors.resample, t_club=anchors.rows, anchors=anchors.places)


class Anchors(NamedTuple):
    """Anchor rows (n_classes, n_classes), their row numbers, and how to resample them."""

    rows: NDArray[Any]
    places: NDArray[np.int64]
    resample: Resample


def find_anchors(summary: PosteriorSummary, anchor: str, quantile: float) -> Anchors:
    """Return the anchor of every class."""
    if anchor not in get_args(AnchorChoice):
        raise UnknownNameError("anchor", anchor, get_args(AnchorChoice))
    if anchor == "max":
        return Anchors(_normalize(summary.anchor_rows.copy()), summary.anchor_index, partial(_resample_best, summary))
    # The best sampled row strictly below the quantile of its column. The released code sets the entries above it to
    # zero in place, which corrupts the rows that other classes read. Where a whole column is equal, any row will do.
    quantile, rows = check_fraction(quantile, "quantile"), summary.sample_rows
    ceiling = np.quantile(rows, quantile, axis=0, method="higher")
    below = np.where(rows < ceiling, rows, -1).argmax(axis=0)
    resample = partial(_resample_quantile, rows, np.argsort(-rows, axis=0, kind="stable"), quantile)
    return Anchors(_normalize(rows[below]), summary.sample_index[below], resample)


def _resample_best(summary: PosteriorSummary, rng: np.random.Generator) -> NDArray[Any]:
    """Draw which rows a resample of all rows has at least once; take the anchor, or else the best of the sample."""
    classes, best, n_samples = np.arange(summary.n_classes), summary.best_sampled, summary.n_samples
    others = summary.sample_index[best] != summary.anchor_index[:, None]
    drawn = rng.random((len(classes), 1 + best.shape[1])) < 1 - (1 - 1 / n_samples) ** n_samples
    drawn[:, 1:] &= others
    place = drawn.argmax(axis=1)  # that of the anchor if none is drawn
    sampled = summary.sample_rows[best[classes, place - 1]]
    return _normalize(np.where(place[:, None] == 0, summary.anchor_rows, sampled))


def _resample_quantile(
    rows: NDArray[Any], order: NDArray[np.intp], quantile: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw anchors by rank: the rank of a quantile in a resample is binomial."""
    classes = np.arange(rows.shape[1])
    rank = np.minimum(rng.binomial(len(rows), 1 - quantile, len(classes)), len(rows) - 1)
    return _normalize(rows[order[rank, classes]])


def _normalize(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows that sum to one; they are a copy, changed in place."""
    rows /= rows.sum(axis=1, keepdims=True)
    return rows
