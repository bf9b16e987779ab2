"""Tables (CSV, TSV, JSON lines, Parquet, Feather) from and to pandas data frames."""

from __future__ import annotations

import csv
import json
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from dualt.errors import DualtError, FileError, InputError, UnknownNameError, naming_extra
from dualt.files import atomic_write, check_readable, json_text, not_utf8, open_input
from dualt.labels import is_missing_value

if TYPE_CHECKING:
    from pandas import DataFrame

TEXT, JSON_LINES, ARROW = (".csv", ".tsv"), (".jsonl", ".ndjson"), (".parquet", ".feather")
TABLES = (*TEXT, *JSON_LINES, *ARROW)
# The start of a text file that decides its delimiter, decimal sign and header.
_LOOKED_AT, _ROWS_LOOKED_AT = 1 << 16, 50
DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
# The script of the review page has the same expression (report/templates/csv.js).
_FORMULA = re.compile(r"[' ]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


def read_table(
    path: str | Path, *, columns: Sequence[str] | None = None, header: bool = True, guarded: bool = False
) -> DataFrame:
    """Return a table as a data frame, read by its ending.

    Cells of CSV, TSV and JSON lines are text, and the empty text is the only missing value; Parquet and Feather keep
    their types and need the extra [tables].

    Parameters
    ----------
    path
        `.csv`, `.tsv`, `.jsonl`, `.ndjson`, `.parquet` or `.feather`.
    columns
        Columns to return, in this order; by default all.
    header
        Whether the first line of a CSV or TSV file names the columns; without, they are numbered.
    guarded
        Whether `dualt` wrote the file with guarded cells; see `guard_cell`.
    """
    (frame,) = table_chunks(path, None, columns=columns, header=header)
    if guarded:
        frame.columns = [unguard_cell(str(name)) for name in frame.columns]
        frame = frame.map(lambda cell: unguard_cell(cell) if isinstance(cell, str) else cell)
    return frame


def table_chunks(
    path: str | Path, n_rows: int | None, *, columns: Sequence[str] | None = None, header: bool = True
) -> Iterator[DataFrame]:
    """Yield a table in frames of at most `n_rows` rows (None: all in one), each as `read_table` returns it."""
    path = check_readable(path)
    with reading(path):
        if path.suffix.lower() in ARROW:
            yield from _arrow_chunks(path, n_rows, columns)
        elif path.suffix.lower() in JSON_LINES:
            yield from (_selected(frame, columns, path) for frame in _json_chunks(path, n_rows))
        else:
            with open_input(path, "r") as stream:
                dialect = find_dialect(stream, path)
                first = first_row(stream, dialect) if header else None
                for frame in parsed(stream, path, dialect, first, n_rows):
                    frame.columns = range(frame.shape[1]) if first is None else first
                    yield _selected(frame, columns, path)


class Dialect(NamedTuple):
    """What divides cells, what precedes decimals, and the first rows."""

    delimiter: str
    decimal: str
    rows: list[list[str]]


def find_dialect(stream: IO[str], path: Path) -> Dialect:
    """Look at the first rows: `.tsv` has tabs, else the first of , ; tab | that divides them equally is the delimiter.

    One that leaves numbers with decimal commas, or quotes at the beginning of cells only, goes before.
    """
    start = stream.read(_LOOKED_AT)
    stream.seek(0)
    lines = start.splitlines(keepends=True)
    lines = lines[:-1] if len(start) == _LOOKED_AT and len(lines) > 1 else lines
    found = []
    for sign in "\t" if path.suffix.lower() == ".tsv" else ",;\t|":
        rows = [row for row in islice(csv.reader(lines, delimiter=sign), _ROWS_LOOKED_AT) if row]
        cells = [cell for row in rows[1:] or rows for cell in row]
        comma = sign != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
        torn = any('"' in cell.rstrip('"') and re.search(r'[,;\t|]"', cell) for cell in cells)
        if rows and len(rows[0]) > 1 and len({*map(len, rows)}) == 1:
            found.append((torn, not comma, Dialect(sign, "," if comma else ".", rows)))
    if found:
        return min(found, key=lambda one: one[:2])[2]
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = [row for row in islice(csv.reader(lines, delimiter=usual), _ROWS_LOOKED_AT) if row]
    if not rows:
        raise FileError(f"Cannot read {path}: it is empty.")
    return Dialect(usual, ".", rows)


def first_row(stream: IO[str], dialect: Dialect) -> list[str]:
    """Read the first row that is not empty."""
    reader = csv.reader(stream, delimiter=dialect.delimiter)
    return [cell.strip() for cell in next(filter(None, reader), [])]


def parsed(
    stream: IO[str], path: Path, dialect: Dialect, first: list[str] | None, n_rows: int | None,
    fractions: Collection[int] = (),
) -> Iterator[DataFrame]:  # fmt: skip
    """Yield the rows of a stream, behind its `first` row if that was read: text, but for columns of fractions."""
    import pandas as pd

    places = range(len(dialect.rows[0]))
    try:
        # Columns are numbered: of those that have the same name pandas would rename one.
        chunks = pd.read_csv(
            stream, sep=dialect.delimiter, decimal=dialect.decimal, header=None, names=places, index_col=False,
            dtype={place: "float64" if place in fractions else "str" for place in places}, keep_default_na=False,
            chunksize=n_rows or sys.maxsize,
        )  # fmt: skip
    except pd.errors.EmptyDataError:
        yield pd.DataFrame([], columns=places, dtype=str)
        return
    while True:
        with warnings.catch_warnings():
            # Where the first row has more cells than the header, pandas warns and drops the others.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                frame = next(chunks)
            except StopIteration:
                return
            except pd.errors.ParserWarning:
                expected = f"{len(places)} cells in every row of {path}, as in its first line"
                hint = f"Quote cells that have {dialect.delimiter!r}."
                raise InputError(f"Expected {expected}, got more. {hint}") from None
        yield frame


def _json_chunks(path: Path, n_rows: int | None) -> Iterator[DataFrame]:
    import pandas as pd

    with open_input(path, "r") as stream:
        rows = (_json_object(line, number, path) for number, line in enumerate(stream, start=1) if line.strip())
        some = list(islice(rows, n_rows))
        if not some:
            raise FileError(f"Cannot read {path}: it is empty.")
        while some:
            texts = [{name: cell_text(value) for name, value in row.items()} for row in some]
            yield pd.DataFrame(texts, dtype=str).fillna("")
            some = list(islice(rows, n_rows))


def _json_object(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:  # by itself, the error calls every line the first
        raise FileError(f"Cannot read {path}: {error.msg} on line {number}, column {error.colno}.") from None
    except (RecursionError, ValueError) as error:
        raise FileError(f"Cannot read {path}: {error} on line {number}.") from None
    if not isinstance(content, dict):
        raise InputError(f"Expected an object on line {number} of {path}, got {type(content).__name__}.")
    return content


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell; a missing one is empty."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return "" if is_missing_value(value) else str(value)


def _arrow_chunks(path: Path, n_rows: int | None, columns: Sequence[str] | None) -> Iterator[DataFrame]:
    with naming_extra("Reading Parquet and Feather tables"):
        from pyarrow import feather, parquet

    if path.suffix.lower() == ".feather":
        yield _selected(_plain_index(feather.read_table(path).to_pandas()), columns, path)
        return
    with parquet.ParquetFile(path) as file:
        known = file.schema_arrow.names
        wanted = None if columns is None or not {*columns} <= {*known} else list(columns)
        # A file without row groups has no batches.
        tables = [file.read(wanted)] if n_rows is None else file.iter_batches(n_rows, columns=wanted)
        for table in tables:
            yield _selected(_plain_index(table.to_pandas()), columns, path)


def _plain_index(frame: DataFrame) -> DataFrame:
    """Return a frame with its index, which pandas restores, as columns again: they are columns of the file."""
    from pandas import RangeIndex

    if isinstance(frame.index, RangeIndex):
        return frame
    return frame.reset_index(names=[name or "" for name in frame.index.names])


def _selected(frame: DataFrame, columns: Sequence[str] | None, path: Path) -> DataFrame:
    names = list(frame.columns)
    for name in columns or ():
        if name not in names:
            raise UnknownNameError(f"column of {path}", name, map(str, names))
    return frame if columns is None else frame[list(columns)]


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever pandas and pyarrow raise on damaged files into one error that names the file."""
    try:
        yield
    except (DualtError, MemoryError):
        raise
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except (ValueError, OSError, csv.Error, KeyError, TypeError, NotImplementedError, OverflowError) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split()).rstrip(".")
        # pandas counts the lines below the header.
        fields = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", reason)
        if fields is not None:
            wanted, line, got = map(int, fields.groups())
            raise InputError(f"Expected {wanted} cells in row {line - 1} of {path}, got {got}.") from None
        hint = " A quote is opened and never closed." if "EOF inside string" in reason else ""
        raise FileError(f"Cannot read {path}: {reason[:300]}.{hint} It may be damaged or cut off.") from None


def write_table(
    path: str | Path, frame: DataFrame, *, guarded: bool = False, header: bool = True, delimiter: str | None = None
) -> None:
    """Write a data frame by the ending of `path`, whole or not at all; with `guarded` cells, no text is a formula."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in TABLES:
        raise FileError(f"Expected a name that ends in {', '.join(TABLES)}, got {path.name!r}.")
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
        delimiter = delimiter or ("\t" if kind == ".tsv" else ",")
        # Python leaves a carriage return unquoted, where readers end the row.
        bare = any(isinstance(cell, str) and "\r" in cell for name in frame for cell in frame[name].tolist())
        quoting = csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL
        frame.to_csv(stream, sep=delimiter, index=False, header=header, lineterminator="\n", quoting=quoting)


def guard_cell(text: str) -> str:
    """Return `text`, with an apostrophe in front if a spreadsheet would run it as a formula.

    The rule, which the script of the review page follows too: a text whose first character, apostrophes and spaces
    aside, is one of ``= + - @``, a full-width form of these, a tab or a line break is guarded, unless it is a plain
    number such as ``-1``. `unguard_cell` undoes it for every text.

    Examples
    --------
    >>> guard_cell("=cmd|' /C calc'!A0")
    "'=cmd|' /C calc'!A0"
    >>> guard_cell("cat")
    'cat'
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguard_cell(text: str) -> str:
    """Return the text that `guard_cell` was given.

    Examples
    --------
    >>> unguard_cell("'-1")
    '-1'
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
