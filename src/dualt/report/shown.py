"""What a page shows besides an estimate: the lists to review, and a matrix that was given instead of estimated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from dualt.audit import Sheet
from dualt.errors import InputError
from dualt.report.previews import Previews
from dualt.results.diagnostics import condition_number
from dualt.rows.row_names import positions

if TYPE_CHECKING:
    from dualt.issues import LabelIssues
    from dualt.results import TransitionEstimate

Codes: TypeAlias = NDArray[np.integer[Any]]
Estimate: TypeAlias = "TransitionEstimate | GivenMatrix"
MAX_LISTED = 10_000


class ReportOptions(TypedDict, total=False):
    """The options of a report, which `dualt.report.render_report` describes."""

    comparison: Sequence[TransitionEstimate]
    audit: Sheet | Codes | None
    previews: Previews | Sequence[str] | None
    ids: Sequence[Any] | None
    labels_digest: str | None
    reviewed: Mapping[int | str, str] | None
    level: float
    title: str
    limit: int


@dataclass(frozen=True)
class ReviewList:
    """Row numbers for a person to look at, in this order; `key` names the list in the page and its download.

    A blind list asks for the class first, and shows the given label and the suggestion only then. Its download has
    the columns `how_drawn` too, and every row; `known` are the classes that were found before, by place in the list,
    and so are `ids`.
    """

    key: str
    title: str
    index: Codes
    how_drawn: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    known: Mapping[int, int] = field(default_factory=dict)
    ids: Sequence[str] | None = None

    @property
    def blind(self) -> bool:
        """Whether the judge must not see the labels first."""
        return self.key == "audit"


def audit_list(audit: Sheet | Codes, class_names: Sequence[str]) -> ReviewList:
    """Return the list of rows to verify."""
    if not isinstance(audit, Sheet):
        return ReviewList("audit", "Random sample", audit)
    codes = {str(code): code for code in range(len(class_names))} | {name: k for k, name in enumerate(class_names)}
    true = audit.true.tolist()
    known = {place: codes[true[place]] for place in audit.filled.tolist() if true[place] in codes}
    ids = None if audit.ids is None else audit.ids.tolist()
    return ReviewList("audit", "Random sample", audit.rows, audit.how_drawn(), known, ids)


def listed(
    issues: LabelIssues,
    limit: int = MAX_LISTED,
    *,
    reviewed: Mapping[int | str, str] | None = None,
    ids: Sequence[Any] | None = None,
) -> Codes:
    """Return the row numbers, as in `issues.indices`, that a report lists: flagged examples, then those reviewed."""
    flagged = issues.indices[:limit]
    decided = np.array(list(reviewed_rows(issues, reviewed, ids)), dtype=np.intp)
    return np.concatenate([flagged, decided[~np.isin(decided, flagged)]]) if len(decided) else flagged


def reviewed_rows(
    issues: LabelIssues, reviewed: Mapping[int | str, str] | None, ids: Sequence[Any] | None = None
) -> dict[int, int]:
    """Return the class numbers that an earlier review chose, by place in the data; ids that are gone are left out."""
    if not reviewed:
        return {}
    rows = {} if ids is None else {str(each): row for row, each in enumerate(ids)}
    numbers = [int(which) for which in reviewed if not isinstance(which, str)]
    of_number = dict(zip(numbers, positions(issues.row_numbers, np.array(numbers, np.int64)).tolist(), strict=True))
    repeated = {name for name, times in Counter(map(str, ids or ())).items() if times > 1}
    codes = {name: code for code, name in enumerate(issues.class_names)}
    found = {}
    for which, label in reviewed.items():
        row = rows.get(which) if isinstance(which, str) else of_number[int(which)]
        if isinstance(which, str) and which in repeated:
            raise InputError(f"Expected a row number, or an id that one example has, got {which[:80]!r} of several.")
        if str(label) not in codes:
            raise InputError(f"Expected a class as the reviewed label of {which!r}, got {str(label)[:80]!r}.")
        if row == -1:
            raise InputError(f"Expected reviewed rows that are among the {len(issues):,} labels, got row {which}.")
        if row is not None:
            found[row] = codes[str(label)]
    if not found:
        raise InputError("Expected a review of these examples, got one in which no id is theirs.")
    return found


class GivenMatrix:
    """The matrix that issues were found with, where a page expects an estimate: no intervals and no warnings."""

    estimator = "a given matrix"
    warnings = ()
    agreement = None

    def __init__(self, issues: LabelIssues) -> None:
        self.n_samples = issues.n_labelled
        self.class_names = issues.class_names
        self.transition = issues.transition
        self.noise_rate = issues.expected_count / issues.n_labelled
        self.noise_rates = 1 - np.diagonal(issues.transition)
        given = issues.given if issues.labelled is None else issues.given[issues.labelled]
        self.label_counts = np.bincount(given, minlength=len(issues.class_names))
        self.condition_number = condition_number(issues.transition)
        self.diagnostics = self
