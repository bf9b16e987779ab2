"""Training sets that correct for wrong labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.issues.label_issues import LabelIssues

# A label that seems impossible under T would get a weight without bound; this one already outvotes ten others.
_MAX_WEIGHT = 10.0


class TrainingSet(NamedTuple):
    """Rows to fit the classifier on (`None`: all), their labels and their weights."""

    rows: NDArray[np.intp] | None
    labels: NDArray[np.intp]
    importance: NDArray[np.float64] | None = None

    def weighted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the user's weights of the rows, times their importance."""
        own = values if self.rows is None else values[self.rows]
        return own if self.importance is None else own * self.importance


def _reweighted(issues: LabelIssues, labels: NDArray[np.intp], right: NDArray[np.float64]) -> TrainingSet:
    """Weigh each example by q_y / (q @ T)_y = P(label is right) / T_yy (Liu & Tao 2016)."""
    kept = np.diagonal(issues.transition)[labels]
    importance = np.divide(right, kept, out=np.zeros(len(labels)), where=kept > 0)
    if not importance.any():
        raise InputError(
            "Expected a matrix by which some labels are right, got one by which all are wrong."
            " Use correction='posterior' or correction='clean'."
        )
    return TrainingSet(None, labels, importance.clip(max=_MAX_WEIGHT))


def _as_given(issues: LabelIssues, labels: NDArray[np.intp], right: NDArray[np.float64]) -> TrainingSet:
    return TrainingSet(None, labels)


def _cleaned(issues: LabelIssues, labels: NDArray[np.intp], right: NDArray[np.float64]) -> TrainingSet:
    """Take the labels as they should be, without the issues whose true class is not clear."""
    replaced = issues.is_issue & (issues.suggested_probability >= 0.5)
    cleaned = np.where(replaced, issues.suggested, labels)
    kept = ~issues.is_issue | replaced
    for label in np.setdiff1d(labels, cleaned[kept]):  # no class may vanish
        members = np.flatnonzero(labels == label)
        best = members[right[members].argmax()]
        cleaned[best], kept[best] = label, True
    rows = np.flatnonzero(kept)
    return TrainingSet(rows, cleaned[rows])


CORRECTIONS = {"reweight": _reweighted, "posterior": _as_given, "clean": _cleaned}
