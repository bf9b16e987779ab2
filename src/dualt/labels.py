"""Given labels: as arrays, as class indices, and which of them are missing."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import LabelsError
from dualt.validation import ClassNames, as_array, check_class_names, is_frame

Codes: TypeAlias = NDArray[np.intp]

_ROWS_AT_ONCE = 1 << 16
# Beyond this, floats skip whole numbers.
_LARGEST_WHOLE = 2**53
# Class names that bool labels may stand for, and the number of each.
_TRUTHS = {"true": "1", "false": "0", "1": "1", "0": "0"}
# More classes than this, most of them with one row, are ids, texts or measurements, not labels.
_FEW_CLASSES = 20
_WHOLE = re.compile(r"(-?\d+)(?:\.0*)?", re.ASCII)
_LONGEST_LABEL = 1_000
# Spellings of a missing label in tables; a class may well be called "none".
_MISSING_MARKERS = frozenset({"", "n/a", "#n/a", "na", "nan", "<na>", "null"})
# Blanks of no width, marks of byte order and direction, and the soft hyphen.
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u200e\u200f\u00ad"))
_KINDS = "labels as numbers, strings or one-hot rows"
_SEVERAL_CLASSES = " Examples of several classes at once (multi-label) are one yes-or-no problem per class."
_SEVERAL_PEOPLE = (
    " Several people's labels are combined by `dualt votes`, dualt.combine_votes: see docs/howto/crowd.md. If these are"
    " the probabilities, they come first."
)


def as_label_array(labels: Any, *, missing: bool = False) -> NDArray[Any]:
    """Return labels as an array of numbers or of strings, without copying arrays.

    Objects become numbers if they all are, else strings. None, NaN and pandas' NA among them are refused, unless
    `missing`: then they become NaN among numbers, else the empty string.
    """
    if is_frame(labels) and len(labels.columns) > 1 and list(labels.columns) != list(range(len(labels.columns))):
        raise LabelsError(
            "Expected one column of labels, got a data frame with several named columns. Pass the column of labels; for"
            " one-hot rows pass frame.idxmax(axis=1), or frame.to_numpy() if they are ordered as the probabilities."
        )
    array = as_array(labels, _KINDS, LabelsError)
    if array.dtype.kind == "U" and isinstance(labels, (list, tuple)):  # NumPy makes NaN among texts "nan"
        array = as_array(labels, _KINDS, LabelsError, object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise LabelsError(f"Expected labels of shape (n_samples,) or one-hot rows, got shape {array.shape}.")
    if array.size == 0:
        raise LabelsError("Expected at least one label, got none.")
    if array.dtype.kind in "OST":  # objects, bytes, and NumPy's strings of any length
        array = _from_objects(array.astype(object), missing)
    if array.dtype.kind not in ("biufU" if array.ndim == 1 else "biuf"):
        several = _SEVERAL_PEOPLE if array.ndim == 2 and array.dtype.kind == "U" else ""
        raise LabelsError(f"Expected {_KINDS}, got shape {array.shape} of dtype {array.dtype}.{several}")
    return array


def _from_objects(array: NDArray[Any], missing: bool) -> NDArray[Any]:
    width = array.size // len(array)
    values = [_plain(value, place // width, missing) for place, value in enumerate(array.ravel().tolist())]
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, (int, float, np.number, np.bool_)) for value in there):
        return np.array([np.nan if value is None else value for value in values]).reshape(array.shape)
    return as_text_array(["" if value is None else str(value) for value in values]).reshape(array.shape)


def _plain(value: Any, row: int, missing: bool) -> Any:
    """Return one label, bytes as text; None for a missing one if these are allowed."""
    if is_missing_value(value):
        if missing:
            return None
        raise LabelsError(f"Expected a label for every row, got {value} at row {row}. Drop that row.")
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    if hasattr(value, "__len__") and not isinstance(value, str):
        raise LabelsError(f"Expected one label per row, got {value!r} at row {row}.")
    return value


def as_text_array(texts: Sequence[str]) -> NDArray[np.str_]:
    """Return texts as an array, in which each takes as much memory as the longest: very long ones are refused."""
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_LABEL:
        row = [len(text) for text in texts].index(longest)
        raise LabelsError(
            f"Expected labels of at most {_LONGEST_LABEL:,} characters, got one of {longest:,} at row {row}."
            " Is this a column of texts?"
        )
    return np.array(texts, dtype=str)


def visible_name(name: str) -> str:
    """Return a class name for display, in quotes if it is empty or begins or ends with a blank."""
    return name if name and name == name.strip() else f"'{name}'"


def look_alike(names: Iterable[str]) -> tuple[list[list[str]], list[str]]:
    """Return the groups of names that are equal but for case, accents and blanks, also unseen ones, and "missing" ones.

    Examples
    --------
    >>> look_alike(["cat", "Cat ", "dog", "N/A"])
    ([['cat', 'Cat ']], ['N/A'])
    """
    groups: dict[str, list[str]] = {}
    for name in filter(None, names):
        plain = unicodedata.normalize("NFKD", name.translate(_UNSEEN).strip().casefold())
        groups.setdefault("".join(c for c in plain if not unicodedata.combining(c)), []).append(name)
    alike = [found for folded, found in groups.items() if len(found) > 1 and folded not in _MISSING_MARKERS]
    return alike, [name for folded in sorted(_MISSING_MARKERS) for name in groups.get(folded, ())]


def merge_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return text labels with the most frequent spelling of each class, and "" for those that mean "missing"."""
    if labels.dtype.kind != "U":
        return labels
    counts = Counter(labels.tolist())
    spellings, markers = look_alike(counts)
    names = dict.fromkeys(markers, "")
    for alike in spellings:
        names |= dict.fromkeys(alike, max(alike, key=lambda name: counts[name]).translate(_UNSEEN).strip())
    return np.array([names.get(label, label) for label in labels.tolist()])


def is_missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are missing: the empty text, NaN among numbers, and None among objects."""
    if labels.ndim == 1 and labels.dtype.kind in "fU":
        return np.asarray(labels == "" if labels.dtype.kind == "U" else np.isnan(labels))
    if labels.ndim == 1 and labels.dtype.kind == "O":
        return np.array([is_missing_value(label) or (isinstance(label, str) and not label) for label in labels], bool)
    return np.zeros(len(labels), dtype=bool)


def is_missing_value(value: Any) -> bool:
    """Return whether a label is None, NaN or pandas' NA."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):  # the truth value of pandas' NA is undefined, as is that of an array
        return type(value).__name__ == "NAType"


@dataclass(frozen=True)
class LabelCoder:
    """Maps given labels to the columns of the probabilities.

    `names` are the class names in column order, among which strings are looked up. Numbers are looked up among
    `numbers`; without these they are column numbers.
    """

    names: tuple[str, ...]
    numbers: tuple[str, ...] | None = None

    @classmethod
    def for_labels(cls, labels: NDArray[Any], n_classes: int, class_names: ClassNames | None = None) -> LabelCoder:
        """Choose how to read `labels`, given the number of columns and perhaps their names."""
        textual = labels.dtype.kind not in "biuf"
        if class_names is not None:
            names = check_class_names(class_names, n_classes)
            if textual:
                return cls(names, names)
            return cls(names, None if labels.ndim > 1 else _numbers_among(names, labels))
        if not textual:
            return cls(tuple(map(str, range(n_classes))))
        texts = [str(name) for name in np.unique(labels)]
        found = [text for text in texts if text]  # `encode` refuses the empty one, with its row
        if all(map(_is_integer, found)):
            found.sort(key=int)  # as text, '10' would come before '9'
        if len(found) != n_classes:
            raise LabelsError(
                f"Expected {n_classes} different labels, one per class, got {len(found)} ({shorten(found)})"
                f"{' and empty ones' * (len(found) < len(texts))}. Pass class_names (--classes) in that order."
            )
        return cls(tuple(found), tuple(found))

    @classmethod
    def found_in(cls, labels: NDArray[Any]) -> LabelCoder:
        """Return the coder of the classes that occur, in sorted order."""
        if labels.ndim == 2:
            return cls.for_labels(labels, labels.shape[1])
        values = np.unique(labels[~is_missing(labels)])  # `encode` refuses the missing ones, with their rows
        if values.dtype.kind == "f":
            values = whole_values(values)
        if len(values) < 2:
            raise LabelsError(f"Expected labels of at least two classes, got only {values.tolist()}.")
        if len(values) > max(_FEW_CLASSES, len(labels) / 2):
            raise LabelsError(
                f"Expected labels that several rows share, got {len(values):,} different ones in {len(labels):,} rows."
                " Are they ids, texts or measurements?"
            )
        return cls.for_labels(labels, len(values), values.tolist())

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.names)

    @property
    def label_texts(self) -> tuple[str, ...]:
        """What the label of each class looks like in the data: its name, or its number."""
        return self.numbers or tuple(map(str, range(self.n_classes)))

    def encode(self, chunk: NDArray[Any], start: int = 0) -> Codes:
        """Return the class index of every label; `start` is the row number of the first."""
        if chunk.ndim == 2:
            return self._from_one_hot(chunk, start)
        if chunk.dtype.kind == "f":
            chunk = _whole_numbers(chunk, start)
        if self.numbers or chunk.dtype.kind == "U":
            return self._from_names(chunk, start)
        if chunk.dtype.kind == "b" and self.n_classes != 2:
            raise LabelsError(f"Expected labels of {self.n_classes} classes, got bool labels, which name only two.")
        if chunk.min() < 0 or chunk.max() >= self.n_classes:
            row = int(np.argmax((chunk < 0) | (chunk >= self.n_classes)))
            hints = {
                self.n_classes: "If your labels count from 1, subtract 1.",
                -1: "If -1 marks unlabelled rows, drop them from probabilities and labels.",
            }
            hint = hints.get(int(chunk[row]), "If classes have other numbers, pass these as class_names (--classes).")
            got = f"{chunk[row]} at row {start + row}"
            raise LabelsError(f"Expected labels from 0 to {self.n_classes - 1}, got {got}. {hint}")
        return chunk.astype(np.intp, copy=False)

    def encode_small(self, labels: NDArray[Any], start: int = 0, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the same in the smallest integer type, or in `out`, encoded some rows at a time."""
        codes = np.empty(len(labels), np.min_scalar_type(self.n_classes - 1)) if out is None else out
        for low in range(0, len(labels), _ROWS_AT_ONCE):
            codes[low : low + _ROWS_AT_ONCE] = self.encode(labels[low : low + _ROWS_AT_ONCE], start + low)
        return codes

    def _from_names(self, chunk: NDArray[Any], start: int) -> Codes:
        texts = self.names if chunk.dtype.kind == "U" else self.numbers or self.names
        if chunk.dtype.kind in "biu" and all(map(_is_integer, texts)):
            names = np.array(list(map(int, texts)))
        else:
            names, chunk = np.array(texts), chunk.astype(str, copy=False)
        order = np.argsort(names)
        codes = order[np.minimum(np.searchsorted(names, chunk, sorter=order), len(names) - 1)]
        unknown = names[codes] != chunk
        if unknown.any():
            row = int(np.argmax(unknown))
            if chunk.dtype.kind == "U" and not chunk[row]:
                raise LabelsError(f"Expected a label for every row, got '' at row {start + row}. Drop that row.")
            got = f"{str(chunk[row])!r} at row {start + row}"
            raise LabelsError(f"Expected labels among the class names ({shorten(self.names)}), got {got}.")
        return codes.astype(np.intp, copy=False)

    def _from_one_hot(self, chunk: NDArray[Any], start: int) -> Codes:
        others = "" if ((chunk == 0) | (chunk == 1)).all() else _SEVERAL_PEOPLE
        if chunk.shape[1] != self.n_classes:
            raise LabelsError(f"Expected one-hot labels of {self.n_classes} columns, got {chunk.shape[1]}.{others}")
        n_marks = (chunk != 0).sum(axis=1)
        wrong = (n_marks != 1) | (chunk.max(axis=1) != 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            hint = others or (_SEVERAL_CLASSES if n_marks.max() > 1 else "")
            got = f"{chunk[row]} at row {start + row}"
            raise LabelsError(f"Expected one-hot labels, a single 1 in each row, got {got}.{hint}")
        return np.asarray(chunk.argmax(axis=1))


def _is_integer(name: str) -> bool:
    return name.removeprefix("-").isdecimal()


def _numbers_among(names: Sequence[str], labels: NDArray[Any]) -> tuple[str, ...] | None:
    """Return the names with those that are numbers, or truth values, as integers; None if labels are column numbers.

    They are if no name is a number, or if some are and not all labels are among these.
    """
    truths = tuple(_TRUTHS.get(name.lower(), "") for name in names)
    if sorted(truths) == ["0", "1"]:
        return truths
    numbers = tuple(str(int(found[1])) if (found := _WHOLE.fullmatch(name)) else name for name in names)
    if labels.dtype.kind == "b" or not any(map(_is_integer, numbers)):
        return None
    known = all(map(_is_integer, numbers)) or {*map(str, whole_values(labels).tolist())} <= {*numbers}
    return numbers if known else None


def whole_values(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the different class numbers among floats; `LabelCoder.encode` refuses the others, with their rows."""
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float64, copy=False)
    return np.unique(numbers[np.abs(numbers) <= _LARGEST_WHOLE].astype(np.int64))


def _whole_numbers(chunk: NDArray[Any], start: int) -> NDArray[np.int64]:
    with np.errstate(over="ignore"):
        numbers = chunk.astype(np.float64, copy=False)
    usable = (numbers == np.rint(numbers)) & (np.abs(numbers) <= _LARGEST_WHOLE)
    if not usable.all():
        row = int(np.argmin(usable))
        what = "a label" if np.isnan(numbers[row]) else "a class number"
        hint = "Labels are class numbers, names or one-hot rows."
        raise LabelsError(f"Expected {what} for every row, got {chunk[row]} at row {start + row}. {hint}")
    return numbers.astype(np.int64)


def shorten(names: Sequence[str], limit: int = 8) -> str:
    """Return names for a message, the first of many."""
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, … {len(names)} in all"
