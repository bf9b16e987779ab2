"""Label issues as a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualt.cells import guard_cell
from dualt.files import atomic_write
from dualt.issues import LabelIssues

_COLUMNS = ("index", "given", "suggested", "probability_right", "suggested_probability")


def issue_rows(issues: LabelIssues) -> Iterator[dict[str, Any]]:
    """Yield the flagged labels, most suspect first, with class names."""
    names = issues.class_names
    for index in issues.indices.tolist():
        yield {
            "index": index,
            "given": names[issues.given[index]],
            "suggested": names[issues.suggested[index]],
            "probability_right": round(float(issues.probability_right[index]), 6),
            "suggested_probability": round(float(issues.suggested_probability[index]), 6),
        }


def save_issues(path: str | Path, issues: LabelIssues) -> None:
    """Write the flagged labels as CSV; class names cannot act as formulas in a spreadsheet."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in issue_rows(issues):
            writer.writerow([guard_cell(cell) if isinstance(cell, str) else cell for cell in row.values()])
