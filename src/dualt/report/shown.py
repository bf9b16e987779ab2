"""What a page shows besides an estimate: the lists to review, and a matrix that was given instead of estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.report.previews import Previews

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

Codes: TypeAlias = NDArray[np.integer[Any]]
MAX_LISTED = 10_000


def listed(issues: LabelIssues, limit: int = MAX_LISTED) -> Codes:
    """Return the row numbers that a report lists: the flagged examples, most suspect first."""
    return issues.indices[:limit]


@dataclass(frozen=True)
class ReviewList:
    """Examples for a person to look at, in this order.

    `key` names the list in the page and in the downloaded file. An audit is a random sample to verify: its download
    is for `dualt estimate --verified`, not for `dualt apply-review`.
    """

    key: str
    title: str
    purpose: str
    index: Codes
    is_audit: bool = False


def review_lists(issues: LabelIssues | None, audit: Codes | None, limit: int) -> list[ReviewList]:
    """Return the lists of a page: the suspects, and the audit if one was drawn."""
    if issues is None:
        return []
    index, flagged = listed(issues, limit), len(issues.indices)
    first = f" The {len(index):,} most suspect of {flagged:,} are listed." if len(index) < flagged else ""
    purpose = f"Most suspect first.{first} Keep each label, take the suggestion, or choose another class."
    lists = [ReviewList("suspects", "Suspect labels", purpose, index)]
    if audit is not None:
        purpose = (
            "Drawn at random, suspect or not: what you find here tells how noisy all the labels are. Judge each"
            " example by itself. Check them from the top, as many as you like."
        )
        lists.append(ReviewList("audit", "Random sample", purpose, audit, is_audit=True))
    return lists


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

    @property
    def diagnostics(self) -> GivenMatrix:
        """Its own figures."""
        return self


Estimate: TypeAlias = "TransitionEstimate | GivenMatrix"


class Intervals(NamedTuple):
    """Low and high ends for the matrix, the noise rate of each class and the noise rate, where they are known."""

    level: float
    matrix: tuple[NDArray[Any], NDArray[Any]] | None = None
    rates: tuple[NDArray[Any], NDArray[Any]] | None = None
    rate: tuple[float, float] | None = None


def read_results(
    estimate: TransitionEstimate | None, issues: LabelIssues | None, level: float
) -> tuple[Estimate, Intervals, NDArray[np.float64]]:
    """Return the estimate of the headline, its intervals, and the expected number of each (given, true) pair."""
    if estimate is not None:
        pairs = estimate.n_samples * (estimate.clean_prior[:, None] * estimate.transition).T
        intervals = Intervals(
            level,
            estimate.confidence_interval(level),
            estimate.noise_rates_interval(level),
            estimate.noise_rate_interval(level),
        )
        return estimate, intervals, pairs if issues is None else issues.by_pair
    if issues is None:
        raise InputError("Expected an estimate or label issues to report, got neither.")
    return GivenMatrix(issues), Intervals(level), issues.by_pair


class ReportOptions(TypedDict, total=False):
    """The options of a report; `dualt.report.render_report` describes them."""

    comparison: Sequence[TransitionEstimate]
    audit: Codes | None
    previews: Previews | None
    level: float
    title: str
    limit: int
