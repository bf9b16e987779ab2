"""From results to a report: reads what an estimate and its issues say, computes nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualt.errors import InputError
from dualt.report.data import Codes, Method, Remark, ReportData, ReviewList
from dualt.report.previews import Previews

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

MAX_LISTED = 10_000


def report_data(
    estimate: TransitionEstimate | None,
    issues: LabelIssues | None = None,
    *,
    comparison: Sequence[TransitionEstimate] = (),
    audit: Codes | None = None,
    previews: Previews | None = None,
    level: float = 0.95,
    title: str = "Label report",
    limit: int = MAX_LISTED,
) -> ReportData:
    """Return what the page shows of an estimate and, if given, of the labels it finds wrong.

    Parameters
    ----------
    estimate
        The matrix of the headline; None if the issues were found with a matrix that was not estimated.
    issues
        Adds the list to review: the flagged examples, most suspect first.
    comparison
        Estimates of several methods, shown side by side.
    audit
        Row numbers of a random sample, in random order: adds a list of its own to verify, apart from the
        suspects. Needs `issues`, which say what each example probably is.
    previews
        Thumbnails or texts of the listed examples (`listed` names them).
    level
        Confidence of the intervals.
    title
        Shown on top and in the browser's tab.
    limit
        Most examples to list.
    """
    if estimate is not None:
        data = _from_estimate(estimate, level)
    elif issues is not None:
        data = _from_matrix(issues)
    else:
        raise InputError("Expected an estimate or label issues to report, got neither.")
    if issues is not None:
        data = replace(
            data,
            expected_wrong=issues.expected_count,
            pair_counts=issues.by_pair,
            lists=(
                _suspects(issues, previews, limit),
                *(() if audit is None else (_audit(issues, audit, previews),)),
            ),
        )
    methods = (Method(each.estimator, each.transition, each.noise_rate, each.noise_rates) for each in comparison)
    return replace(data, title=title, methods=tuple(methods))


def listed(issues: LabelIssues, limit: int = MAX_LISTED) -> Codes:
    """Return the row numbers that a report lists: the flagged examples, most suspect first."""
    return issues.indices[:limit]


def _from_estimate(estimate: TransitionEstimate, level: float) -> ReportData:
    counts = estimate.n_samples * estimate.clean_prior[:, None] * estimate.transition
    return ReportData(
        title="",
        method=estimate.estimator,
        n_samples=estimate.n_samples,
        class_names=tuple(estimate.class_names),
        transition=estimate.transition,
        noise_rate=estimate.noise_rate,
        noise_rates=estimate.noise_rates,
        expected_wrong=estimate.noise_rate * estimate.n_samples,
        level=level,
        transition_interval=estimate.confidence_interval(level),
        noise_rate_interval=estimate.noise_rate_interval(level),
        noise_rates_interval=estimate.noise_rates_interval(level),
        pair_counts=counts.T,
        label_counts=estimate.diagnostics.label_counts,
        agreement=estimate.diagnostics.agreement,
        condition_number=estimate.diagnostics.condition_number,
        remarks=tuple(Remark(notice.message, notice.advice) for notice in estimate.warnings),
    )


def _from_matrix(issues: LabelIssues) -> ReportData:
    n_classes = len(issues.class_names)
    return ReportData(
        title="",
        method="a given matrix",
        n_samples=len(issues),
        class_names=issues.class_names,
        transition=issues.transition,
        noise_rate=issues.expected_count / len(issues),
        noise_rates=1 - np.diagonal(issues.transition),
        expected_wrong=issues.expected_count,
        label_counts=np.bincount(issues.given, minlength=n_classes),
        condition_number=float(np.linalg.cond(issues.transition)),
    )


def _suspects(issues: LabelIssues, previews: Previews | None, limit: int) -> ReviewList:
    index = listed(issues, limit)
    flagged = int(issues.is_issue.sum())
    first = f" The {len(index):,} most suspect of {flagged:,} are listed." if len(index) < flagged else ""
    return ReviewList(
        key="suspects",
        title="Suspect labels",
        purpose=f"Most suspect first.{first} Keep each label, take the suggestion, or choose another class.",
        previews=previews,
        **_rows(issues, index),
    )


def _audit(issues: LabelIssues, index: Codes, previews: Previews | None) -> ReviewList:
    return ReviewList(
        key="audit",
        title="Random sample",
        purpose=(
            "Drawn at random, suspect or not: what you find here tells how noisy all the labels are. Judge each"
            " example by itself. Check them from the top, as many as you like."
        ),
        previews=previews,
        is_audit=True,
        **_rows(issues, index),
    )


def _rows(issues: LabelIssues, index: Codes) -> dict[str, Any]:
    """Return what a list says of the examples `index`."""
    return {
        "index": index,
        "given": issues.given[index],
        "suggested": issues.suggested[index],
        "probability_right": issues.probability_right[index],
        "suggested_probability": issues.suggested_probability[index],
    }
