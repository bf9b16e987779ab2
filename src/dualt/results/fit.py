"""The result of an estimator function: a matrix, its support, and how to resample it."""

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

    `support` is the number of labels behind each row, and `resample` draws the matrix of one bootstrap resample: a
    function of a module, so that estimates can be pickled. `t_club` is P(Y' | Y), read at the rows `anchors`;
    `spade_counts` counts intermediate class and given label. `rate_interval` is what may be claimed of the share of
    wrong labels: at least, at most (1 where nothing can be). `clean_prior` holds the shares of the true classes, by
    default those that label shares and matrix imply. `determined` says whether an expert could always tell the class
    from the example, `audit` what verified labels have shown, `doubt` why no noise rate can be claimed.
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
    doubt: str | None = None
