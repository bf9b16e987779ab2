"""Tables: columns of numbers, of labels and of texts, by place or by name."""

from __future__ import annotations

import csv
import json
import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import DualtError, FileError, InputError, LabelsError, UnknownNameError, naming_extra
from dualt.files import atomic_write, check_readable, json_text, not_utf8, open_input
from dualt.label_arrays import as_text_array, is_missing, is_missing_value

if TYPE_CHECKING:
    from pandas import DataFrame

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".feather")
LABEL_COLUMNS = ("noisy_labels", "noisy_label", "labels", "label", "given", "class", "target", "y")
# How data frames name the column of their index.
INDEX_COLUMNS = ("", "__index_level_0__")
# How much of a file is looked at to find its delimiter.
_LOOKED_AT, _ROWS_LOOKED_AT = 1 << 16, 50
# The script of the review page has the same expression (report/templates/csv.js).
_FORMULA = re.compile(r"[' ]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
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
    arrow, lines = path.suffix.lower() in (".parquet", ".feather"), path.suffix.lower() in (".jsonl", ".ndjson")
    with _reading(path):
        if not (arrow or lines):
            yield from _text_chunks(path, n_rows, columns, header)
        else:
            for frame in (_arrow_chunks if arrow else _json_chunks)(path, n_rows):
                yield _selected(frame, columns, path)


def _text_chunks(path: Path, n_rows: int | None, columns: Sequence[str] | None, header: bool) -> Iterator[DataFrame]:
    import pandas as pd

    with open_input(path, "r") as stream:
        delimiter = find_delimiter(stream, path)
        reader = csv.reader(stream, delimiter=delimiter)
        names = [name.strip() for name in next(filter(None, reader), [])] if header else None
        if header and not names:
            raise FileError(f"Cannot read {path}: it is empty.")
        options: dict[str, Any] = {} if names is None else {"names": range(len(names))}
        try:
            # The names are set below: pandas would rename those that occur twice.
            chunks = pd.read_csv(
                stream, sep=delimiter, header=None, index_col=False, dtype=str, keep_default_na=False,
                chunksize=n_rows or sys.maxsize, **options,
            )  # fmt: skip
        except pd.errors.EmptyDataError:
            yield _selected(pd.DataFrame([], columns=names, dtype=str), columns, path)
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
                    got = f"{len(names or ())} cells in every row of {path}, as in its first line, got more"
                    raise InputError(f"Expected {got}. Quote cells that contain {delimiter!r}.") from None
            if names is not None:
                frame.columns = names
            yield _selected(frame, columns, path)


def _json_chunks(path: Path, n_rows: int | None) -> Iterator[DataFrame]:
    import pandas as pd

    with open_input(path, "r") as stream:
        rows = (json_object(line, number, path) for number, line in enumerate(stream, start=1) if line.strip())
        while some := list(islice(rows, n_rows)):
            texts = [{name: cell_text(value) for name, value in row.items()} for row in some]
            yield pd.DataFrame(texts, dtype=str).fillna("")


def json_object(line: str, number: int, path: Path) -> dict[str, Any]:
    """Return the object on a line of a JSON-lines file."""
    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:  # which calls every line the first
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


def _arrow_chunks(path: Path, n_rows: int | None) -> Iterator[DataFrame]:
    with naming_extra("Reading Parquet and Feather tables"):
        from pyarrow import feather, parquet

    if path.suffix.lower() == ".feather":
        yield feather.read_table(path).to_pandas()
    elif n_rows is None:
        yield parquet.ParquetFile(path).read().to_pandas()
    else:
        yield from (batch.to_pandas() for batch in parquet.ParquetFile(path).iter_batches(n_rows))


def _selected(frame: DataFrame, columns: Sequence[str] | None, path: Path) -> DataFrame:
    names = list(frame.columns)
    for name in columns or ():
        if name not in names:
            raise UnknownNameError(f"column of {path}", name, map(str, names))
    return frame if columns is None else frame[list(columns)]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever pandas and pyarrow raise on damaged files into one error that names the file."""
    try:
        yield
    except (DualtError, MemoryError):
        raise
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except (ValueError, OSError, csv.Error, KeyError, TypeError, NotImplementedError) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split()).rstrip(".")
        hint = " A quote is opened and never closed." if "EOF inside string" in reason else ""
        raise FileError(f"Cannot read {path}: {reason[:300]}.{hint}") from None


def find_delimiter(stream: IO[str], path: Path) -> str:
    """Return the delimiter: a tab in `.tsv`, else the first of , ; tab | that divides the first rows equally."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    start = stream.read(_LOOKED_AT)
    stream.seek(0)
    lines = start.splitlines(keepends=True)
    lines = lines if len(start) < _LOOKED_AT else lines[:-1]
    for sign in ",;\t|":
        rows = [row for row in islice(csv.reader(lines, delimiter=sign), _ROWS_LOOKED_AT) if row]
        if rows and len(rows[0]) > 1 and len({*map(len, rows)}) == 1:
            return sign
    return ","


def write_table(path: str | Path, frame: DataFrame, *, guarded: bool = False, header: bool = True) -> None:
    """Write a data frame by the ending of `path`, whole or not at all; with `guarded` cells, no text is a formula."""
    path = Path(path)
    kind = path.suffix.lower()
    if guarded and kind in (".csv", ".tsv"):
        frame = frame.rename(columns=lambda name: guard_cell(str(name)))
        frame = frame.map(lambda cell: guard_cell(cell) if isinstance(cell, str) else cell)
    if kind in (".csv", ".tsv"):
        with atomic_write(path) as stream:
            frame.to_csv(stream, sep="\t" if kind == ".tsv" else ",", index=False, header=header, lineterminator="\n")
    elif kind in (".jsonl", ".ndjson"):
        with atomic_write(path) as stream:
            for row in frame.to_dict("records"):
                stream.write(f"{json_text(row, indent=None)}\n")
    elif kind in (".parquet", ".feather"):
        with naming_extra("Writing Parquet and Feather tables"):
            import pyarrow as pa
            from pyarrow import feather, parquet
        with atomic_write(path, "wb") as stream:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            parquet.write_table(table, stream) if kind == ".parquet" else feather.write_feather(table, stream)
    else:
        raise FileError(f"Expected a name that ends in {', '.join(ENDINGS)}, got {path.name!r}.")


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
