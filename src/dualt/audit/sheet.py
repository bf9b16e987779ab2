"""The file that a person fills in: a CSV of the rows that were drawn, each with the chance it had.

``index[,id],given,true,probability,stratum,stratum_size,draw``. `draw` is the same text in every row, so that it
survives sorting, spreadsheets and copying of rows: ``audit-LLLLLLLLL-DDDDDDDD``, a digest of the labels and one of the
draw (index, stratum and stratum size of every row). It begins with a letter: no spreadsheet takes it for a number.
Columns are found by their names, and others are ignored. A file of ``index,given,true`` alone is one of rows that were
drawn at random, all with the same chance.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.audit.design import Draw, Floats, Ints
from dualt.audit.verified_labels import Audit, and_more, check_probability
from dualt.errors import FileError, InputError
from dualt.files import atomic_write, not_utf8, open_input
from dualt.io.cells import find_delimiter, guard_cell, is_number, is_row_number, unguard_cell, write_rows
from dualt.io.tables import numbers_if_all_are
from dualt.label_arrays import as_text_array
from dualt.labels import labels_digest

_NEEDED = ("index", "given", "true")
_OF_DRAW = ("stratum", "stratum_size", "draw")
HEADER = (*_NEEDED, "probability", *_OF_DRAW)


@dataclass(frozen=True, eq=False)
class Sheet:
    """The rows of an audit, verified or not yet.

    Attributes
    ----------
    rows : (n_drawn,)
    given, true : (n_drawn,)
        As texts; `true` is empty where nobody has looked yet.
    probability : (n_drawn,), optional
    strata, stratum_sizes : (n_drawn,), optional
    draw : str, optional
        Names the labels and the draw.
    ids, texts : (n_drawn,), optional
        The user's own names of the rows, to find them by, and what they say.
    """

    rows: Ints
    given: NDArray[np.str_]
    true: NDArray[np.str_]
    probability: Floats | None = None
    strata: Ints | None = None
    stratum_sizes: Ints | None = None
    draw: str | None = None
    ids: NDArray[np.str_] | None = None
    texts: Sequence[str] | None = None

    @classmethod
    def of_draw(cls, labels: NDArray[Any], drawn: Draw, ids: NDArray[Any] | None = None) -> Sheet:
        """Return the sheet of rows that were drawn from `labels`, to be filled in."""
        sizes = drawn.sizes[drawn.strata]
        name = f"audit-{labels_digest(labels)}-{draw_digest(drawn.rows, drawn.strata, sizes)}"
        rows_ids = None if ids is None else ids[drawn.rows].astype(str)
        empty = np.full(len(drawn.rows), "", dtype="U1")
        given = labels[drawn.rows].astype(str)
        return cls(drawn.rows, given, empty, drawn.probability, drawn.strata, sizes, name, rows_ids)

    @property
    def filled(self) -> NDArray[np.intp]:
        """Places of the rows that were verified."""
        return np.flatnonzero(self.true != "")

    def with_true_of(self, earlier: Sheet) -> Sheet:
        """Return the sheet with the truths of an earlier batch, whose rows it must contain."""
        places = {row: place for place, row in enumerate(self.rows.tolist())}
        missing = [row for row in earlier.rows.tolist() if row not in places]
        if missing:
            raise InputError(
                f"Expected a draw that contains the {len(earlier.rows):,} rows of the earlier batch, got one without"
                f" row {missing[0]}{and_more(len(missing))}. Pass the same labels, probabilities, --design and"
                " --random-state as before."
            )
        true = self.true.astype(object)
        for place in earlier.filled:
            true[places[int(earlier.rows[place])]] = earlier.true[place]
        return replace(self, true=true.astype(str))

    def audit(self) -> Audit:
        """Return the rows that were verified."""
        if not len(self.filled):
            raise InputError("Expected true labels in the column 'true' of the audit, got none: fill some in.")
        given, true = numbers_if_all_are(self.given), self.true[self.filled]
        # Beside names as given labels, a true '3' is a name too.
        true = true if given.dtype.kind == "U" else numbers_if_all_are(true)
        digest = None if self.draw is None else self.draw.split("-")[1]
        sampled = {"probability": self.probability, "strata": self.strata, "stratum_sizes": self.stratum_sizes}
        known: dict[str, Any] = {name: column[self.filled] for name, column in sampled.items() if column is not None}
        return Audit(self.rows[self.filled], true, given=given[self.filled], labels_digest=digest, **known)

    def save(self, path: str | Path) -> None:
        """Write the CSV."""
        columns: dict[str, list[Any]] = {"index": self.rows.tolist()}
        texts = {"id": self.ids, "text": self.texts, "given": self.given, "true": self.true}
        columns |= {name: list(map(guard_cell, cells)) for name, cells in texts.items() if cells is not None}
        columns |= self.how_drawn()
        with atomic_write(path) as stream:
            write_rows(stream, [list(columns), *zip(*columns.values(), strict=True)])

    def how_drawn(self) -> dict[str, list[Any]]:
        """Return the columns that tell how each row was drawn, by name."""
        columns: dict[str, list[Any]] = {}
        if self.probability is not None:
            columns["probability"] = [f"{value:.6g}" for value in self.probability.tolist()]
        if self.strata is not None and self.stratum_sizes is not None:
            columns |= {"stratum": self.strata.tolist(), "stratum_size": self.stratum_sizes.tolist()}
            columns["draw"] = [self.draw] * len(self.rows)
        return columns


def read_audit(path: str | Path) -> Audit:
    """Return the verified rows of a file that `dualt audit` or its page wrote, and that a person has filled in.

    Rows that are not filled in yet are left out.
    """
    return read_sheet(path).audit()


def read_sheet(path: str | Path) -> Sheet:
    """Read the CSV of an audit, verified or not yet; a malformed row is refused, and named by its line.

    A row that comes again with the same truth, or without any, counts once.
    """
    columns, lines = _read_columns(path)
    for name in _NEEDED:
        if name not in columns:
            raise InputError(f"Expected the header {','.join(_NEEDED)} in {path}, got {','.join(columns)!r}.")
    if 0 < sum(name in columns for name in _OF_DRAW) < len(_OF_DRAW):
        raise InputError(f"Expected the columns {', '.join(_OF_DRAW)} of {path} together, got some of them.")
    texts = {name: as_text_array([unguard_cell(cell) for cell in columns[name]]) for name in ("given", "true")}
    numbers = partial(_numbers, columns, lines, path)
    rows = numbers("index")
    probability = numbers("probability") if "probability" in columns else None
    if probability is not None:
        check_probability(probability)
    if "draw" not in columns:
        return _each_once(Sheet(rows, texts["given"], texts["true"], probability))
    strata, sizes = numbers("stratum"), numbers("stratum_size")
    draw = _check_draw(columns["draw"], rows, strata, sizes)
    if probability is not None:
        _check_stratum_probability(probability, rows, strata, sizes)
    ids = as_text_array([unguard_cell(cell) for cell in columns["id"]]) if "id" in columns else None
    return _each_once(Sheet(rows, texts["given"], texts["true"], probability, strata, sizes, draw, ids))


def _each_once(sheet: Sheet) -> Sheet:
    """Leave out repeated rows; two truths of one row stay, to be refused where they are counted."""
    first: dict[tuple[int, str], int] = {}
    for place, key in enumerate(zip(sheet.rows.tolist(), sheet.true.tolist(), strict=True)):
        first.setdefault(key, place)
    verified = {row for row, true in first if true}
    kept = [place for (row, true), place in first.items() if true or row not in verified]
    arrays: dict[str, Any] = {name: column for name, column in vars(sheet).items() if isinstance(column, np.ndarray)}
    return replace(sheet, **{name: column[kept] for name, column in arrays.items()})


def draw_digest(rows: Ints, strata: Ints, stratum_sizes: Ints) -> str:
    """Return eight hexadecimal digits of the drawn rows with their strata and sizes, in whatever order they come."""
    table = np.unique(np.column_stack((rows, strata, stratum_sizes)).astype("<i8"), axis=0)
    return sha256(table.tobytes()).hexdigest()[:8]


def _read_columns(path: str | Path) -> tuple[dict[str, list[str]], list[int]]:
    """Return the cells of every column, by its name, and the number of the line that each row is on."""
    try:
        with open_input(path, "r") as stream:
            reader = csv.reader(stream, delimiter=find_delimiter(stream))
            header = [cell.strip().lower() for cell in next(reader, [])]
            table = [(reader.line_num, [cell.strip() for cell in line]) for line in reader]
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except (ValueError, csv.Error, OSError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path} as an audit: {error}.") from None
    if not header:
        raise InputError(f"Expected an audit with the header {','.join(_NEEDED)} in {path}, got an empty file.")
    if len(set(header)) < len(header):
        raise InputError(f"Expected each column once in the header of {path}, got {','.join(header)!r}.")
    table = [(number, line) for number, line in table if any(line)]
    for number, line in table:
        if len(line) != len(header):
            raise InputError(
                f"Expected {len(header)} cells in each row of {path}, as in its header, got {len(line)} in line"
                f" {number}. Mend that line, or take the file as `dualt audit` wrote it."
            )
    if not table:
        raise InputError(f"Expected the rows of an audit below the header of {path}, got none.")
    cells = zip(*(line for _, line in table), strict=True)
    return {name: list(column) for name, column in zip(header, cells, strict=True)}, [number for number, _ in table]


def _numbers(columns: dict[str, list[str]], lines: list[int], path: str | Path, name: str) -> NDArray[Any]:
    what = {"index": "a row number", "probability": "a number"}.get(name, "a whole number")
    is_valid, parse = (is_number, float) if name == "probability" else (is_row_number, int)
    cells = columns[name]
    if parse is float:  # spreadsheets of many countries write a comma
        cells = [cell.replace(",", ".") for cell in cells]
    for number, cell in zip(lines, cells, strict=True):
        if not is_valid(cell):
            raise InputError(f"Expected {what} as {name} in line {number} of {path}, got {cell[:40]!r}.")
    return np.array(list(map(parse, cells)), np.float64 if parse is float else np.intp)


def _check_draw(names: list[str], rows: Ints, strata: Ints, stratum_sizes: Ints) -> str:
    """Return the name of the draw; refuse several draws, or one whose rows or strata were changed."""
    different = sorted(set(names))
    if len(different) != 1:
        raise InputError(
            f"Expected the rows of one draw, got {len(different)} in the column 'draw':"
            f" {', '.join(different[:3])[:80]}."
            " Add a later batch with `dualt audit --more`: its file contains the earlier rows."
        )
    parts = different[0].split("-")
    if len(parts) != 3 or parts[0] != "audit":
        raise InputError(
            f"Expected a draw like 'audit-L0a1b2c3d-4e5f6071' in the column 'draw', got {different[0][:40]!r}."
            " Use the file that `dualt audit` wrote, and change the column 'true' only."
        )
    if parts[2] != draw_digest(rows, strata, stratum_sizes):
        raise InputError(
            "Expected the rows and strata that were drawn, got others: rows were added, removed or changed since."
            " Restore them (rows that are not checked yet stay, with 'true' empty), or draw again."
        )
    return different[0]


def _check_stratum_probability(probability: Floats, rows: Ints, strata: Ints, stratum_sizes: Ints) -> None:
    """Refuse inclusion probabilities that are not (rows drawn)/(rows) of their stratum."""
    once = np.unique(rows, return_index=True)[1]
    _, places = np.unique(strata, return_inverse=True)
    counts = np.bincount(places[once])[places]
    expected = counts / np.maximum(stratum_sizes, 1)
    bad = np.flatnonzero(~np.isclose(probability, expected, rtol=1e-3))
    if len(bad):
        at = bad[0]
        raise InputError(
            f"Expected the inclusion probability {expected[at]:.4g} in stratum {strata[at]} (drawn {counts[at]:,} of"
            f" {stratum_sizes[at]:,} rows), got {probability[at]:g} for row {rows[at]}{and_more(len(bad))}: the weights"
            " are not of this draw. Use the file as `dualt audit` wrote it."
        )
