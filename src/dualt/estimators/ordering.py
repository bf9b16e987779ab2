"""One order of the classes, whatever order they come in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualt.estimators.summary import PosteriorSummary


def canonical_order(summary: PosteriorSummary) -> NDArray[np.intp]:
    """Return the classes by how often they are given and predicted, and how surely.

    An estimator that starts at random or iterates works in this order, so that relabelling the classes
    permutes its result exactly.
    """
    return np.lexsort((summary.confidence_sums, summary.predicted_counts, summary.label_counts))
