"""What is known of every given label, and the tables of the flagged ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.files import check_ending, json_text, write_text
from dualt.io.tables import write_table
from dualt.results import TransitionEstimate
from dualt.results.claims import headline
from dualt.rows.entry import row_ids, row_numbers
from dualt.validation import check_count, check_fraction

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dualt.report.page import ReportOptions

# Flagged labels: another class is likelier, or none is.
GROUPS = ("probably wrong", "doubtful")
ENDINGS = (".csv", ".json", ".parquet")
# JSON has `by_pair` for up to this many classes: all pairs of more could fill hundreds of megabytes.
_MATRIX_CLASSES = 100


class Scores(NamedTuple):
    """Given label, its probability of being right, the suggested class and its probability: an array each."""

    given: NDArray[Any]
    right: NDArray[np.float32]
    suggested: NDArray[Any]
    suggested_probability: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """What is known of every given label.

    Attributes
    ----------
    given : (n_samples,)
        Given labels as class numbers.
    probability_right : (n_samples,)
        Probability that the given label is the true class.
    suggested, suggested_probability : (n_samples,)
        The most probable true class, and its probability.
    by_pair : (n_classes, n_classes)
        `by_pair[given, true]`: expected number of examples, as the matrix and the label counts imply.
    is_issue : (n_samples,)
        The flagged labels: as many as are expected to be wrong, unless a threshold or a number was set. Those for
        which another class is likelier are *probably wrong*, the others *doubtful*.
    class_names : tuple of str
    transition, transition_estimate
        The matrix that was used, and the estimate that it came from; None if it was given.
    index
        The index of the data frame or series that the rows came in, which `to_frame` keeps. Files and pages call rows
        by it: whole numbers without a name are row numbers of the table, anything else ids.
    ids, texts, images, written : sequence of str or None
        What the examples are called, what they say, the files of their pictures, and the labels as the data have them,
        if some spellings were merged: for tables and pages.
    labelled : (n_samples,) or None
        Which rows have a label at all; None if all have. The probabilities of the others are NaN.
    """

    given: NDArray[Any]
    probability_right: NDArray[np.float32]
    suggested: NDArray[Any]
    suggested_probability: NDArray[np.float32]
    by_pair: NDArray[np.float64]
    is_issue: NDArray[np.bool_]
    class_names: tuple[str, ...]
    transition: NDArray[np.float64]
    transition_estimate: TransitionEstimate | None
    index: Any = None
    ids: Sequence[str] | None = None
    texts: Sequence[str] | None = None
    images: Sequence[str] | None = None
    written: Sequence[str] | None = None
    labelled: NDArray[np.bool_] | None = None

    @cached_property
    def ranking(self) -> NDArray[np.intp]:
        """Row positions, most suspect first."""
        return np.argsort(self.probability_right, kind="stable")

    @cached_property
    def indices(self) -> NDArray[np.intp]:
        """Row positions of the issues, most suspect first."""
        issues = np.flatnonzero(self.is_issue)
        return issues[np.argsort(self.probability_right[issues], kind="stable")]

    @cached_property
    def probably_wrong(self) -> NDArray[np.bool_]:
        """The flagged labels to which another class is preferred; the other flagged ones are *doubtful*."""
        return np.asarray(self.is_issue & (self.suggested != self.given))

    @cached_property
    def row_numbers(self) -> NDArray[np.int64]:
        """What files and pages call the rows: the row numbers that `index` has kept, else 0, 1, 2 and so on."""
        kept = row_numbers(self.index)
        return np.arange(len(self)) if kept is None else kept

    @cached_property
    def row_ids(self) -> Sequence[str] | None:
        """The `ids`, else the names that `index` has for the rows, if any."""
        return row_ids(self.index) if self.ids is None else self.ids

    @property
    def expected_count(self) -> float:
        """Expected number of wrong labels: the off-diagonal of `by_pair`."""
        return expected_wrong(self.by_pair)

    @property
    def n_labelled(self) -> int:
        """Number of rows that have a label."""
        return len(self) if self.labelled is None else int(self.labelled.sum())

    def rethreshold(self, threshold: float | None = None, *, top: int | None = None) -> LabelIssues:
        """Return the same with other labels flagged: below the threshold, or the `top` most suspect.

        Examples
        --------
        >>> import dualt
        >>> issues = dualt.find_label_issues([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [0, 0, 0], [[0.8, 0.2], [0.2, 0.8]])
        >>> issues.rethreshold(top=2).indices
        array([2, 1])
        """
        check_cut(threshold, top)
        if threshold is None and top is None:
            raise InputError("Expected a threshold or a number of issues (top), got neither.")
        labelled = np.ones(len(self), bool) if self.labelled is None else self.labelled
        is_issue, preferred = np.zeros(len(self), bool), self.suggested != self.given
        is_issue[labelled] = flag(self.probability_right[labelled], preferred[labelled], 0, threshold, top)
        return replace(self, is_issue=is_issue)

    def spread(self, rows: NDArray[np.intp], n_rows: int) -> LabelIssues:
        """Return the same for all `n_rows` rows of a file, of which those with these numbers have a label."""
        empty = {"given": 0, "probability_right": np.nan, "suggested": 0, "suggested_probability": np.nan}
        columns: dict[str, Any] = {}
        for name, value in {**empty, "is_issue": False}.items():
            columns[name] = np.full(n_rows, value, getattr(self, name).dtype)
            columns[name][rows] = getattr(self, name)
        labelled = np.zeros(n_rows, dtype=bool)
        labelled[rows] = True
        return replace(self, **columns, labelled=labelled)

    def to_frame(self) -> Any:
        """Return every label as a row of a pandas data frame, in the order of the data and with its index."""
        frame = self._frame(slice(None))
        if self.labelled is not None:
            frame.loc[~self.labelled, ["given", "suggested"]] = None
        return frame if self.index is None else frame.set_index(self.index)

    def listed(self, most: int | None = None) -> Any:
        """Return the flagged labels, most suspect first, with row numbers, ids, texts and images, as a data frame."""
        rows = self.indices[:most]
        frame = self._frame(rows).drop(columns="is_issue")
        frame = frame.astype({name: np.float64 for name in frame if "probability" in name}).round(6)
        frame.insert(0, "index", self.row_numbers[rows])
        known = {"given": self.written, "id": self.row_ids, "text": self.texts, "image": self.images}
        for name, each in known.items():
            if each is not None:
                frame[name] = [each[row] for row in rows.tolist()]
        return frame

    def _frame(self, rows: NDArray[np.intp] | slice) -> Any:
        scores = self.given, self.probability_right, self.suggested, self.suggested_probability
        return issue_frame(Scores(*(column[rows] for column in scores)), self.is_issue[rows], self.class_names)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return plain numbers, strings and lists: what is claimed, the counts, the flagged labels, most suspect first.

        Nothing is claimed of a matrix that was given. `by_pair` is there for up to 100 classes.
        """
        estimate = self.transition_estimate
        claims: dict[str, Any] = {"summary": None, "noise_rate_interval": None, "warnings": []}
        if estimate is not None:
            interval, notices = estimate.noise_rate_interval(level), [vars(notice) for notice in estimate.warnings]
            claims = {"summary": headline(estimate, level), "noise_rate_interval": list(interval), "warnings": notices}
        return {
            **claims,
            "n_samples": self.n_labelled,
            "expected_count": self.expected_count,
            "flagged": len(self.indices),
            "probably_wrong": int(self.probably_wrong.sum()),
            "class_names": list(self.class_names),
            **({"by_pair": self.by_pair.tolist()} if len(self.class_names) <= _MATRIX_CLASSES else {}),
            "issues": self.listed().to_dict("records"),
        }

    def save(self, path: str | Path, level: float = 0.95) -> None:
        """Write the flagged labels, most suspect first, as a `.csv` or `.parquet` table, or `to_dict` as `.json`."""
        path = Path(path)
        check_ending(path, ENDINGS)
        if path.suffix.lower() == ".json":
            write_text(path, f"{json_text(self.to_dict(level))}\n")
        else:
            write_table(path, self.listed(), guarded=True)

    def to_report(self, path: str | Path, **options: Unpack[ReportOptions]) -> None:
        """Write a page to look at and review; `dualt.report.render_report` describes the options."""
        from dualt.report import write_report

        write_report(path, self.transition_estimate, self, **options)

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        counts = f"expected_count={self.expected_count:.1f}, flagged={int(self.is_issue.sum())}"
        return f"LabelIssues(n_samples={len(self)}, {counts})"

    def _repr_html_(self) -> str:
        """Return the finding and the most suspect labels as a table, for notebooks."""
        import pandas as pd

        finding = repr(self) if self.transition_estimate is None else self.transition_estimate.summary
        finding += f" {len(self.indices):,} labels are flagged, {int(self.probably_wrong.sum()):,} as probably wrong."
        with pd.option_context("display.max_colwidth", 200):
            return f"<p>{escape(finding)}</p>{self.listed(10).to_html(index=False, float_format='{:.3f}'.format)}"


def expected_wrong(by_pair: NDArray[np.float64]) -> float:
    """Return how many labels are expected to be wrong: the off-diagonal of `by_pair`, [given, true]."""
    return float(by_pair.sum() - np.trace(by_pair))


def check_cut(threshold: float | None, top: int | None) -> None:
    """Refuse a threshold and a number of issues together, or one that is out of range."""
    if threshold is not None and top is not None:
        raise InputError("Expected a threshold or a number of issues (top), got both.")
    if threshold is not None:
        check_fraction(threshold, "threshold")
    if top is not None:
        check_count(top, "a number of issues (top)", least=0)


def flag(
    right: NDArray[np.float32],
    preferred: NDArray[np.bool_],
    expected: float,
    threshold: float | None = None,
    top: int | None = None,
) -> NDArray[np.bool_]:
    """Return which labels to flag: those below the threshold, or the `top` least probable.

    By default those with another class `preferred`, then the least probable until as many are flagged as are expected
    to be wrong.
    """
    if threshold is not None:
        return np.asarray(right < threshold)
    if top is not None:
        return _lowest(right, top)
    flagged: NDArray[np.bool_] = preferred.copy()
    others = np.flatnonzero(~preferred)
    flagged[others[_lowest(right[others], round(expected) - int(preferred.sum()))]] = True
    return flagged


def _lowest(values: NDArray[np.float32], wanted: int) -> NDArray[np.bool_]:
    """Return a mask of the `wanted` lowest values, the first of equal ones; sorting all would take more memory."""
    if not 0 < wanted < len(values):
        return np.full(len(values), wanted > 0)
    highest = np.partition(values, wanted - 1)[wanted - 1]
    lowest: NDArray[np.bool_] = values < highest
    lowest[np.flatnonzero(values == highest)[: wanted - int(lowest.sum())]] = True
    return lowest


def issue_frame(scores: Scores, is_issue: NDArray[np.bool_], names: Sequence[str], start: int = 0) -> Any:
    """Return every label as a row of a pandas data frame, with class names; `start` is the number of the first."""
    import pandas as pd

    classes = np.array(names)
    return pd.DataFrame(
        {
            "given": classes[scores.given],
            "suggested": classes[scores.suggested],
            "probability_right": scores.right,
            "suggested_probability": scores.suggested_probability,
            "is_issue": is_issue,
            "group": np.select([is_issue & (scores.suggested != scores.given), is_issue], GROUPS, ""),
        },
        index=pd.RangeIndex(start, start + len(is_issue)),
    )
