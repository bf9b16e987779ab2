"""What a page shows besides an estimate: the lists to review, and a matrix that was given instead of estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from dualt.report.previews import Previews

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

Codes: TypeAlias = NDArray[np.integer[Any]]
Estimate: TypeAlias = "TransitionEstimate | GivenMatrix"
MAX_LISTED = 10_000


class ReportOptions(TypedDict, total=False):
    """The options of a report, which `dualt.report.render_report` describes."""

    comparison: Sequence[TransitionEstimate]
    audit: Codes | None
    previews: Previews | None
    level: float
    title: str
    limit: int


@dataclass(frozen=True)
class ReviewList:
    """Row numbers for a person to look at, in this order; `key` names the list in the page and its download."""

    key: str
    title: str
    index: Codes


def listed(issues: LabelIssues, limit: int = MAX_LISTED) -> Codes:
    """Return the row numbers that a report lists: the flagged examples, most suspect first."""
    return issues.indices[:limit]


class GivenMatrix:
    """The matrix that issues were found with, where a page expects an estimate: no intervals and no warnings."""

    estimator = "a given matrix"
    warnings = ()
    agreement = None

    def __init__(self, issues: LabelIssues) -> None:
        self.n_samples = len(issues)
        self.class_names = issues.class_names
        self.transition = issues.transition
        self.noise_rate = issues.expected_count / len(issues)
        self.noise_rates = 1 - np.diagonal(issues.transition)
        self.label_counts = np.bincount(issues.given, minlength=len(issues.class_names))
        self.condition_number = float(np.linalg.cond(issues.transition))
        self.diagnostics = self
