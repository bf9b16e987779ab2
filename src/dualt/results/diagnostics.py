"""Figures that show how far an estimate can be trusted; `claims` puts them into words."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from dualt.results.fit import Fit
from dualt.rows.scaling import has_other_shares, share_distance
from dualt.rows.summary import PosteriorSummary

# Singular values take about a second up to this many classes.
_MOST_CLASSES = 1_000


def information(counts: NDArray[np.int64]) -> float:
    """Return the share of the given labels' entropy that the prediction explains: 0 for a classifier at chance.

    I(prediction; given label) / H(given label) of counts[predicted, given], less the (C−1)² / 2n that chance gives.
    """
    total = counts.sum()
    predicted, given = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    entropy = float(entr(given).sum())
    mutual = float(entr(predicted).sum()) + entropy - float(entr(counts[counts > 0] / total).sum())
    chance = (np.count_nonzero(predicted) - 1) * (np.count_nonzero(given) - 1) / (2 * total)
    return max(0.0, mutual - chance) / entropy if entropy > 0 else 0.0


class Diagnostics:
    """Figures that show how far an estimate can be trusted, each computed when it is first used.

    Attributes
    ----------
    label_counts, predicted_counts : (n_classes,)
        How often each class is given as a label, and predicted.
    support : (n_classes,)
        Number of labels that each row of the matrix rests on.
    agreement : float
        Share of examples whose prediction is the given label.
    """

    def __init__(self, fit: Fit, summary: PosteriorSummary) -> None:
        self._transition, self._summary = fit.transition, summary
        self.label_counts, self.predicted_counts = summary.label_counts, summary.predicted_counts
        self.support, self.agreement = fit.support, summary.agreement

    @cached_property
    def condition_number(self) -> float | None:
        """How much inverting the matrix amplifies errors, at most; None above 1,000 classes, where it takes long."""
        if len(self._transition) > _MOST_CLASSES:
            return None
        found = float(np.linalg.cond(self._transition))
        # For a singular matrix, rounding leaves a huge number on one processor and none on another.
        return found if found < 1 / np.finfo(np.float64).eps else float("inf")

    @cached_property
    def share_distance(self) -> float:
        """How far mean probabilities are from the labels' shares, between 0 and 1; 0 if chance explains it."""
        rows, n_classes = self._summary.sample_rows, self._summary.n_classes
        found = share_distance(rows, np.bincount(self._summary.sample_labels, minlength=n_classes))
        return found if has_other_shares(found, rows) else 0.0

    def __repr__(self) -> str:
        figures = f"agreement={self.agreement:.3f}, share_distance={self.share_distance:.3f}"
        return f"Diagnostics({figures}, condition_number={self.condition_number})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        names = ("condition_number", "label_counts", "predicted_counts", "support", "agreement", "share_distance")
        return {name: np.asarray(getattr(self, name)).tolist() for name in names}
