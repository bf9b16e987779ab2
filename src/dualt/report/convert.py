"""From results to a report: reads what an estimate and its issues say, computes nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualt.report.data import Codes, Floats, Method, Remark, ReportData, ReviewList
from dualt.report.previews import Previews

if TYPE_CHECKING:
    from dualt.estimators import TransitionEstimate
    from dualt.issues import LabelIssues

MAX_LISTED = 10_000


def report_data(
    estimate: TransitionEstimate,
    issues: LabelIssues | None = None,
    *,
    comparison: Sequence[TransitionEstimate] = (),
    previews: Previews | None = None,
    level: float = 0.95,
    title: str = "Label report",
    limit: int = MAX_LISTED,
) -> ReportData:
    """Return what the page shows of an estimate and, if given, of the labels it finds wrong.

    Parameters
    ----------
    estimate
        The matrix of the headline.
    issues
        Adds the list to review: the flagged examples, most suspect first.
    comparison
        Estimates of several methods, shown side by side.
    previews
        Thumbnails or texts of the listed examples (`listed` names them).
    level
        Confidence of the intervals.
    title
        Shown on top and in the browser's tab.
    limit
        Most examples to list.
    """
    return ReportData(
        title=title,
        method=estimate.method,
        n_samples=estimate.n_samples,
        class_names=tuple(estimate.class_names),
        transition=estimate.transition,
        noise_rate=estimate.noise_rate,
        noise_rates=estimate.noise_rates,
        expected_wrong=issues.expected_count if issues else estimate.noise_rate * estimate.n_samples,
        level=level,
        transition_interval=estimate.confidence_interval(level),
        noise_rate_interval=estimate.noise_rate_interval(level),
        noise_rates_interval=estimate.noise_rates_interval(level),
        pair_counts=issues.by_pair if issues else _pair_counts(estimate),
        label_counts=estimate.diagnostics.label_counts.astype(np.intp),
        agreement=estimate.diagnostics.agreement,
        condition_number=estimate.diagnostics.condition_number,
        remarks=tuple(Remark(notice.message, notice.advice) for notice in estimate.warnings),
        methods=tuple(
            Method(other.method, other.transition, other.noise_rate, other.noise_rates) for other in comparison
        ),
        lists=(_suspects(issues, previews, limit),) if issues else (),
    )


def listed(issues: LabelIssues, limit: int = MAX_LISTED) -> Codes:
    """Return the row numbers that a report lists: the flagged examples, most suspect first."""
    return issues.ranking[issues.is_issue[issues.ranking]][:limit]


def _suspects(issues: LabelIssues, previews: Previews | None, limit: int) -> ReviewList:
    index = listed(issues, limit)
    flagged = int(issues.is_issue.sum())
    first = f" The {len(index):,} most suspect of {flagged:,} are listed." if len(index) < flagged else ""
    return ReviewList(
        key="suspects",
        title="Suspect labels",
        purpose=f"Most suspect first.{first} Keep each label, take the suggestion, or choose another class.",
        index=index,
        given=issues.given[index],
        suggested=issues.suggested[index],
        probability_right=issues.probability_right[index],
        suggested_probability=issues.suggested_probability[index],
        previews=previews,
    )


def _pair_counts(estimate: TransitionEstimate) -> Floats:
    """Return the expected number of examples of each given label (rows) and true class (columns)."""
    counts: Floats = (estimate.n_samples * estimate.clean_prior[:, None] * estimate.transition).T
    return counts
