"""Training sets that correct for wrong labels."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.issues.label_issues import LabelIssues

Labels: TypeAlias = NDArray[np.intp]

CORRECTIONS = ("reweight", "posterior", "clean")
# A label that seems impossible under T would get a weight without bound; this one already outvotes ten others.
_MAX_WEIGHT = 10.0


def training_set(
    correction: str, issues: LabelIssues, labels: Labels, right: NDArray[np.float64]
) -> tuple[Labels | None, Labels, NDArray[np.float64] | float]:
    """Return the rows to fit a classifier on (None: all), their labels, and their weights.

    `reweight` weighs each example by q_y / (q @ T)_y = P(label is right) / T_yy (Liu & Tao 2016), `posterior` leaves
    all as it is, and `clean` takes the suggested labels, without the issues whose true class is not clear.
    """
    if correction == "posterior":
        return None, labels, 1.0
    if correction == "reweight":
        kept = np.diagonal(issues.transition)[labels]
        importance = np.divide(right, kept, out=np.zeros(len(labels)), where=kept > 0)
        if not importance.any():
            raise InputError(
                "Expected a matrix by which some labels are right, got one by which all are wrong."
                " Use correction='posterior' or correction='clean'."
            )
        return None, labels, importance.clip(max=_MAX_WEIGHT)
    replaced = issues.is_issue & (issues.suggested_probability >= 0.5)
    cleaned, is_kept = np.where(replaced, issues.suggested, labels), ~issues.is_issue | replaced
    for label in np.setdiff1d(labels, cleaned[is_kept]):  # no class may vanish
        members = np.flatnonzero(labels == label)
        best = members[right[members].argmax()]
        cleaned[best], is_kept[best] = label, True
    rows = np.flatnonzero(is_kept)
    return rows, cleaned[rows], 1.0
