"""Verified labels: the table that a person fills in, the rows that were, and the checks before they are used.

The table is ``index[,id][,text],given,true``, a simple random sample of the rows. Columns are found by name, in any
order, and others are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit.design import Ints
from dualt.errors import InputError, LabelsError
from dualt.labels import Codes, LabelCoder, as_label_array, as_text_array, shorten
from dualt.rows.chunks import entries_at
from dualt.rows.posterior import NoisyPosterior
from dualt.validation import align_labels, index_of

if TYPE_CHECKING:
    from pandas import DataFrame

_NEEDED = ("index", "given", "true")
# The four parameters of the calibration cannot be fitted to fewer rows.
LEAST = 10
# Standard deviations by which a random sample may look more suspect than all examples.
_SUSPECT = 4.0


@dataclass(eq=False, repr=False)
class Audit:
    """Verified rows, drawn at random from all rows; an entry for each row.

    Attributes
    ----------
    rows
        Row positions, counted from 0, in the order of the probabilities (or predictions) that they are passed with.
    true
        Their true labels, of the same kind as the given ones or as class names.
    given
        Given labels when the rows were drawn; refused where the data have others.
    named
        Row positions for error messages, counted before rows without a label were left out.

    Examples
    --------
    >>> Audit([7, 3], ["cat", "dog"])
    Audit(n_verified=2)
    """

    rows: Any
    true: Any
    given: NDArray[Any] | None = None
    named: Any = None

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise InputError(f"Expected row numbers as a list of integers, got {rows.dtype} of shape {rows.shape}.")
        self.rows, self.true = rows.astype(np.intp), as_label_array(self.true)
        self.named = self.rows if self.named is None else self.named
        for n_values in (len(column) for column in vars(self).values() if column is not None):
            if n_values != len(rows):
                raise InputError(f"Expected one value per verified row, got {len(rows)} rows and {n_values} values.")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Audit(n_verified={len(self)})"

    def take(self, keep: NDArray[Any]) -> Audit:
        """Return some of the rows."""
        return Audit(**{name: column[keep] for name, column in vars(self).items() if column is not None})

    def among(self, labelled: Ints) -> Audit:
        """Return the audit with its rows counted among the `labelled` rows."""
        bad = np.flatnonzero(~np.isin(self.rows, labelled))
        if len(bad):
            raise LabelsError(
                f"Expected verified rows that have a given label, got row {self.named[bad[0]]}, which has none"
                f"{and_more(len(bad))}. Leave it out of the audit."
            )
        return replace(self, rows=np.searchsorted(labelled, self.rows))


def as_audit(verified: Any) -> Audit:
    """Return an `Audit`, or that of (row positions, true labels) of a random sample."""
    if isinstance(verified, Audit):
        return verified
    try:
        rows, true = verified
    except (TypeError, ValueError):
        raise InputError(
            "Expected verified labels as (row positions, true labels) of a random sample or as an `Audit`,"
            f" got {type(verified).__name__}. `dualt.audit.read_audit` reads the file of `dualt audit`."
        ) from None
    return Audit(rows, true)


def new_sheet(
    rows: Ints,
    labels: NDArray[Any],
    ids: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    earlier: DataFrame | None = None,
) -> DataFrame:
    """Return the table of these rows to fill in, below that of an `earlier` batch; other columns are of all rows."""
    import pandas as pd

    named = {"id": ids, "text": texts}
    known = {name: [column[row] for row in rows.tolist()] for name, column in named.items() if column is not None}
    sheet = pd.DataFrame({"index": rows, **known, "given": labels[rows].astype(str), "true": ""})
    return sheet if earlier is None else pd.concat([earlier, sheet], ignore_index=True).fillna("")


def read_sheet(path: str | Path) -> DataFrame:
    """Read the table of an audit, verified or not yet; a row that comes again with the same true label counts once."""
    from dualt.io.tables import read_table

    frame = read_table(path, guarded=True).fillna("").astype(str)
    frame.columns = [str(name).strip().lower() for name in frame.columns]
    header, needed = ",".join(frame.columns), [*_NEEDED]
    if not frame.columns.is_unique or not {*needed} <= {*frame.columns}:
        raise InputError(f"Expected the header {','.join(needed)} in {path}, each column once, got {header!r}.")
    frame[needed] = frame[needed].apply(lambda column: column.str.strip())
    frame = frame[(frame[needed] != "").any(axis=1)].drop_duplicates(["index", "true"])
    # An empty copy of a row that was verified adds nothing; two true labels stay, to be refused where they are counted.
    frame = frame[(frame["true"] != "") | ~frame["index"].duplicated(keep=False)]
    if frame.empty:
        raise InputError(f"Expected the rows of an audit below the header of {path}, got none.")
    bad = frame["index"][~frame["index"].str.fullmatch("[0-9]{1,15}")]
    if len(bad):
        at = bad.index[0] + 2
        raise InputError(f"Expected a whole number as index in line {at} of {path}, got {bad.iloc[0]!r}.")
    return frame.astype({"index": np.intp})


def audit_of(sheet: DataFrame) -> Audit:
    """Return the rows of a sheet that were verified."""
    from dualt.io.table_columns import labels_of

    filled = (sheet["true"] != "").to_numpy()
    if not filled.any():
        raise InputError("Expected true labels in the column 'true' of the audit, got none: fill some in.")
    given, true = labels_of(sheet["given"].tolist()), sheet["true"][filled].tolist()
    # If the given labels are names, a true '3' is a name too.
    known = as_text_array(true) if given.dtype.kind == "U" else labels_of(true)
    return Audit(sheet["index"].to_numpy()[filled], known, given[filled])


def read_audit(path: str | Path) -> Audit:
    """Return the verified rows of a file that `dualt audit` or its page wrote; rows not filled in are left out."""
    return audit_of(read_sheet(path))


def check_order(verified: Any, pred_probs: Any, noisy_labels: Any) -> None:
    """Refuse `verified` rows where probabilities and labels have the same index in different orders."""
    rows, own = index_of(pred_probs), index_of(noisy_labels)
    if verified is not None and rows is not None and own is not None and len(rows) == len(own) and not rows.equals(own):
        align_labels(pred_probs, noisy_labels)
        raise InputError(
            "Expected probabilities and labels in the same order where rows are verified, got the same index in two"
            " orders: a row position could be meant in either. Pass labels.loc[probs.index], and positions in it."
        )


def check_rows(audit: Audit, n_rows: int, coder: LabelCoder, given_of: Callable[[Ints], Codes]) -> tuple[Audit, Codes]:
    """Return the audit with every row once, in order, and its true classes as codes; refuse one of other data."""
    outside = np.flatnonzero((audit.rows < 0) | (audit.rows >= n_rows))
    if len(outside):
        raise InputError(
            f"Expected verified rows from 0 to {n_rows - 1:,}, got {audit.rows[outside[0]]} at position {outside[0]}"
            f"{and_more(len(outside))}. Rows are counted from 0; pass the data that were audited."
        )
    audit = audit.take(np.argsort(audit.rows, kind="stable"))
    true = _encode(coder, audit.true, audit.named, "true class")
    _, first, places = np.unique(audit.rows, return_index=True, return_inverse=True)
    differs = np.flatnonzero(true[first][places] != true)
    if len(differs):
        row, one, other = (each[differs[0]] for each in (audit.named, audit.true[first][places], audit.true))
        raise InputError(
            f"Expected one true class for every verified row, got {one!s} and {other!s} for row {row}"
            f"{and_more(len(differs))}. Decide which is right, and delete the other."
        )
    audit, true = audit.take(first), true[first]
    if audit.given is not None:
        now = given_of(audit.rows)
        bad = np.flatnonzero(_encode(coder, audit.given, audit.named, "given label") != now)
        if len(bad):
            row, here, there = audit.named[bad[0]], coder.names[now[bad[0]]], audit.given[bad[0]]
            raise LabelsError(
                f"Expected the given label {here} in row {row}, got {there!s} in the audit{and_more(len(bad))}: it is"
                " for other labels. Pass the labels that it was drawn from."
            )
    if len(audit) < LEAST:
        raise InputError(
            f"Expected at least {LEAST} verified rows, got {len(audit)}. Verify {LEAST - len(audit)} more; about 100"
            " determine the noise rate to ±10 percentage points or better, 400 to ±5."
        )
    return audit, true


def _encode(coder: LabelCoder, labels: NDArray[Any], rows: Ints, what: str) -> Codes:
    """Return labels of an audit as codes; an unknown one is named with its row."""
    try:
        return coder.encode(labels)
    except LabelsError:
        if len(labels) > 1:
            return np.concatenate([_encode(coder, labels[[k]], rows[[k]], what) for k in range(len(labels))])
        raise LabelsError(
            f"Expected one of the classes {shorten(coder.names)} as {what} of row {rows[0]} of the audit, got"
            f" {str(labels[0])!r}. Correct the spelling, or leave it out where no class fits."
        ) from None


def check_drawn_at_random(posterior: NoisyPosterior, audit: Audit) -> None:
    """Refuse verified rows that look chosen for being suspect: their given labels are less probable than most.

    In a random sample, the mean rank of p[given label] among all rows is one half.
    """
    summary = posterior.summary
    everyone = np.sort(entries_at(summary.sample_rows, summary.sample_labels))
    audited = entries_at(*posterior.take(audit.rows))
    ranks = np.searchsorted(everyone, audited, "left") + np.searchsorted(everyone, audited, "right")
    share = float(ranks.mean() / (2 * len(everyone)))
    if share < 0.5 - _SUSPECT * np.sqrt((1 / len(audited) + 1 / len(everyone)) / 12):
        raise InputError(
            f"Expected a random sample of the rows to be verified, got {len(audited):,} rows whose given labels are"
            f" less probable than those of {1 - share:.0%} of all rows: they look chosen for being suspect, and"
            " would overstate the noise. Draw the rows to verify at random."
        )


def and_more(n_bad: int) -> str:
    """Return how many others are wrong in the same way, in brackets."""
    return f" (and {n_bad - 1:,} more)" if n_bad > 1 else ""
