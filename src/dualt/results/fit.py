"""What an estimator hands over: a matrix, what it rests on, and how to resample it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dualt.audit import AuditResult

Matrix: TypeAlias = NDArray[np.float64]
Resample: TypeAlias = Callable[[np.random.Generator], NDArray[Any]]


@dataclass(frozen=True)
class Fit:
    """An estimated transition matrix before diagnosis; what an estimator does not have is None.

    Attributes
    ----------
    transition : (n_classes, n_classes)
    support : (n_classes,)
        Number of labels that each row rests on.
    resample
        Draws the matrix of one bootstrap resample. A function of a module, so that estimates can be pickled.
    t_club, anchors
        P(Y' | Y), and the row number of each class's anchor.
    spade_counts : (n_classes, n_classes)
        Counts of intermediate class and given label, whose rows are P(noisy | Y').
    rate_interval : (float, float)
        What may be claimed of the share of wrong labels: at least, at most (1 where nothing can be).
    clean_prior : (n_classes,)
        Share of each true class; by default what label shares and matrix imply.
    determined : bool
        Whether an expert could always tell the class from the example.
    audit : AuditResult
        What verified labels have shown, where the matrix was corrected by them.
    """

    transition: Matrix
    support: NDArray[np.int64]
    resample: Resample
    t_club: NDArray[Any] | None = None
    spade_counts: NDArray[np.int64] | None = None
    anchors: NDArray[np.int64] | None = None
    rate_interval: tuple[float, float] | None = None
    clean_prior: NDArray[np.float64] | None = None
    determined: bool | None = None
    audit: AuditResult | None = None
