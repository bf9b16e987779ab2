"""Decisions of a review, put into the labels they were made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import LabelsError
from dualt.issues.review import Decision
from dualt.label_arrays import as_label_array, is_missing
from dualt.labels import LabelCoder, codes_digest, labels_digest, whole_values
from dualt.rows.row_names import positions, row_numbers
from dualt.validation import as_array, index_of


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
        The given labels that were reviewed: numbers, strings or one-hot rows; missing ones (NaN, None, or empty) stay
        NaN among numbers, and are empty among strings.
        The result is of the same kind. A series is reviewed under the row numbers that its index has kept.
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
    array = as_label_array(_filled(labels))
    there = ~is_missing(array)
    if not there.any():
        raise LabelsError("Expected at least one label, got none.")
    coder = _coder(array[there], class_names)
    # A review calls truth values True and False, or 1 and 0, as what it was made from did.
    codes = {name: code for names in (coder.numbers or (), coder.names) for code, name in enumerate(names)}
    current = np.full(len(array), -1, np.intp)
    current[there] = coder.encode(array[there])
    numbers = row_numbers(index_of(labels))
    # A page made in Python knows the labels by the names of their classes.
    by_name = codes_digest(coder.names, [current], numbers)
    _check_belonging({labels_digest(array, numbers), by_name}, decisions)
    rows = _rows(decisions, len(array), numbers)
    for decision, row in zip(decisions, rows.tolist(), strict=True):
        _check_id(decision, row, ids)
        _check(decision, row, current, codes, coder.names)
    new = np.array([codes[decision.new] for decision in decisions], dtype=np.intp)
    return _replaced(array, rows, new, coder)


def _filled(labels: Any) -> Any:
    """Return labels of any objects with empty texts, or NaN among numbers, where one is missing."""
    array = as_array(labels, "labels as numbers, strings or one-hot rows", LabelsError)
    if array.dtype.kind != "O" or not (missing := is_missing(array)).any():
        return labels
    numbers = all(isinstance(label, (int, float)) for label in array[~missing].tolist())
    return np.where(missing, np.nan, array).astype(np.float64) if numbers else np.where(missing, "", array)


def _check_belonging(own: set[str], decisions: Sequence[Decision]) -> None:
    """Refuse a review that was made for labels of other digests than the `own`."""
    digests = {decision.labels for decision in decisions} - {""}
    if len(digests) > 1 or not digests <= own:
        raise LabelsError(
            "Expected the labels that the review was made for, got others: the checksum in its column 'labels' is not"
            " theirs. Nothing was changed. Apply it to the file that the page was made from, as it was then; of a file"
            " that was corrected in place, that is the backup."
        )


def _rows(decisions: Sequence[Decision], n_labels: int, numbers: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return where the reviewed examples are among the labels, which may be those of other row numbers; else −1."""
    index = np.array([decision.index for decision in decisions], dtype=np.intp)
    return np.where(index < n_labels, index, -1) if numbers is None else positions(numbers, index)


def _check_id(decision: Decision, row: int, ids: Sequence[str] | None) -> None:
    """Refuse the decision on an example that is called something else."""
    known = decision.id if ids is None or row < 0 else ids[row]
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


def _check(
    decision: Decision, row: int, current: NDArray[np.intp], codes: dict[str, int], names: tuple[str, ...]
) -> None:
    where = f"{decision.where} of the review"
    if row < 0:
        raise LabelsError(
            f"Expected the row number of one of {len(current):,} labels, got {decision.index} on {where}. The review"
            " was made for other labels."
        )
    if current[row] < 0:
        raise LabelsError(f"Expected example {decision.index} to have a label, as on {where}, got none.")
    for name in (decision.old, decision.new):
        if name not in codes:
            raise LabelsError(
                f"Expected a class among the labels, got {name!r} on {where}. Pass the class names,"
                " in column order, that the report was made with."
            )
    if current[row] != codes[decision.old]:
        raise LabelsError(
            f"Expected example {decision.index} to be labelled {decision.old!r} as on {where}, got"
            f" {names[current[row]]!r}. The labels changed since the review, or it was made for"
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
