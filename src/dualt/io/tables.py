"""Tables: columns of numbers, of labels and of texts, by place or by name."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError, UnknownNameError
from dualt.label_arrays import as_text_array, is_missing

LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")
# How data frames name the column of their index.
INDEX_COLUMNS = ("", "__index_level_0__")
_CANONICAL_INTEGER, _WHOLE_FLOAT = re.compile(r"0|-?[1-9][0-9]*"), re.compile(r"(0|-?[1-9][0-9]*)\.0")


class NotNumbersError(InputError):
    """A column that was to be read as numbers has something else."""


@dataclass(frozen=True)
class Table(ABC):
    """A file that knows its columns and reads those that are asked for.

    `names` is None without a header, `n_rows` if only reading tells.
    """

    path: Path
    names: tuple[str, ...] | None
    n_columns: int
    n_rows: int | None

    def position(self, column: str) -> int:
        """Return the place of the column of that name."""
        if self.names is None:
            raise InputError(f"Expected a header that names {column!r} in {self.path}, got a table without one.")
        if column not in self.names:
            raise UnknownNameError(f"column of {self.path}", column, self.names)
        return self.names.index(column)

    def dtype(self, places: Sequence[int]) -> np.dtype[Any]:
        """Return the float type in which the numbers at these places are read."""
        return np.dtype(np.float64)

    @abstractmethod
    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield columns of numbers, as a float array, and one of labels (else nothing), as many rows as fit memory."""

    def read_all(self, numbers: Sequence[int], label: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all that `read` yields: numbers of shape (n_rows, columns), and labels."""
        portions = list(self.read(numbers, label)) or [(np.empty((0, len(numbers))), np.empty(0))]
        if len(portions) == 1:
            return portions[0]
        values, labels = zip(*portions, strict=True)
        return np.concatenate(values), np.concatenate(labels)

    def read_numbers(self, places: Sequence[int]) -> NDArray[Any]:
        """Return the columns at these places as one array."""
        return self.read_all(places)[0]

    def read_column(self, place: int) -> NDArray[Any]:
        """Return one column of labels: numbers if they all are, else texts; missing ones as `labels_of` has them."""
        return self.read_all([], place)[1]

    def may_miss(self, place: int) -> bool:
        """Tell whether a label of this column may be missing, as far as that is known without reading it."""
        return True

    @abstractmethod
    def read_texts(self, place: int) -> list[str]:
        """Return one column as texts, such as those of ids."""

    def read_columns(self, places: Sequence[int]) -> list[list[str]]:
        """Return several columns as texts."""
        return [self.read_texts(place) for place in places]


def labels_of(texts: Sequence[str]) -> NDArray[Any]:
    """Return the labels that a file has in text: numbers if they all are, else texts.

    A missing one is the empty text, and NaN among numbers.
    """
    labels = as_text_array(texts)
    missing = labels == ""
    if not missing.any() or missing.all():
        return numbers_if_all_are(labels)
    found = numbers_if_all_are(labels[~missing])
    if found.dtype.kind == "U":
        return labels
    numbers = np.full(len(labels), np.nan)
    numbers[~missing] = found
    return numbers


def check_no_missing(labels: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return labels of a file if none is missing."""
    missing = is_missing(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise LabelsError(f"Expected a label in every row of {path}, got none at row {row}. Drop that row.")
    return labels


def numbers_if_all_are(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts like '10' and '9' as numbers if they all are, so that classes sort as numbers do.

    A text is a number only if the number would be written so: '007', '1_0' and '1e1' are codes, which stay text. Whole
    floats are numbers if all are written so ('1.0', as data frames do), and 'nan' among numbers is a missing one.
    """
    different = set(texts.tolist())
    if all(map(_CANONICAL_INTEGER.fullmatch, different)):
        try:
            return texts.astype(np.int64)
        except OverflowError:
            return texts
    numbers = different - {"nan"}
    floats = (all(map(pattern.fullmatch, numbers)) for pattern in (_CANONICAL_INTEGER, _WHOLE_FLOAT))
    return texts.astype(np.float64) if numbers and any(floats) else texts
