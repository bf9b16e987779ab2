"""Given labels of any reasonable kind as arrays of numbers, strings or one-hot rows, and which of them are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import LabelsError
from dualt.validation import as_array, is_frame

_LONGEST_LABEL = 1_000
SEVERAL_PEOPLE = (
    " Several people's labels come one column at a time, or as their majority: see docs/howto/crowd.md. If these are"
    " the probabilities, they come first."
)


def as_label_array(labels: Any, *, missing: bool = False) -> NDArray[Any]:
    """Return labels as an array of numbers or of strings, without copying arrays.

    Objects become numbers where they all are, else strings. None, NaN and pandas' NA among them are refused, unless
    `missing`: then they are NaN among numbers, else the empty string.
    """
    _refuse_named_columns(labels)
    array = as_array(labels, "labels as numbers, strings or one-hot rows", LabelsError)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise LabelsError(f"Expected labels of shape (n_samples,) or one-hot rows, got shape {array.shape}.")
    if array.size == 0:
        raise LabelsError("Expected at least one label, got none.")
    if array.dtype.kind in "OST":  # objects, bytes, and NumPy's strings of any length
        array = _from_objects(array.astype(object), missing)
    if array.dtype.kind not in ("biufU" if array.ndim == 1 else "biuf"):
        several = SEVERAL_PEOPLE if array.ndim == 2 and array.dtype.kind == "U" else ""
        raise LabelsError(
            f"Expected labels as numbers, strings or one-hot rows, got shape {array.shape} of dtype"
            f" {array.dtype}.{several}"
        )
    return array


def _refuse_named_columns(labels: Any) -> None:
    """Refuse one-hot rows whose columns carry names, which may be in another order than the probabilities'."""
    if is_frame(labels) and len(labels.columns) > 1 and list(labels.columns) != list(range(len(labels.columns))):
        raise LabelsError(
            "Expected one column of labels, got a data frame of several with names. Pass the column of labels; for"
            " one-hot rows pass frame.idxmax(axis=1), or frame.to_numpy() if they are ordered as the probabilities."
        )


def _from_objects(array: NDArray[Any], missing: bool) -> NDArray[Any]:
    width = array.size // len(array)
    values = [
        None if missing and is_missing_value(value) else _plain(value, place // width)
        for place, value in enumerate(array.ravel().tolist())
    ]
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, (int, float, np.number, np.bool_)) for value in there):
        flat = np.array([np.nan if value is None else value for value in values])
    else:
        flat = as_text_array(["" if value is None else str(value) for value in values])
    return flat.reshape(array.shape)


def as_text_array(texts: Sequence[str]) -> NDArray[np.str_]:
    """Return texts as an array, in which each takes as much room as the longest: so none may be very long."""
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_LABEL:
        row = next(row for row, text in enumerate(texts) if len(text) == longest)
        raise LabelsError(
            f"Expected labels of at most {_LONGEST_LABEL:,} characters, got one of {longest:,} at row {row}."
            " Is this a column of texts?"
        )
    return np.array(texts, dtype=str)


def is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which labels are missing: the empty text, NaN among numbers, and None among objects."""
    if labels.ndim == 1 and labels.dtype.kind in "fU":
        return np.asarray(labels == "" if labels.dtype.kind == "U" else np.isnan(labels))
    if labels.ndim == 1 and labels.dtype.kind == "O":
        return np.array([is_missing_value(label) or (isinstance(label, str) and not label) for label in labels], bool)
    return np.zeros(len(labels), dtype=bool)


def _plain(value: Any, row: int) -> Any:
    """Return a label that is there and is one: bytes as text, everything else as it is."""
    if is_missing_value(value):
        raise LabelsError(f"Expected a label for every row, got {value} at row {row}. Drop that row.")
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise LabelsError(f"Expected labels in UTF-8, got {value!r} at row {row}: {error.reason}.") from None
    if hasattr(value, "__len__") and not isinstance(value, str):
        raise LabelsError(f"Expected one label per row, got {value!r} at row {row}.")
    return value


def is_missing_value(value: Any) -> bool:
    """Tell whether a label is None, NaN or pandas' NA."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas' NA will not be a truth value; arrays are dealt with elsewhere
        return type(value).__name__ == "NAType"
