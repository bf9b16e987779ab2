"""The T estimator: read each row at the example most surely of its class (Eq. 1)."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, UnknownNameError
from dualt.results.fit import Fit, Resample
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary
from dualt.validation import check_fraction

AnchorChoice: TypeAlias = Literal["max", "quantile", "top-mean"]


def t_estimator(
    posterior: NoisyPosterior, *, anchor: AnchorChoice = "max", quantile: float = 0.97, top_k: int = 5
) -> Fit:
    """T̂[i, :] = P̂(noisy | x^i) at the anchor x^i = argmax_x P̂(noisy=i | x) (Eq. 1).

    Parameters
    ----------
    posterior
    anchor
        `"max"`, the paper's; `"quantile"`, the best example below the `quantile` of its column, as in the
        authors' released code (taken on the summary's sample of rows if there are more); `"top-mean"`,
        the mean of the `top_k` best.
    """
    anchors = find_anchors(posterior.summary, anchor=anchor, quantile=quantile, top_k=top_k)
    return Fit(
        transition=anchors.rows.astype(np.float64),
        support=posterior.summary.predicted_counts,
        resample=anchors.resample,
        t_club=anchors.rows,
        anchors=anchors.best,
    )


class Anchors(NamedTuple):
    """Anchor rows (n_classes, n_classes), the number of the best of them per class, and how to resample them."""

    rows: NDArray[Any]
    best: NDArray[np.int64]
    resample: Resample


def find_anchors(summary: PosteriorSummary, *, anchor: str, quantile: float, top_k: int) -> Anchors:
    """Return the anchors of every class."""
    if anchor not in get_args(AnchorChoice):
        raise UnknownNameError("anchor", anchor, get_args(AnchorChoice))
    if anchor == "quantile":
        return _below_quantile(summary, check_fraction(quantile, "quantile"))
    stored, best = summary.anchor_index.shape[1], 1 if anchor == "max" else top_k
    if not (isinstance(best, int) and 1 <= best <= stored):
        raise InputError(
            f"Expected top_k from 1 to {stored} (the summary keeps {stored} anchors per class), got {top_k}."
        )
    return Anchors(
        rows=_mean_of_first(summary, best, summary.anchor_index >= 0),
        best=summary.anchor_index[:, 0],
        resample=partial(_resample_best, summary, best),
    )


def _mean_of_first(summary: PosteriorSummary, top_k: int, available: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the mean of the first `top_k` anchors of each class that are available."""
    chosen = available & (np.cumsum(available, axis=1) <= top_k)
    # A resample that draws none of the stored rows falls back on the worst of them.
    last = int((summary.anchor_index >= 0).sum(axis=1).min()) - 1
    chosen[~chosen.any(axis=1), last] = True
    return _normalize(np.einsum("ck,ckj->cj", chosen.astype(summary.anchor_rows.dtype), summary.anchor_rows))


def _resample_best(summary: PosteriorSummary, top_k: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw which of the stored rows a resample of all rows holds at least once, and take the best of these."""
    exists, n_samples = summary.anchor_index >= 0, summary.n_samples
    drawn = rng.random(exists.shape) < 1 - (1 - 1 / n_samples) ** n_samples
    return _mean_of_first(summary, top_k, exists & drawn)


def _below_quantile(summary: PosteriorSummary, quantile: float) -> Anchors:
    """Return for each class the best sampled row whose entry lies strictly below the quantile of its column.

    The released code sets the entries above it to zero in place, which corrupts the rows that other
    classes read; here nothing is touched. Where a whole column is equal, any row will do.
    """
    rows = summary.sample_rows
    ceiling = np.quantile(rows, quantile, axis=0, method="higher")
    below = np.where(rows < ceiling, rows, -1).argmax(axis=0)
    return Anchors(
        rows=_normalize(rows[below]),
        best=summary.sample_index[below],
        resample=partial(_resample_quantile, rows, np.argsort(-rows, axis=0, kind="stable"), quantile),
    )


def _resample_quantile(
    rows: NDArray[Any], order: NDArray[np.intp], quantile: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw anchors by rank: the rank of a quantile in a resample is binomial."""
    classes = np.arange(rows.shape[1])
    rank = np.minimum(rng.binomial(len(rows), 1 - quantile, len(classes)), len(rows) - 1)
    return _normalize(rows[order[rank, classes]])


def _normalize(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows on the simplex; they are the caller's own copy, and changed in place."""
    rows /= rows.sum(axis=1, keepdims=True)
    return rows
