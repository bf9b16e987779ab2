"""Orders of the classes: one whatever order they come in, and that of clusters that have yet to get a class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualt.results.fit import Matrix
from dualt.rows.summary import PosteriorSummary

_FLOOR = 1e-6


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
