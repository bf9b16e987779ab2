"""Count the given labels among the most confident examples of each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators._counts import count_fit
from dualt.labels import Codes
from dualt.results.fit import Fit
from dualt.rows.floats import surest
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary
from dualt.validation import check_fraction


def top_count(posterior: NoisyPosterior, *, share: float = 0.5) -> Fit:
    """T̂[l, j] = share of given label j among the `share` most confident examples predicted as class l.

    Confident examples are more surely of the class they seem, and counting labels needs no calibration;
    it does need out-of-fold probabilities, since the choice must not have seen the labels.
    """
    check_fraction(share, "share")
    n_classes = posterior.n_classes
    thresholds = _thresholds(posterior.summary, share)

    def confident_pairs(probs: NDArray[Any], labels: Codes) -> NDArray[np.intp]:
        predicted, confidence = surest(probs)
        kept = np.flatnonzero(confidence >= thresholds[predicted])
        return np.asarray(predicted[kept] * n_classes + labels[kept])

    return count_fit(posterior.count(confident_pairs))


def _thresholds(summary: PosteriorSummary, share: float) -> NDArray[np.float64]:
    """Return the confidence that the `share` most confident of each predicted class reach, on the sample."""
    predicted, confidence = surest(summary.sample_rows)
    thresholds = np.zeros(summary.n_classes)
    for label in np.unique(predicted):
        thresholds[label] = np.quantile(confidence[predicted == label], 1 - share, method="higher")
    return thresholds
