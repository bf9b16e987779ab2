"""Tables (CSV, TSV, JSON lines, Parquet, Feather) from and to pandas data frames."""

from __future__ import annotations

import codecs
import csv
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dualt.errors import DualtError, FileError, InputError, naming_extra
from dualt.files import LONGEST_LINE, atomic_write, check_ending, check_readable, json_text, not_utf8, open_input
from dualt.labels import is_missing_value

if TYPE_CHECKING:
    from pandas import DataFrame

TEXT, JSON_LINES, ARROW = (".csv", ".tsv"), (".jsonl", ".ndjson"), (".parquet", ".feather")
TABLES = (*TEXT, *JSON_LINES, *ARROW)
# The start of a text file from which its delimiter, decimal sign and header are taken.
_START_CHARACTERS, _START_ROWS = 1 << 16, 50
_COMMA = re.compile(r"\s*[-+]?([0-9]*|[0-9]{1,3}(\.[0-9]{3})+),[0-9]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
_POINTS = str.maketrans(",", ".", ".")
# Nothing, or a number from 0 to 1.
_FRACTION = re.compile(r"|\s*([01]|0?\.[0-9]+|1\.0+|[0-9](\.[0-9]+)?e-[0-9]+)\s*", re.IGNORECASE)
# The script of the review page has the same expression (report/templates/csv.js).
_FORMULA = re.compile(r"[' ]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
csv.field_size_limit(LONGEST_LINE)  # Python's is 131,072 characters, less than some texts have


def read_table(path: str | Path, *, header: bool = True, guarded: bool = False) -> DataFrame:
    """Return a table as a data frame, read by its ending; Parquet and Feather need the extra [tables].

    Cells of CSV, TSV and JSON lines are text, and the empty text is the only missing value. Without a `header`, the
    columns of a CSV or TSV file are numbered. Tables that `dualt` wrote may have `guarded` cells; see `guard_cell`.
    """
    (frame,) = read_parts(check_readable(path), None, header=header)
    if guarded:
        frame.columns = [unguard_cell(str(name)) for name in frame.columns]
        frame = frame.map(lambda cell: unguard_cell(cell) if isinstance(cell, str) else cell)
    return frame


def read_parts(path: Path, n_cells: int | None, *, header: bool, numeric: bool = False) -> Iterator[DataFrame]:
    """Yield a table in frames of some `n_cells` cells (None: in one); JSON lines and Feather always come in one.

    If `numeric`, decimal commas become points, and columns of a text file whose first cells are numbers such as 0.25
    become floats: they are read ten times as fast as text that becomes floats, and take a tenth of the memory.
    """
    with reading(path):
        if path.suffix.lower() in ARROW:
            yield from _arrow_parts(path, n_cells)
        elif path.suffix.lower() in JSON_LINES:
            yield _read_json_lines(path)
        else:
            dialect, n_done = look_at(path), 0
            parts = partial(_text_parts, path, dialect, n_cells, header, numeric)
            floats = _columns_of_fractions(dialect) if numeric else set()
            try:
                for n_done, frame in enumerate(parts(floats), start=1):  # noqa: B007
                    yield frame
            except ValueError:
                if not floats:
                    raise
                # A column that begins with fractions goes on with something else.
                yield from islice(parts(set()), n_done, None)


class Dialect(NamedTuple):
    """What divides the cells of a text file, what precedes decimals, and the first rows."""

    delimiter: str
    decimal: str
    rows: list[list[str]]


def look_at(path: Path) -> Dialect:
    """Look at the first rows: `.tsv` has tabs, else the one of , ; tab | that divides them into most columns is taken.

    One that leaves numbers with decimal commas goes before. The last two files are remembered.
    """
    return _look_at(path, file_version(path))


def file_version(path: Path) -> tuple[int, int]:
    """Return what changes if a file does: its size and its time."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=2)
def _look_at(path: Path, version: tuple[int, int]) -> Dialect:
    with reading(path), open_input(path, "r") as stream:
        start = stream.read(_START_CHARACTERS) + stream.readline()
        lines = [*StringIO(start, newline=""), *islice(stream, 3)]  # a header with many classes is long
        found, goes_on = [], bool(stream.read(1))
        for sign in "\t" if path.suffix.lower() == ".tsv" else ",;\t|":
            rows = [row for row in csv.reader(lines, delimiter=sign) if row]
            rows = (goes_on and rows[:-1]) or rows  # the last may be cut inside a quoted cell
            rows = rows[:_START_ROWS]
            comma = sign != "," and any(_COMMA.fullmatch(cell) for row in rows for cell in row)
            width = len(rows[0]) if rows and len({*map(len, rows)}) == 1 and len(rows[0]) > 1 else 0
            found.append((comma and width > 0, width, Dialect(sign, "," if comma else ".", rows)))
        best = max(found, key=lambda one: one[:2])[2]
    if not best.rows:
        raise FileError(f"Cannot read {path}: it is empty.")
    return best


def _columns_of_fractions(dialect: Dialect) -> set[int]:
    """Return the places of columns whose first cells are numbers from 0 to 1, not all of them whole."""
    return {
        place
        for place, cells in enumerate(zip(*dialect.rows[1:], strict=False))
        if all(_FRACTION.fullmatch(cell.replace(dialect.decimal, ".")) for cell in cells) and {*cells} - {"", "0", "1"}
    }


def _text_parts(
    path: Path, dialect: Dialect, n_cells: int | None, header: bool, numeric: bool, floats: set[int]
) -> Iterator[DataFrame]:
    import pandas as pd

    width = len(dialect.rows[0])
    with open_input(path, "r") as stream:
        for frame in pd.read_csv(
            stream,
            sep=dialect.delimiter,
            decimal=dialect.decimal,
            header=0 if header else None,
            names=range(width),  # pandas would rename one of two that have the same name
            dtype={place: "float64" if place in floats else "str" for place in range(width)},
            keep_default_na=False,
            chunksize=sys.maxsize if n_cells is None else max(n_cells // width, 1),
        ):
            if not isinstance(frame.index, pd.RangeIndex):  # pandas takes cells too many for an index
                raise InputError(
                    f"Expected {width} cells in every row of {path}, as in its first, got"
                    f" {width + frame.index.nlevels} in the next. Quote cells that have {dialect.delimiter!r}."
                )
            named = frame.set_axis([cell.strip() for cell in dialect.rows[0]], axis=1) if header else frame
            if numeric and dialect.decimal == ",":
                named = named.map(lambda cell: str(cell).translate(_POINTS) if _COMMA.fullmatch(str(cell)) else cell)
            yield named


def _read_json_lines(path: Path) -> DataFrame:
    import pandas as pd

    rows = [{name: cell_text(value) for name, value in row.items()} for row in json_lines(path)]
    if not rows:
        raise FileError(f"Cannot read {path}: it is empty.")
    return pd.DataFrame(rows, dtype=str).fillna("")


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file that has one on each line; blank lines are passed over."""
    with reading(path), open_input(path, "r") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                row = json.loads(line) if line.strip() else None
            except (RecursionError, ValueError) as error:
                raise FileError(f"Cannot read line {number} of {path}: {error}.") from None
            if isinstance(row, dict):
                yield row
            elif line.strip():
                raise InputError(f"Expected an object on line {number} of {path}, got {type(row).__name__}.")


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell; a missing one is empty."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return "" if is_missing_value(value) else str(value)


def _arrow_parts(path: Path, n_cells: int | None) -> Iterator[DataFrame]:
    from pandas import RangeIndex

    with naming_extra("Reading Parquet and Feather tables"):
        from pyarrow import feather, parquet

    if path.suffix.lower() == ".feather":
        tables: Any = [feather.read_table(path)]
    else:
        # With `pre_buffer`, pyarrow keeps all that it has read of the file.
        file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        n_columns = len(file.schema_arrow) or 1
        tables = [file.read()] if n_cells is None else file.iter_batches(max(n_cells // n_columns, 1))
    for table in tables:
        frame: DataFrame = table.to_pandas()
        numbered = isinstance(frame.index, RangeIndex)  # else pandas restored it, but it is a column of the file
        yield frame.reset_index(drop=numbered, names=[name or "" for name in frame.index.names])


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever NumPy, pandas and pyarrow raise on damaged files into one error that names the file."""
    try:
        yield
    except (DualtError, MemoryError):
        raise
    except UnicodeDecodeError:
        raise not_utf8(path) from None
    except Exception as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split()).rstrip(".")[:300]
        if "EOF inside string" in reason:
            reason += ". A quote is opened and never closed"
        elif "fields in line" in reason:
            reason += ". Quote cells that have the delimiter"
        elif "pickle" in reason or "bject" in reason:
            reason = "it holds Python objects, or is no array; nothing is unpickled. Save numbers or strings"
        raise FileError(f"Cannot read {path}: {reason or type(error).__name__}. It may be damaged.") from None


def write_table(
    path: str | Path, frame: DataFrame, *, guarded: bool = False, header: bool = True, like: Path | None = None
) -> None:
    """Write a data frame by the ending of `path`, whole or not at all; with `guarded` cells, no text is a formula.

    A text file gets the delimiter, the byte-order mark and the line ends of the file that it is `like`.
    """
    path = Path(path)
    kind = path.suffix.lower()
    check_ending(path, TABLES)
    if kind in ARROW:
        with naming_extra("Writing Parquet and Feather tables"):
            import pyarrow as pa
            from pyarrow import feather, parquet
        with atomic_write(path, "wb") as stream:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            parquet.write_table(table, stream) if kind == ".parquet" else feather.write_feather(table, stream)
        return
    with atomic_write(path) as stream:
        if kind in JSON_LINES:
            stream.writelines(f"{json_text(row, indent=None)}\n" for row in frame.to_dict("records"))
            return
        if guarded:
            frame = frame.rename(columns=lambda name: guard_cell(str(name)))
            frame = frame.map(lambda cell: guard_cell(cell) if isinstance(cell, str) else cell)
        sign, first_line = "\t" if kind == ".tsv" else ",", b""
        if like is not None:
            with open_input(like) as source:
                sign, first_line = look_at(like).delimiter, source.readline(LONGEST_LINE)
        # Python leaves a carriage return unquoted, where readers end the row.
        bare = any(isinstance(cell, str) and "\r" in cell for name in frame for cell in frame[name].tolist())
        quoting = csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL
        stream.write("\ufeff" * first_line.startswith(codecs.BOM_UTF8))
        end = "\r\n" if first_line.endswith(b"\r\n") else "\n"
        frame.to_csv(stream, sep=sign, index=False, header=header, lineterminator=end, quoting=quoting)


def guard_cell(text: str) -> str:
    """Return `text`, with an apostrophe in front if a spreadsheet would run it as a formula.

    The rule, which the script of the review page follows too: a text whose first character, apostrophes and spaces
    aside, is one of ``= + - @``, a full-width form of these, a tab or a line break is guarded, unless it is a plain
    number such as ``-1``. `unguard_cell` undoes it for every text.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguard_cell(text: str) -> str:
    """Return the text that `guard_cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
