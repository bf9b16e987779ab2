"""The table that a person fills in: the rows that were drawn, each with its given label and its inclusion probability.

``index[,id][,text],given,true,probability,stratum,stratum_size``. Columns are found by name, in any order, and others
are ignored. A file with ``index,given,true`` alone is a simple random sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit.design import Draw, Floats, Ints
from dualt.audit.verified import Audit, and_more, check_probability
from dualt.errors import InputError
from dualt.labels import as_text_array

_NEEDED = ("index", "given", "true")


@dataclass(frozen=True, eq=False)
class Sheet:
    """The rows of an audit, with labels as texts; `true` is empty where nobody has looked yet."""

    rows: Ints
    given: NDArray[np.str_]
    true: NDArray[np.str_]
    probability: Floats | None = None
    strata: Ints | None = None
    stratum_sizes: Ints | None = None
    ids: Sequence[str] | None = None
    texts: Sequence[str] | None = None

    @classmethod
    def of_draw(
        cls, labels: NDArray[Any], drawn: Draw, ids: Sequence[str] | None = None, texts: Sequence[str] | None = None
    ) -> Sheet:
        """Return the empty sheet of rows that were drawn; `labels`, `ids` and `texts` are those of all rows."""
        named = (None if column is None else [column[row] for row in drawn.rows.tolist()] for column in (ids, texts))
        given, empty = labels[drawn.rows].astype(str), np.full(len(drawn.rows), "", dtype="U1")
        return cls(drawn.rows, given, empty, drawn.probability, drawn.strata, drawn.sizes[drawn.strata], *named)

    @property
    def filled(self) -> NDArray[np.intp]:
        """Places of the rows that were verified."""
        return np.flatnonzero(self.true != "")

    def with_true_of(self, earlier: Sheet) -> Sheet:
        """Return the sheet with the true labels of an earlier batch, whose rows it must contain."""
        missing = np.setdiff1d(earlier.rows, self.rows)
        if len(missing):
            raise InputError(
                f"Expected a draw that contains the {len(earlier.rows):,} rows of the earlier batch, got one without"
                f" row {missing[0]}{and_more(len(missing))}. Pass the same labels, probabilities, --design and"
                " --random-state as before."
            )
        known = dict(zip(earlier.rows[earlier.filled].tolist(), earlier.true[earlier.filled].tolist(), strict=True))
        return replace(self, true=np.array([known.get(row, "") for row in self.rows.tolist()]))

    def audit(self) -> Audit:
        """Return the rows that were verified."""
        if not len(self.filled):
            raise InputError("Expected true labels in the column 'true' of the audit, got none: fill some in.")
        from dualt.io.table_columns import numbers_if_all_are

        given, true = numbers_if_all_are(self.given), self.true[self.filled]
        # If the given labels are names, a true '3' is a name too.
        true = true if given.dtype.kind == "U" else numbers_if_all_are(true)
        drawn: list[Any] = [self.probability, self.strata, self.stratum_sizes, given]
        drawn = [column if column is None else column[self.filled] for column in drawn]
        return Audit(self.rows[self.filled], true, *drawn)

    def save(self, path: str | Path) -> None:
        """Write the table, with cells guarded against being taken for formulas."""
        import pandas as pd

        from dualt.io.tables import write_table

        columns = {"index": self.rows, "id": self.ids, "text": self.texts, "given": self.given, "true": self.true}
        known = {name: column for name, column in columns.items() if column is not None}
        write_table(path, pd.DataFrame({**known, **self.how_drawn()}), guarded=True)

    def how_drawn(self) -> dict[str, list[Any]]:
        """Return the columns that say how each row was drawn, by name."""
        columns: dict[str, list[Any]] = {}
        if self.probability is not None:
            columns["probability"] = [f"{value:.6g}" for value in self.probability.tolist()]
        if self.strata is not None and self.stratum_sizes is not None:
            columns |= {"stratum": self.strata.tolist(), "stratum_size": self.stratum_sizes.tolist()}
        return columns


def read_audit(path: str | Path) -> Audit:
    """Return the verified rows of a file that `dualt audit` or its page wrote, and that a person has filled in.

    Rows that are not filled in yet are left out.
    """
    return read_sheet(path).audit()


def read_sheet(path: str | Path) -> Sheet:
    """Read the table of an audit, verified or not yet; a row that comes again with the same true label counts once."""
    from dualt.io.tables import read_table

    frame = read_table(path, guarded=True).fillna("").astype(str)
    frame.columns = [str(name).strip().lower() for name in frame.columns]
    header = ",".join(frame.columns)
    if not frame.columns.is_unique or not {*_NEEDED} <= {*frame.columns}:
        raise InputError(f"Expected the header {','.join(_NEEDED)} in {path}, each column once, got {header!r}.")
    if ("stratum" in frame) != ("stratum_size" in frame):
        raise InputError(f"Expected the columns stratum and stratum_size of {path} together, got one of them.")
    frame = frame.apply(lambda column: column.str.strip())
    frame = frame[(frame != "").any(axis=1)].drop_duplicates(["index", "true"])
    # An empty copy of a row that was verified adds nothing; two true labels stay, to be refused where they are counted.
    frame = frame[(frame["true"] != "") | ~frame["index"].duplicated(keep=False)]
    if frame.empty:
        raise InputError(f"Expected the rows of an audit below the header of {path}, got none.")

    def numbers(name: str, pattern: str = "[0-9]{1,15}", expected: str = "a whole number") -> Floats:
        cells = frame[name].str.replace(",", ".")  # spreadsheets in many countries write a decimal comma
        bad = cells[~cells.str.fullmatch(pattern)]
        if len(bad):
            raise InputError(
                f"Expected {expected} as {name} in line {bad.index[0] + 2} of {path}, got {bad.iloc[0]!r}."
            )
        return np.asarray(cells.to_numpy(np.float64))

    rows, probability, strata, sizes = numbers("index").astype(np.intp), None, None, None
    if "probability" in frame:
        probability = numbers("probability", r"[-+]?[0-9.]+(e-?[0-9]+)?|nan", "a number")
        check_probability(probability)
    if "stratum" in frame:
        strata, sizes = numbers("stratum").astype(np.intp), numbers("stratum_size").astype(np.intp)
    given, true = (as_text_array(frame[name].tolist()) for name in ("given", "true"))
    sheet = Sheet(rows, given, true, probability, strata, sizes, frame["id"].tolist() if "id" in frame else None)
    if probability is not None and strata is not None and sizes is not None:
        # The inclusion probability is (rows drawn) / (rows) of the stratum, unless rows were added or removed.
        places = np.unique(strata, return_inverse=True)[1]
        counts = np.bincount(np.unique(np.stack((places, rows)), axis=1)[0])[places]
        expected = counts / np.maximum(sizes, 1)
        bad = np.flatnonzero(~np.isclose(probability, expected, rtol=1e-3))
        if len(bad):
            at = bad[0]
            raise InputError(
                f"Expected the inclusion probability {expected[at]:.4g} in stratum {strata[at]} ({counts[at]:,} of"
                f" {sizes[at]:,} rows are in the file), got {probability[at]:g} for row {rows[at]}{and_more(len(bad))}:"
                " rows were added, removed or changed. Restore them (those not checked yet stay, with 'true' empty), or"
                " draw again."
            )
    return sheet
