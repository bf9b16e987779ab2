"""Parquet tables, decoded a row group or less at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, naming_extra
from dualt.files import check_expansion, check_readable
from dualt.io.parquet_pages import ROWS_OF_DELTAS, check_pages
from dualt.io.tables import NotNumbersError, Table
from dualt.label_arrays import as_text_array
from dualt.rows.floats import working_dtype

# What a label takes while it is decoded and turned into an array.
_LABEL_BYTES = 24
# Row groups up to this size are decoded whole, larger ones in batches.
_GROUP_BYTES, _BATCH_BYTES = 1 << 27, 1 << 24


@dataclass(frozen=True)
class ParquetTable(Table):
    """A Parquet file: the number and the types of its rows are known before any is decoded."""

    names: tuple[str, ...]
    n_rows: int
    types: tuple[Any, ...]

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Read the file's description of itself."""
        with opened(path) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
        return cls(path, tuple(schema.names), len(schema.names), n_rows, tuple(schema.types))

    def dtype(self, places: Sequence[int]) -> np.dtype[Any]:
        """Return the float type in which these columns are read; refuse any that has no numbers."""
        return working_dtype(np.result_type(*map(self._number_type, places)))

    def _number_type(self, place: int) -> np.dtype[Any]:
        try:
            dtype: np.dtype[Any] = np.dtype(self.types[place].to_pandas_dtype())
        except (NotImplementedError, TypeError):
            dtype = np.dtype(object)
        if dtype.kind not in "fiub":
            name = self.names[place]
            raise NotNumbersError(f"Expected numbers in column {name!r} of {self.path}, got {self.types[place]}.")
        return dtype

    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield one portion of the rows after another."""
        dtype = self.dtype(numbers) if len(numbers) else np.dtype(float)
        places = [*numbers] if label is None else [*numbers, label]
        number_bytes = dtype.itemsize * len(numbers)
        check_expansion(self.n_rows * (number_bytes + (0 if label is None else _LABEL_BYTES)), self.path)
        for n_rows, column_of in self._portions(places, number_bytes or dtype.itemsize):
            with _explained(self.path):
                values = np.empty((n_rows, len(numbers)), dtype)
                for column, place in zip(values.T, numbers, strict=True):
                    column[:] = column_of(place).to_numpy(zero_copy_only=False)  # a missing number is NaN
                labels = np.empty(0) if label is None else self._labels(column_of(label))
            yield values, labels
            del values, labels  # before the next portion is made

    def _portions(self, places: list[int], row_bytes: int) -> Iterator[tuple[int, Callable[[int], Any]]]:
        """Yield the length of one portion of the rows after another, and what returns a column of it by its place.

        A row group that fits memory is decoded a column at a time. Decoding all columns side by side takes rows as
        few as one likes, but has a page of each in memory: megabytes times columns.
        """
        names = [self.names[place] for place in places]
        with opened(self.path, places) as file:
            if file.metadata.num_rows != self.n_rows:
                raise FileError(
                    f"Expected {self.n_rows:,} rows in {self.path} as before, got {file.metadata.num_rows:,}:"
                    " it changed while it was read."
                )
            lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            if sum(lengths) != self.n_rows:
                raise FileError(f"Expected {self.n_rows:,} rows in {self.path}, got {sum(lengths):,}: it is damaged.")
            batch_rows = max(_BATCH_BYTES // row_bytes, 1)
            if any(_is_text(file, place) for place in places):
                batch_rows = min(batch_rows, ROWS_OF_DELTAS)
            for group, n_rows in enumerate(lengths):
                if 0 < n_rows * row_bytes <= _GROUP_BYTES:
                    yield n_rows, partial(self._column_of_group, file, group, n_rows)
                elif n_rows:
                    for batch in file.iter_batches(batch_rows, [group], names):
                        yield len(batch), partial(self._pick, batch)

    def _column_of_group(self, file: Any, group: int, n_rows: int, place: int) -> Any:
        if _is_text(file, place):
            column = self._different_texts(file, group, place)
        else:
            columns = file.read_row_group(group, columns=[self.names[place]], use_threads=False)
            column = self._pick(columns, place).combine_chunks()
        if len(column) != n_rows:
            raise FileError(f"Expected {n_rows:,} rows in a group of {self.path}, got {len(column):,}: it is damaged.")
        return column

    def _different_texts(self, file: Any, group: int, place: int) -> Any:
        """Return what `read_dictionary` would: the different texts and a number per row, from a few rows at a time."""
        import pyarrow as pa

        found, n_bytes = [], 0
        for batch in file.iter_batches(ROWS_OF_DELTAS, [group], [self.names[place]]):
            found.append(self._pick(batch, place).dictionary_encode())
            n_bytes += found[-1].nbytes
            check_expansion(n_bytes, self.path)
        return pa.chunked_array(found).unify_dictionaries().combine_chunks()

    def _pick(self, columns: Any, place: int) -> Any:
        """Return a column of a selection by its place in the file: two may have the same name."""
        import pyarrow as pa

        name = self.names[place]
        same = [number for number, other in enumerate(columns.schema.names) if other == name]
        column = columns.column(same[self.names[:place].count(name)])
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)  # Arrow believes the numbers of texts
        return column

    def read_texts(self, place: int) -> list[str]:
        """Return one column as texts; a missing one is empty."""
        texts: list[str] = []
        check_expansion(self.n_rows * _LABEL_BYTES, self.path)
        for _, column_of in self._portions([place], _LABEL_BYTES):
            with _explained(self.path):
                column = column_of(place)
                if hasattr(column, "dictionary"):  # rows of the same text share it
                    different = [*map(str, column.dictionary.to_pylist()), ""]
                    texts += [different[code] for code in column.indices.fill_null(-1).to_pylist()]
                else:
                    texts += ["" if value is None else str(value) for value in column.to_pylist()]
        return texts

    def may_miss(self, place: int) -> bool:
        """Tell by the file's statistics whether a label of this column may be missing."""
        with opened(self.path, [place]) as file:
            found = [each.statistics for each in _descriptions(file, self.path, place)]
        return not found or any(
            each is None or not each.has_null_count or each.null_count or not each.has_min_max
            or each.min in ("", b"") or isinstance(each.min, float)
            for each in found
        )  # fmt: skip

    def _labels(self, column: Any) -> NDArray[Any]:
        """Return labels as `labels_of` does: a missing one is NaN among numbers, else the empty text."""
        import pyarrow as pa

        if hasattr(column, "dictionary") and pa.types.is_string(column.dictionary.type):
            texts = as_text_array([*column.dictionary.to_pylist(), ""])
            check_expansion(self.n_rows * texts.itemsize, self.path)
            labels: NDArray[Any] = texts[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
            return labels
        values = column.dictionary_decode() if hasattr(column, "dictionary") else column
        labels = np.asarray(values.to_numpy(zero_copy_only=False))
        if labels.dtype.kind != "O" or not values.null_count:
            return labels
        return np.array(["" if value is None else str(value) for value in labels])


def check_described(file: Any, path: Path, groups: Iterable[int], names: Sequence[str] | None = None) -> None:
    """Read a row of each group: a damaged description of a column is told then; asked for, it would end the process."""
    with _explained(path):
        for group in groups:
            next(file.iter_batches(1, [group], names), None)


@contextmanager
def opened(path: Path, places: Sequence[int] = ()) -> Iterator[Any]:
    """Open a Parquet file, memory-mapped, to read columns; whatever is wrong with it becomes a `FileError`.

    Texts are read as the different ones and a number per row: repeated, they may be beyond any memory.
    """
    with naming_extra("Reading Parquet tables"):
        import pyarrow.parquet as pq
    with _explained(path):
        with pq.ParquetFile(check_readable(path), memory_map=True) as file:
            metadata, texts = file.metadata, []
            if places:
                check_pages(path)
                texts = [file.schema_arrow.names[place] for place in places if _has_texts_to_number(file, path, place)]
        with pq.ParquetFile(check_readable(path), metadata=metadata, memory_map=True, read_dictionary=texts) as file:
            yield file


def _has_texts_to_number(file: Any, path: Path, place: int) -> bool:
    """Tell whether a column has texts, but none stored as what is new after the one before: Arrow cannot number it."""
    if not _is_text(file, place):
        return False
    encodings = [encoding for each in _descriptions(file, path, place) for encoding in each.encodings]
    return not any(encoding.startswith("DELTA") for encoding in encodings)


def _is_text(file: Any, place: int) -> bool:
    from pyarrow import types

    type_ = file.schema_arrow.types[place]
    return any(is_(type_) for is_ in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def _descriptions(file: Any, path: Path, place: int) -> list[Any]:
    """Return what the file says of a column, for each row group; nothing if it has no single column of that name."""
    name, schema, groups = file.schema_arrow.names[place], file.metadata.schema, range(file.num_row_groups)
    leaves = [leaf for leaf in range(len(schema)) if schema.column(leaf).path == name]
    if len(leaves) != 1:
        return []
    check_described(file, path, groups, [name])
    return [file.metadata.row_group(group).column(leaves[0]) for group in groups]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise FileError(f"Cannot read {path} as Parquet: {str(error).rstrip('.')}.") from None
