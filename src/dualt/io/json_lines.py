"""Tables of JSON lines: one object per line, whose keys name the columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError
from dualt.files import not_utf8, open_input
from dualt.io.tables import NotNumbersError, Table, labels_of
from dualt.label_arrays import as_text_array, is_missing_value

JSON_LINES = (".jsonl", ".ndjson")
_LINES_OF_NAMES = 1_000
_SPACE = " \t\r\n"


@dataclass(frozen=True)
class JsonLinesTable(Table):
    """A file of JSON lines; the columns are the keys of its first thousand. Empty lines are no rows."""

    names: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> JsonLinesTable:
        """Read the first lines: the very first may lack a key, such as a label."""
        names = tuple(dict.fromkeys(chain.from_iterable(islice(_objects(path), _LINES_OF_NAMES))))
        if not names:
            raise FileError(f"Cannot read {path}: it is empty.")
        return cls(path, names, len(names), None)

    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield all rows at once."""
        names = [self.names[place] for place in numbers]
        values: list[list[float]] = []
        labels: list[Any] = []
        for row, content in enumerate(_objects(self.path)):
            values.append([_number(content.get(name), name, row, self.path) for name in names])
            if label is not None:
                labels.append(content.get(self.names[label]))
        numbers_read = np.array(values, dtype=np.float64).reshape(len(values), len(names))
        yield numbers_read, np.empty(0) if label is None else _labels(labels, self.path)

    def read_texts(self, place: int) -> list[str]:
        """Return one column as texts; a missing one is empty."""
        return [_text(content.get(self.names[place])) for content in _objects(self.path)]


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_input(path, "r") as stream:
            for line, text in enumerate(stream, start=1):
                if text.strip():
                    yield _object(text, line, path)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None


def _object(text: str, line: int, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        # By itself, the error counts every line as the first.
        reason = f"{error.msg} on line {line}, column {error.colno}"
        raise FileError(f"Cannot read {path} as JSON lines: {reason}.") from None
    except (RecursionError, ValueError) as error:  # of too many brackets, or too many digits
        raise FileError(f"Cannot read {path} as JSON lines: {error} on line {line}.") from None
    if not isinstance(content, dict):
        raise InputError(f"Expected an object on line {line} of {path}, got {type(content).__name__}.")
    return content


def _number(value: Any, name: str, row: int, path: Path) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotNumbersError(f"Expected numbers in column {name!r} of {path}, got {str(value)[:40]!r} in row {row}.")
    return float(value)


def _labels(values: list[Any], path: Path) -> NDArray[Any]:
    for row, value in enumerate(values):
        if isinstance(value, (list, dict)):
            raise LabelsError(f"Expected one label per row of {path}, got {str(value)[:40]} in row {row}.")
    there = [value for value in values if not is_missing_value(value)]
    truths = any(isinstance(value, bool) for value in there) and len(there) < len(values)
    if there and not truths and all(isinstance(value, (bool, int, float)) for value in there):
        return np.array([np.nan if value is None else value for value in values])
    texts = list(map(_text, values))
    # Texts that look like numbers are texts here, where numbers are written as such.
    return as_text_array(texts) if all(isinstance(value, str) for value in there if value) else labels_of(texts)


def _text(value: Any) -> str:
    return "" if is_missing_value(value) else str(value)


def value_span(line: str, key: str) -> tuple[int, int] | None:
    """Return where the value of `key` begins and ends in the object that `line` is; None without such a key."""
    place = _skip(line, line.index("{") + 1)
    found = None
    while line[place] != "}":
        name, place = json.JSONDecoder().raw_decode(line, place)
        start = _skip(line, _skip(line, place) + 1)  # behind the colon
        _, end = json.JSONDecoder().raw_decode(line, start)
        if name == key:
            found = start, end  # the last one counts, as in `json.loads`
        place = _skip(line, end)
        place = _skip(line, place + 1) if line[place] == "," else place
    return found


def _skip(line: str, place: int) -> int:
    while line[place] in _SPACE:
        place += 1
    return place
