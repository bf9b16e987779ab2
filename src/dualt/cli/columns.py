"""Names of columns, and columns of ids and texts, which the table of labels has, that of probabilities, or both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from dualt.errors import InputError

# Data frames write 7 as 7.0 where one of the column is missing.
_WHOLE = re.compile(r"^(-?\d+)\.0$", re.ASCII)


class Tables(NamedTuple):
    """The files of probabilities and of labels, and how to read them; options as in `open_shards`."""

    probs: Path
    labels: Path | None
    ending: str | None
    header: bool | None

    def read(self, column: str) -> list[str]:
        """Return a column, that of the labels if they have it."""
        return [text for path in self._having(column)[0] for text in self._texts(path, column)]

    def check_ids(self, column: str) -> None:
        """Refuse probabilities and labels that both have this column of ids, but not the same ids in the same order."""
        labels, *probs = self._having(column)
        for path, given in zip(*probs, labels, strict=True) if probs else ():
            pairs = zip_longest(self._texts(path, column), self._texts(given, column), fillvalue="")
            for row, (own, other) in enumerate(pairs):
                if _WHOLE.sub(r"\1", own) != _WHOLE.sub(r"\1", other):
                    raise InputError(
                        f"Expected the same ids in the same order in {path} and {given}, got {own[:80]!r} and"
                        f" {other[:80]!r} at row {row}. Sort both by {column!r}."
                    )

    def _texts(self, path: Path, column: str) -> list[str]:
        from dualt.io import load_texts

        return load_texts(path, column, header=self.header)

    def _having(self, column: str) -> list[list[Path]]:
        """Return the files of labels, and those of probabilities, that have a column; refuse one that neither has."""
        from dualt.io import open_table
        from dualt.io.load import TABLES

        files = self._files()
        tables = [each for each in files if each[0].suffix.lower() in TABLES]
        found = [each for each in tables if column in (open_table(each[0], column, self.header).names or ())]
        if not found:
            self._texts((tables or files)[0][0], column)  # says what it has instead
        return found

    def _files(self) -> list[list[Path]]:
        """Return the files of labels, unless they are those of probabilities, and these, in pairs."""
        from dualt.io import find_shards
        from dualt.io.shards import pair_by_name

        probs = find_shards(self.probs, self.ending)
        if self.labels is None or self.labels == self.probs:
            return [probs]
        labels = find_shards(self.labels, self.ending)
        return [[given for _, given in pair_by_name(probs, labels)], probs]


def rename_classes(path: Path, header: Sequence[str] | None, table: Path) -> tuple[str, ...]:
    """Return the class names of a file, by which the columns of a table are called instead of by its header.

    Refuse a name that the header has for another column: probabilities would pass for those of another class.
    """
    from dualt.io import load_class_names
    from dualt.labels import shorten

    names = load_class_names(path)
    if header is None or len(names) != len(header):  # another number is refused where columns are read
        return names
    for place, (name, own) in enumerate(zip(names, header, strict=True)):
        if name != own and name in header:
            raise InputError(
                f"Expected the class names of {path} in the order of the columns of {table} ({shorten(header)}), got"
                f" {name!r} for column {place}, which is {own!r}. Leave --classes out: the columns have names."
            )
    return names
