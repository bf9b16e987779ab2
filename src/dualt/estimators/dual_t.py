"""The dual-T estimator: T = T♣ @ T♠ through an intermediate class, the prediction (Eq. 2)."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import resample_counts
from dualt.estimators.t import AnchorChoice, t_estimator
from dualt.results.fit import Fit, Matrix, Resample
from dualt.rows.chunks import normalize_counts
from dualt.rows.posterior import NoisyPosterior


def dual_t(posterior: NoisyPosterior, *, anchor: AnchorChoice = "max", quantile: float = 0.97) -> Fit:
    """T̂ = T♣ @ T♠ (Eq. 2): T♣ = P(Y' | Y) read at anchors, T♠ = P(noisy | Y') counted (Eq. 4).

    Algorithm 1 of the paper prints the product the other way round; with rows as clean classes this
    order is the one of its Eq. 2.

    Parameters
    ----------
    anchor, quantile
        How anchors are chosen; see `t_estimator`. The paper's is `"max"`, its released code's `"quantile"`.
    """
    at_anchors, counts = t_estimator(posterior, anchor=anchor, quantile=quantile), posterior.summary.counts
    return replace(
        at_anchors,
        transition=_product(at_anchors.t_club, counts),
        resample=partial(_resample, at_anchors.resample, counts),
        spade_counts=counts,
    )


def _resample(resample: Resample, counts: NDArray[np.int64], rng: np.random.Generator) -> Matrix:
    return _product(resample(rng), resample_counts(counts, rng))


def _product(t_club: Any, counts: NDArray[np.int64]) -> Matrix:
    """Return T♣ @ T♠ in the precision of the probabilities, rows exactly on the simplex."""
    product: Matrix = (t_club @ normalize_counts(counts).astype(t_club.dtype)).astype(np.float64)
    product /= product.sum(axis=1, keepdims=True)
    return product
