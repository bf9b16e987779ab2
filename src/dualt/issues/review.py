"""Decisions of a review, read from the page's CSV and put into the labels they were made for."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError
from dualt.files import check_readable
from dualt.io.cells import is_row_number, unguard_cell
from dualt.labels import LabelCoder, as_label_array, whole_values

HEADER = ("index", "old", "new")


@dataclass(frozen=True)
class Decision:
    """A person looked at example `index`, labelled `old`, and says that its class is `new`.

    `id` is the user's own name of the example, `labels` the digest of the labels that were reviewed, if known.
    """

    index: int
    old: str
    new: str
    line: int
    id: str = ""
    labels: str = ""


def read_review(path: str | Path) -> list[Decision]:
    """Read a CSV of ``index,id,old,new,labels`` with class names, as the report page writes it.

    Columns are found by their names; `id` and `labels` may be missing, others are ignored.

    Cells that were guarded against spreadsheets (`dualt.io.cells`) come back as they were. A row whose new
    label equals the old one is a label that was looked at and kept.

    Raises
    ------
    FileError
        If the file cannot be read.
    InputError
        If it is not such a table, or names an example twice; the message gives the line.
    """
    path = Path(path)
    decisions: dict[int, Decision] = {}
    try:
        with check_readable(path).open(encoding="utf-8-sig", newline="") as stream:
            for decision in _decisions(stream, path):
                first = decisions.setdefault(decision.index, decision)
                if first is not decision:
                    raise InputError(
                        f"Expected one decision per example, got example {decision.index} on lines {first.line}"
                        f" and {decision.line} of {path}. Delete one of the two."
                    )
    except UnicodeDecodeError as error:
        raise InputError(f"Expected {path} to be UTF-8 text: {error}. Save the review as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"Expected {path} to be a CSV file: {error}.") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error
    return list(decisions.values())


def _decisions(stream: Iterable[str], path: Path) -> Iterator[Decision]:
    reader = csv.reader(stream, strict=True)
    header = next(reader, [])
    columns = [cell.strip().lower() for cell in header]
    if not set(HEADER) <= set(columns):
        raise InputError(
            f"Expected the header {','.join(HEADER)} on line 1 of {path}, got {','.join(header)!r}."
            " Pass the file that the report page's download button gave."
        )
    line = reader.line_num + 1
    for cells in reader:
        if cells:
            yield _decision(columns, cells, line, path)
        line = reader.line_num + 1


def _decision(columns: list[str], cells: list[str], line: int, path: Path) -> Decision:
    if len(cells) != len(columns):
        raise InputError(f"Expected the cells {', '.join(columns)} on line {line} of {path}, got {len(cells)}.")
    known = dict(zip(columns, cells, strict=True))
    index = known["index"].strip()
    if not is_row_number(index):
        raise InputError(f"Expected a row number as index on line {line} of {path}, got {index[:40]!r}.")
    old, new, name = (unguard_cell(known.get(column, "")) for column in ("old", "new", "id"))
    return Decision(int(index), old, new, line, name, known.get("labels", "").strip())


def decided_labels(
    decisions: Sequence[Decision], given: Sequence[str], ids: Sequence[Any] | None = None
) -> dict[int, str]:
    """Return the label that was decided for each reviewed row, by row number.

    An example is found by its id if the review has one and `ids` are passed, else by its row number; of ids that are
    gone nothing is said. Its given label, a class name, must be the old one, or the new one if the review was applied.

    Raises
    ------
    LabelsError
        If a label is neither: the review was made for other labels.
    """
    rows = {} if ids is None else {str(each): row for row, each in enumerate(ids)}
    found = {}
    for decision in decisions:
        row = rows.get(decision.id) if ids is not None and decision.id else decision.index
        if row is None:
            continue
        now = given[row] if row < len(given) else "no such row"
        if now not in (decision.old, decision.new):
            raise LabelsError(
                f"Expected example {decision.id or decision.index} to be labelled {decision.old!r} or {decision.new!r},"
                f" as on line {decision.line} of the review, got {now!r}. The review was made for other labels."
            )
        found[row] = decision.new
    return found


def apply_review(
    labels: Any, decisions: Sequence[Decision], *, class_names: Sequence[Any] | None = None
) -> NDArray[Any]:
    """Return `labels` with every decision put in, or raise and change nothing.

    Parameters
    ----------
    labels
        The given labels that were reviewed: numbers, strings or one-hot rows. The result is of the same kind.
    decisions
        From `read_review`.
    class_names
        Names of the classes in column order. Needed where the review speaks in names and the labels in
        numbers, or where a new label is a class that no example has yet.

    Raises
    ------
    LabelsError
        If an example does not exist, its label is no longer `old`, or a label is no known class; the
        message gives the line of the review.
    """
    array = as_label_array(labels)
    readable = array.astype(np.int64) if array.dtype.kind == "b" else array
    coder = _coder(readable, class_names)
    codes = {name: code for code, name in enumerate(coder.names)}
    current = coder.encode(readable)
    for decision in decisions:
        _check(decision, current, codes, coder.names)
    rows = np.array([decision.index for decision in decisions], dtype=np.intp)
    new = np.array([codes[decision.new] for decision in decisions], dtype=np.intp)
    return _replaced(array, rows, new, coder)


def _coder(array: NDArray[Any], class_names: Sequence[Any] | None) -> LabelCoder:
    """Return the coder of the named classes, or of those that occur."""
    if class_names is not None:
        return LabelCoder.for_labels(array, len(class_names), class_names)
    if array.ndim == 2:
        return LabelCoder.for_labels(array, array.shape[1])
    found = np.unique(array)
    whole = whole_values(found) if array.dtype.kind == "f" else found
    return LabelCoder(tuple(map(str, whole.tolist())), by_name=True)


def _check(decision: Decision, current: NDArray[np.intp], codes: dict[str, int], names: tuple[str, ...]) -> None:
    where = f"line {decision.line} of the review"
    if decision.index >= len(current):
        raise LabelsError(
            f"Expected an index below {len(current):,}, the number of labels, got {decision.index} on"
            f" {where}. The review was made for other labels."
        )
    for name in (decision.old, decision.new):
        if name not in codes:
            raise LabelsError(
                f"Expected a class among the labels, got {name!r} on {where}. Pass the class names,"
                " in column order, that the report was made with."
            )
    if current[decision.index] != codes[decision.old]:
        raise LabelsError(
            f"Expected example {decision.index} to be labelled {decision.old!r} as on {where}, got"
            f" {names[current[decision.index]]!r}. The labels changed since the review, or it was made for"
            " other labels."
        )


def _replaced(array: NDArray[Any], rows: NDArray[np.intp], new: NDArray[np.intp], coder: LabelCoder) -> NDArray[Any]:
    corrected: NDArray[Any] = array.copy()
    if array.ndim == 2:
        corrected[rows] = np.eye(array.shape[1], dtype=array.dtype)[new]
        return corrected
    if not coder.by_name:
        values: NDArray[Any] = new
    elif array.dtype.kind in "biuf":
        values = np.array([int(name) for name in coder.names])[new]
    else:
        values = np.array(coder.names)[new]
    if array.dtype.kind == "U":  # a longer name must not be cut to the width of the old ones
        corrected = array.astype(np.promote_types(array.dtype, values.dtype))
    corrected[rows] = values
    return corrected
