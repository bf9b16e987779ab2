"""Decisions of a review, read from the page's CSV and put into the labels they were made for."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError
from dualt.files import open_input
from dualt.io.cells import find_delimiter, is_row_number, unguard_cell
from dualt.io.json_lines import JSON_LINES
from dualt.issues.exchange import read_answers
from dualt.label_arrays import as_label_array, is_missing
from dualt.labels import LabelCoder, codes_digest, labels_digest, whole_values
from dualt.validation import class_name

HEADER = ("index", "old", "new")


@dataclass(frozen=True)
class Decision:
    """A person looked at example `index`, labelled `old`, and says that its class is `new`.

    `id` is what the example is called, and `labels` the digest of all labels at that time; both are empty if the
    review does not tell. `line` says where in the review that is, and `unit` what is counted there.
    """

    index: int
    old: str
    new: str
    line: int
    id: str = ""
    labels: str = ""
    unit: str = "line"

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"{self.unit} {self.line}"


def read_review(path: str | Path) -> list[Decision]:
    """Read a CSV with the columns ``index,old,new`` and perhaps ``id,labels``, as the report page writes it.

    Other columns are ignored. Cells that were guarded against spreadsheets (`dualt.io.cells`) come back as they
    were. A row whose new label equals the old one is a label that was looked at and kept. A `.json` or `.jsonl` file is
    the export of a labelling tool; see `dualt.issues.exchange`.

    Raises
    ------
    FileError
        If the file cannot be read.
    InputError
        If it is not such a table, or decides an example in two ways; the message gives the line.
    """
    path = Path(path)
    decisions: dict[int, Decision] = {}
    for decision in _exported(path) if path.suffix.lower() in (".json", *JSON_LINES) else _listed(path):
        first = decisions.setdefault(decision.index, decision)
        if (first.old, first.new, first.id) != (decision.old, decision.new, decision.id):
            raise InputError(
                f"Expected one decision per example, got two for example {decision.index}, on {first.where}"
                f" and {decision.where} of {path}. Delete one of the two."
            )
    return list(decisions.values())


def _exported(path: Path) -> Iterator[Decision]:
    for number, task in read_answers(path):
        index, texts = str(task["index"]), {name: _told(task.get(name)) for name in ("old", "new", "labels")}
        if not is_row_number(index):
            raise InputError(f"Expected a row number as index in task {number} of {path}, got {index[:40]!r}.")
        # Tools that number their tasks call that number id.
        called = str(task.get("example", task.get("id")) or "")
        yield Decision(int(index), line=number, id=called, unit="task", **texts)


def _told(value: Any) -> str:
    return "" if value is None else class_name(value)


def _listed(path: Path) -> Iterator[Decision]:
    try:
        with open_input(path, "r") as stream:
            yield from _decisions(stream, path)
    except UnicodeDecodeError as error:
        raise InputError(f"Expected {path} to be UTF-8 text: {error}. Save the review as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"Expected {path} to be a CSV file: {error}.") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error


def _decisions(stream: IO[str], path: Path) -> Iterator[Decision]:
    reader = csv.reader(stream, strict=True, delimiter=find_delimiter(stream))
    header = next(reader, [])
    names = [cell.strip().lower() for cell in header]
    if not {*HEADER} <= {*names}:
        raise InputError(
            f"Expected the header {','.join(HEADER)} on line 1 of {path}, got {','.join(header)!r}."
            " Pass the file that the report page's download button gave."
        )
    line = reader.line_num + 1
    for cells in reader:
        decision = _decision(names, cells, line, path) if cells else None
        # A tool's table has all tasks; the page's has those that were decided.
        if decision is not None and (decision.new or "example" not in names):
            yield decision
        line = reader.line_num + 1


def _decision(names: list[str], cells: list[str], line: int, path: Path) -> Decision:
    if len(cells) != len(names):
        raise InputError(f"Expected the cells {', '.join(names)} on line {line} of {path}, got {len(cells)}.")
    content = dict(zip(names, cells, strict=True))
    index = content["index"].strip()
    if not is_row_number(index):
        raise InputError(f"Expected a row number as index on line {line} of {path}, got {content['index'][:40]!r}.")
    texts = {name: unguard_cell(content[name]) for name in ("old", "new")}
    called = unguard_cell(content.get("example", content.get("id", "")))
    return Decision(int(index), line=line, labels=content.get("labels", "").strip(), id=called, **texts)


def decided_labels(
    decisions: Sequence[Decision], given: Sequence[str], ids: Sequence[Any] | None = None
) -> dict[int, str]:
    """Return the label that was decided for each reviewed row, by row number.

    An example is found by its id if the review has one and `ids` are passed, else by its row number, which also tells
    examples of one id apart; of ids that are gone nothing is said. Its given label, a class name, must be the old one,
    or the new one if the review was applied.

    Raises
    ------
    LabelsError
        If a label is neither: the review was made for other labels.
    """
    rows: dict[str, list[int]] = {}
    for row, each in enumerate(ids or ()):
        rows.setdefault(str(each), []).append(row)
    found = {}
    for decision in decisions:
        row = decision.index
        if ids is not None and decision.id:
            places = rows.get(decision.id, [])
            if not places:
                continue
            if row not in places and len(places) > 1:
                raise LabelsError(
                    f"Expected one example of the id {decision.id!r} on {decision.where} of the review, which is no"
                    f" longer example {row}, got {len(places)}. Rows that move need ids of their own."
                )
            row = row if row in places else places[0]
        now = given[row] if row < len(given) else "no such row"
        if now not in (decision.old, decision.new):
            raise LabelsError(
                f"Expected example {decision.id or decision.index} to be labelled {decision.old!r} or {decision.new!r},"
                f" as on {decision.where} of the review, got {now!r}. The review was made for other labels."
            )
        found[row] = decision.new
    return found


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
        The given labels that were reviewed: numbers, strings or one-hot rows; missing ones (empty, or NaN) stay so.
        The result is of the same kind.
    decisions
        From `read_review`.
    class_names
        Names of the classes in column order. Needed where the review speaks in names and the labels in
        numbers, or where a new label is a class that no example has yet.
    ids
        Ids of all examples, which must be those of the review.

    Raises
    ------
    LabelsError
        If the review was made for other labels, an example does not exist, its label is no longer `old`, or a
        label is no known class; the message gives the line of the review.
    """
    array = as_label_array(labels)
    there = ~is_missing(array)
    if not there.any():
        raise LabelsError("Expected at least one label, got none.")
    coder = _coder(array[there], class_names)
    # A review calls truth values True and False, or 1 and 0, as what it was made from did.
    codes = {name: code for names in (coder.numbers or (), coder.names) for code, name in enumerate(names)}
    current = np.full(len(array), -1, np.intp)
    current[there] = coder.encode(array[there])
    # A page made in Python knows the labels by the names of their classes.
    by_name = codes_digest(coder.names, [current])
    _check_belonging({labels_digest(array), by_name}, decisions, ids)
    for decision in decisions:
        _check(decision, current, codes, coder.names)
    rows = np.array([decision.index for decision in decisions], dtype=np.intp)
    new = np.array([codes[decision.new] for decision in decisions], dtype=np.intp)
    return _replaced(array, rows, new, coder)


def _check_belonging(own: set[str], decisions: Sequence[Decision], ids: Sequence[str] | None) -> None:
    """Refuse a review that was made for labels of other digests than the `own`, or for examples of other ids."""
    digests = {decision.labels for decision in decisions} - {""}
    if len(digests) > 1 or not digests <= own:
        raise LabelsError(
            "Expected the labels that the review was made for, got others: the checksum in its column 'labels' is not"
            " theirs. Nothing was changed. Apply it to the file that the page was made from, as it was then; of a file"
            " that was corrected in place, that is the backup."
        )
    for decision in decisions if ids is not None else ():
        known = ids[decision.index] if ids is not None and decision.index < len(ids) else decision.id
        if decision.id and decision.id != known:
            raise LabelsError(
                f"Expected the id {known!r} of example {decision.index}, got {decision.id!r} on {decision.where} of"
                " the review. It was made for other data, or for these in another order."
            )


def _coder(array: NDArray[Any], class_names: Sequence[Any] | None) -> LabelCoder:
    """Return the coder of the named classes, or of those that occur."""
    if class_names is not None:
        return LabelCoder.for_labels(array, len(class_names), class_names)
    if array.ndim == 2:
        return LabelCoder.for_labels(array, array.shape[1])
    if array.dtype.kind == "b":
        return LabelCoder.for_labels(array, 2, ("False", "True"))
    found = np.unique(array)
    whole = whole_values(found) if array.dtype.kind == "f" else found
    return LabelCoder(tuple(map(str, whole.tolist())), by_name=True)


def _check(decision: Decision, current: NDArray[np.intp], codes: dict[str, int], names: tuple[str, ...]) -> None:
    where = f"{decision.where} of the review"
    if decision.index >= len(current):
        raise LabelsError(
            f"Expected an index below {len(current):,}, the number of labels, got {decision.index} on"
            f" {where}. The review was made for other labels."
        )
    if current[decision.index] < 0:
        raise LabelsError(f"Expected example {decision.index} to have a label, as on {where}, got none.")
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
        values = np.array([_number(coder.label_texts[code]) for code in new.tolist()])
    else:
        values = np.array(coder.names)[new]
    if array.dtype.kind == "U":  # a longer name must not be cut to the width of the old ones
        corrected = array.astype(np.promote_types(array.dtype, values.dtype))
    corrected[rows] = values
    return corrected


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise LabelsError(
            f"Expected new labels that are numbers, as the others of the file are, got {text!r}. Nothing was changed."
        ) from None
