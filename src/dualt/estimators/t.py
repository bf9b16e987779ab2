"""The T estimator: read each row at the example most surely of its class (Eq. 1)."""

from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dualt.errors import UnknownNameError
from dualt.results.fit import Fit
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary
from dualt.validation import check_fraction

AnchorChoice: TypeAlias = Literal["max", "quantile"]


def t_estimator(posterior: NoisyPosterior, *, anchor: AnchorChoice = "max", quantile: float = 0.97) -> Fit:
    """T̂[i, :] = P̂(noisy | x^i) at the anchor x^i = argmax_x P̂(noisy=i | x) (Eq. 1).

    Parameters
    ----------
    anchor
        `"max"`, the paper's; or `"quantile"`, the best example below the `quantile` of its column, as in the
        authors' released code (taken on the summary's sample of rows if there are more).
    """
    if anchor not in get_args(AnchorChoice):
        raise UnknownNameError("anchor", anchor, get_args(AnchorChoice))
    summary = posterior.summary
    rows, places, resample = summary.anchor_rows, summary.anchor_index, partial(_resample_best, summary)
    if anchor == "quantile":
        # The best sampled row strictly below the quantile of its column. The released code sets the entries above it to
        # zero in place, which corrupts the rows that other classes read. In a column of equal entries any row will do.
        quantile, sample = check_fraction(quantile, "quantile"), summary.sample_rows
        ceiling = np.quantile(sample, quantile, axis=0, method="higher")
        below = np.where(sample < ceiling, sample, -1).argmax(axis=0)
        rows, places = sample[below], summary.sample_index[below]
        resample = partial(_resample_quantile, sample, np.argsort(-sample, axis=0, kind="stable"), quantile)
    t_club = rows / rows.sum(axis=1, keepdims=True)
    return Fit(t_club.astype(np.float64), summary.predicted_counts, resample, t_club=t_club, anchors=places)


def _resample_best(summary: PosteriorSummary, rng: np.random.Generator) -> NDArray[Any]:
    """Draw which rows a resample of all rows has at least once; take the anchor, or else the best of the sample."""
    classes, best, n_samples = np.arange(summary.n_classes), summary.best_sampled, summary.n_samples
    others = summary.sample_index[best] != summary.anchor_index[:, None]
    drawn = rng.random((len(classes), 1 + best.shape[1])) < 1 - (1 - 1 / n_samples) ** n_samples
    drawn[:, 1:] &= others
    place = drawn.argmax(axis=1)  # that of the anchor if none is drawn
    sampled = summary.sample_rows[best[classes, place - 1]]
    rows = np.where(place[:, None] == 0, summary.anchor_rows, sampled)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _resample_quantile(
    rows: NDArray[Any], order: NDArray[np.intp], quantile: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw anchors by rank: the rank of a quantile in a resample is binomial."""
    classes = np.arange(rows.shape[1])
    rank = np.minimum(rng.binomial(len(rows), 1 - quantile, len(classes)), len(rows) - 1)
    drawn = rows[order[rank, classes]]
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
