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
        rows = _normalize(summary.anchor_rows[:, 0].copy())
        return Anchors(rows, summary.anchor_index[:, 0], partial(_resample_best, summary))
    # The best sampled row strictly below the quantile of its column. The released code sets the entries above it to
    # zero in place, which corrupts the rows that other classes read. Where a whole column is equal, any row will do.
    quantile, rows = check_fraction(quantile, "quantile"), summary.sample_rows
    ceiling = np.quantile(rows, quantile, axis=0, method="higher")
    below = np.where(rows < ceiling, rows, -1).argmax(axis=0)
    resample = partial(_resample_quantile, rows, np.argsort(-rows, axis=0, kind="stable"), quantile)
    return Anchors(_normalize(rows[below]), summary.sample_index[below], resample)


def _resample_best(summary: PosteriorSummary, rng: np.random.Generator) -> NDArray[Any]:
    """Draw which of the best rows a resample of all rows has at least once, and take the first of these."""
    exists, n_samples = summary.anchor_index >= 0, summary.n_samples
    drawn = exists & (rng.random(exists.shape) < 1 - (1 - 1 / n_samples) ** n_samples)
    drawn[~drawn.any(axis=1), int(exists.sum(axis=1).min()) - 1] = True  # none of them: the worst
    return _normalize(summary.anchor_rows[np.arange(len(drawn)), drawn.argmax(axis=1)])


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
