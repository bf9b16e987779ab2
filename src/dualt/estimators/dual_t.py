"""The dual-T estimator: T = T♣ @ T♠ through an intermediate class, the prediction (Eq. 2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import resample_counts
from dualt.estimators.t import AnchorChoice, Anchors, find_anchors
from dualt.results.fit import Fit, Matrix
from dualt.rows.chunks import normalize_counts
from dualt.rows.posterior import NoisyPosterior


def dual_t(posterior: NoisyPosterior, *, anchor: AnchorChoice = "max", quantile: float = 0.97) -> Fit:
    """T̂ = T♣ @ T♠ (Eq. 2): T♣ = P(Y' | Y) read at anchors, T♠ = P(noisy | Y') counted (Eq. 4).

    Algorithm 1 of the paper prints the product the other way round; with rows as clean classes this
    order is the one of its Eq. 2.

    Parameters
    ----------
    posterior
    anchor, quantile
        How anchors are chosen; see `t_estimator`. The paper's is `"max"`, its released code's `"quantile"`.
    """
    summary = posterior.summary
    anchors = find_anchors(summary, anchor, quantile)
    return Fit(
        transition=_product(anchors.rows, summary.counts),
        support=summary.predicted_counts,
        resample=partial(_resample, anchors, summary.counts),
        t_club=anchors.rows,
        spade_counts=summary.counts,
        anchors=anchors.places,
    )


def _resample(anchors: Anchors, counts: NDArray[np.int64], rng: np.random.Generator) -> Matrix:
    return _product(anchors.resample(rng), resample_counts(counts, rng))


def _product(t_club: NDArray[Any], counts: NDArray[np.int64]) -> Matrix:
    """Return T♣ @ T♠ in the precision of the probabilities, rows exactly on the simplex."""
    product: Matrix = (t_club @ normalize_counts(counts).astype(t_club.dtype)).astype(np.float64)
    product /= product.sum(axis=1, keepdims=True)
    return product
