"""Label issues as a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualt.files import atomic_write
from dualt.io.cells import guard_cell
from dualt.issues.scores import LabelIssues

# Numbers become Python's in portions, of which each takes a few megabytes.
_AT_A_TIME = 1 << 14
_COLUMNS = ("index", "given", "suggested", "probability_right", "suggested_probability")


def issue_rows(issues: LabelIssues) -> Iterator[dict[str, Any]]:
    """Yield the flagged labels, most suspect first, with class names."""
    names, indices = issues.class_names, issues.indices
    for low in range(0, len(indices), _AT_A_TIME):
        rows = indices[low : low + _AT_A_TIME]
        columns = (
            rows, issues.given[rows], issues.suggested[rows],
            issues.probability_right[rows], issues.suggested_probability[rows],
        )  # fmt: skip
        for index, given, suggested, right, probability in zip(*(column.tolist() for column in columns), strict=True):
            yield {
                "index": index,
                "given": names[given],
                "suggested": names[suggested],
                "probability_right": round(right, 6),
                "suggested_probability": round(probability, 6),
            }


def save_issues(path: str | Path, issues: LabelIssues) -> None:
    """Write the flagged labels as CSV; class names cannot act as formulas in a spreadsheet."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in issue_rows(issues):
            writer.writerow([guard_cell(cell) if isinstance(cell, str) else cell for cell in row.values()])
