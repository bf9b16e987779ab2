"""Decisions of a review, read from the page's CSV or the export of a labelling tool, and put into the labels.

A decision carries the row, the old label and, where there is one, the id of an example; it is refused where the data
have another label there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError
from dualt.io.tables import read_table
from dualt.issues.exchange import read_answers
from dualt.labels import LabelCoder, as_label_array, is_missing, shorten, whole_values
from dualt.rows.entry import positions, row_numbers
from dualt.validation import class_name, index_of

HEADER = ("index", "old", "new")


@dataclass(frozen=True)
class Decision:
    """A person looked at example `index`, labelled `old`, and decided that its class is `new`.

    `where` is the place of the decision in the review, such as "row 3"; `id` the example's own name, if it has one.
    """

    index: int
    old: str
    new: str
    where: str
    id: str = ""


def read_review(path: str | Path) -> list[Decision]:
    """Read a table with the columns ``index,old,new`` and perhaps ``id``, as the report page writes it.

    Other columns are ignored. A row without a new label is undecided, and left out; one whose new label equals the old
    one was looked at and kept. A `.json` or `.jsonl` file is the export of a labelling tool; see `exchange`.
    """
    path = Path(path)
    exported = path.suffix.lower() in (".json", ".jsonl", ".ndjson")
    decisions: dict[int, Decision] = {}
    for number, row in read_answers(path) if exported else enumerate(_table_rows(path), start=1):
        if row["new"] == "":
            continue
        index, where = str(row["index"]).strip(), f"{'task' if exported else 'row'} {number}"
        if not (index.isascii() and index.isdigit() and len(index) < 16):
            raise InputError(f"Expected a row number as index in {where} of {path}, got {index[:40]!r}.")
        name = str(row.get("example", row.get("id")) or "")  # tools that number their tasks call that number id
        decision = Decision(int(index), class_name(row["old"]), class_name(row["new"]), where, name)
        first = decisions.setdefault(decision.index, decision)
        if replace(first, where=where) != decision:
            raise InputError(
                f"Expected one decision per example, got two for example {index} in {path}: {first.where} and {where}."
                " Delete one of the two."
            )
    return list(decisions.values())


def _table_rows(path: Path) -> list[dict[Any, Any]]:
    frame = read_table(path, guarded=True).fillna("").rename(columns=lambda name: str(name).strip().lower())
    if not {*HEADER} <= {*frame.columns}:
        raise InputError(
            f"Expected the header {','.join(HEADER)} in {path}, got {','.join(frame.columns)!r}. Pass the file that the"
            " report page's download button gave."
        )
    return list(frame.to_dict("records"))


def decided_labels(
    decisions: Sequence[Decision], given: Sequence[str], ids: Sequence[Any] | None = None
) -> dict[int, str]:
    """Return the label that was decided for each reviewed row; ids that are gone are left out, unless all are.

    The given label, a class name, must be the old one, or the new one if the review was applied.
    """
    found, rows = {}, _locate(decisions, len(given), ids).tolist()
    if ids is not None and rows and max(rows) < 0:
        raise LabelsError("Expected ids of the data in the review, got none. Is it the review of another table?")
    for decision, row in zip(decisions, rows, strict=True):
        if row < 0 and ids is not None and decision.id:
            continue
        if row < 0 or given[row] not in (decision.old, decision.new):
            raise _other_labels(decision, given[row] if row >= 0 else "no such row")
        found[row] = decision.new
    return found


def _other_labels(decision: Decision, now: str) -> LabelsError:
    return LabelsError(
        f"Expected example {decision.id or decision.index} to be labelled {decision.old!r} as in {decision.where} of"
        f" the review, got {now!r}. The labels have changed, or it was made for other labels. Nothing was changed."
    )


def apply_review(
    labels: Any,
    decisions: Sequence[Decision],
    *,
    class_names: Sequence[Any] | None = None,
    ids: Sequence[str] | None = None,
) -> NDArray[Any]:
    """Return `labels` with every decision put in, or raise and change nothing.

    Parameters
    ----------
    labels
        The given labels that were reviewed: numbers, strings or one-hot rows. The result is of the same kind; missing
        labels stay NaN among numbers, and are empty among strings. A series is reviewed under the row numbers that its
        index has kept.
    decisions
        From `read_review`.
    class_names
        In column order. Needed where the review has names and the labels are numbers, or where a new label is a class
        that no example has yet.
    ids
        Ids of all examples: a decision with an id is applied where that id is now.
    """
    array = as_label_array(labels, missing=True)
    there = ~is_missing(array)
    if not there.any():
        raise LabelsError("Expected at least one label, got none.")
    class_names = _names_in(array[there]) if class_names is None else class_names
    coder = LabelCoder.for_labels(array[there], len(class_names), class_names)
    # A review writes bools as True and False or as 1 and 0, like the data that it was made from.
    codes = {name: code for names in (coder.numbers or (), coder.names) for code, name in enumerate(names)}
    if array.dtype.kind in "iuf":  # pandas writes a column of numbers as floats if a cell of it is empty
        codes = {f"{name}.0": code for name, code in codes.items()} | codes
    current = np.full(len(array), -1, np.intp)
    current[there] = coder.encode(array[there])
    rows = _locate(decisions, len(array), ids, row_numbers(index_of(labels)))
    for decision, row in zip(decisions, rows, strict=True):
        for name in (decision.old, decision.new):
            if name not in codes:
                raise LabelsError(
                    f"Expected one of the classes {shorten(coder.names)}, got {name!r} in {decision.where} of the"
                    " review. Correct the spelling, or pass the review of these labels; a class that no example has yet"
                    " needs class_names (--classes)."
                )
        if row < 0 or current[row] != codes[decision.old]:
            now = "no such row" if row < 0 else "no label" if current[row] < 0 else coder.names[current[row]]
            raise _other_labels(decision, now)
    new = np.array([codes[decision.new] for decision in decisions], dtype=np.intp)
    values: NDArray[Any] = np.array(coder.label_texts)[new]
    if array.ndim == 2:
        values = np.eye(array.shape[1], dtype=array.dtype)[new]
    elif array.dtype.kind == "U":  # a longer name must not be cut to the width of the old ones
        array = array.astype(np.promote_types(array.dtype, values.dtype))
    else:
        try:
            values = values.astype(np.int64)
        except ValueError as error:
            raise LabelsError(f"Expected new labels that are numbers, like the others: {error}.") from None
    corrected: NDArray[Any] = array.copy()
    corrected[rows] = values
    return corrected


def _locate(
    decisions: Sequence[Decision], n_rows: int, ids: Sequence[Any] | None, numbers: NDArray[Any] | None = None
) -> NDArray[np.intp]:
    """Return where each example is now: by its id if the review and the data have ids, else by its row; −1 if gone."""
    index = np.array([decision.index for decision in decisions], dtype=np.intp)
    rows = np.where(index < n_rows, index, -1) if numbers is None else positions(numbers, index)
    by_id: dict[str, list[int]] = {}
    for row, each in enumerate(() if ids is None else ids):
        by_id.setdefault(str(each), []).append(row)
    for place, decision in enumerate(decisions):
        found = by_id.get(decision.id, [])
        if ids is not None and decision.id and rows[place] not in found:
            if len(found) > 1:
                raise LabelsError(
                    f"Expected one example with the id {decision.id!r} of {decision.where} of the review, got"
                    f" {len(found)}, none at row {decision.index}. Rows that move need ids of their own."
                )
            rows[place] = found[0] if found else -1
    if len(np.unique(rows[rows >= 0])) < (rows >= 0).sum():
        raise LabelsError("Expected one decision per example, got two ids of the review in one row.")
    return rows


def _names_in(array: NDArray[Any]) -> Sequence[Any]:
    """Return the classes that occur, in sorted order."""
    if array.ndim == 2:
        return range(array.shape[1])
    found: list[Any] = (np.unique(array) if array.dtype.kind == "U" else whole_values(array)).tolist()
    return ("False", "True") if array.dtype.kind == "b" else found
