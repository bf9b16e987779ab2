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

from dualt.errors import FileError, InputError, naming_extra
from dualt.files import check_expansion, check_readable
from dualt.io.tables import Table
from dualt.labels import as_text_array
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
        with _opened(path) as file:
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
            raise InputError(
                f"Expected numbers in column {self.names[place]!r} of {self.path}, got {self.types[place]}. Drop that"
                " column, name those of probabilities with --probs, or that of labels with --label."
            )
        return dtype

    def read(self, numbers: Sequence[int], label: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield one portion of the rows after another."""
        dtype = self.dtype(numbers) if len(numbers) else np.dtype(float)
        places = [*numbers] if label is None else [*numbers, label]
        number_bytes = dtype.itemsize * len(numbers)
        check_expansion(self.n_rows * (number_bytes + (0 if label is None else _LABEL_BYTES)), self.path)
        for n_rows, column_of in self._portions(places, number_bytes or dtype.itemsize):
            values = np.empty((n_rows, len(numbers)), dtype)
            for column, place in zip(values.T, numbers, strict=True):
                column[:] = column_of(place).to_numpy(zero_copy_only=False)  # a missing number is NaN
            yield values, np.empty(0) if label is None else self._labels(column_of(label))
            del values  # before the next portion is made

    def _portions(self, places: list[int], row_bytes: int) -> Iterator[tuple[int, Callable[[int], Any]]]:
        """Yield the length of one portion of the rows after another, and what returns a column of it by its place.

        A row group that fits memory is decoded a column at a time. Decoding all columns side by side takes rows as
        few as one likes, but has a page of each in memory: megabytes times columns.
        """
        names = [self.names[place] for place in places]
        with _opened(self.path, names) as file:
            if file.metadata.num_rows != self.n_rows:
                raise FileError(
                    f"Expected {self.n_rows:,} rows in {self.path} as before, got {file.metadata.num_rows:,}:"
                    " it changed while it was read."
                )
            lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            if sum(lengths) != self.n_rows:
                raise FileError(f"Expected {self.n_rows:,} rows in {self.path}, got {sum(lengths):,}: it is damaged.")
            for group, n_rows in enumerate(lengths):
                if 0 < n_rows * row_bytes <= _GROUP_BYTES:
                    yield n_rows, partial(self._column_of_group, file, group, n_rows)
                elif n_rows:
                    for batch in file.iter_batches(max(_BATCH_BYTES // row_bytes, 1), [group], names):
                        yield len(batch), partial(self._pick, batch)

    def _column_of_group(self, file: Any, group: int, n_rows: int, place: int) -> Any:
        with _explained(self.path):
            columns = file.read_row_group(group, columns=[self.names[place]], use_threads=False)
            column = self._pick(columns, place).combine_chunks()
        if len(column) != n_rows:
            raise FileError(f"Expected {n_rows:,} rows in a group of {self.path}, got {len(column):,}: it is damaged.")
        return column

    def _pick(self, columns: Any, place: int) -> Any:
        """Return a column of a selection by its place in the file: two may have the same name."""
        name = self.names[place]
        same = [number for number, other in enumerate(columns.schema.names) if other == name]
        return columns.column(same[self.names[:place].count(name)])

    def read_texts(self, place: int) -> list[str]:
        """Return one column as texts; a missing one is empty."""
        texts: list[str] = []
        check_expansion(self.n_rows * _LABEL_BYTES, self.path)
        for _, column_of in self._portions([place], _LABEL_BYTES):
            column = column_of(place)
            with _explained(self.path):
                if hasattr(column, "dictionary"):  # rows of the same text share it
                    different = [*map(str, column.dictionary.to_pylist()), ""]
                    texts += [different[code] for code in column.indices.fill_null(-1).to_pylist()]
                else:
                    texts += ["" if value is None else str(value) for value in column.to_pylist()]
        return texts

    def may_miss(self, place: int) -> bool:
        """Tell by the file's statistics whether a label of this column may be missing."""
        with _opened(self.path) as file:
            schema, groups = file.metadata.schema, range(file.num_row_groups)
            leaves = [at for at in range(len(schema)) if schema.column(at).path == self.names[place]]
            if len(leaves) != 1:
                return True
            check_described(file, self.path, groups, [self.names[place]])
            found = [file.metadata.row_group(group).column(leaves[0]).statistics for group in groups]
            return any(
                each is None or not each.has_null_count or each.null_count or not each.has_min_max
                or each.min in ("", b"") or isinstance(each.min, float)
                for each in found
            )  # fmt: skip

    def _labels(self, column: Any) -> NDArray[Any]:
        """Return labels as `labels_of` does: a missing one is the empty text, and NaN among numbers."""
        import pyarrow as pa

        if hasattr(column, "dictionary") and pa.types.is_string(column.dictionary.type):
            with _explained(self.path):
                texts = as_text_array([*column.dictionary.to_pylist(), ""])
            check_expansion(self.n_rows * texts.itemsize, self.path)
            labels: NDArray[Any] = texts[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
            return labels
        values = column.dictionary_decode() if hasattr(column, "dictionary") else column
        labels = np.asarray(values.to_numpy(zero_copy_only=False))
        if labels.dtype.kind != "O" or not values.null_count:
            return labels
        there = values.drop_null().to_pylist()
        empty = float("nan") if all(isinstance(value, bool) for value in there) else ""
        return np.array([empty if value is None else value for value in labels])


def check_described(file: Any, path: Path, groups: Iterable[int], names: Sequence[str] | None = None) -> None:
    """Read a row of each group: a damaged description of a column is told then; asked for, it would end the process."""
    with _explained(path):
        for group in groups:
            next(file.iter_batches(1, [group], names), None)


@contextmanager
def _opened(path: Path, names: Sequence[str] = ()) -> Iterator[Any]:
    """Open a Parquet file, memory-mapped; whatever is wrong with it becomes a `FileError`.

    Texts of the columns `names` are read as the different ones and a number per row: repeated, they may be beyond
    any memory.
    """
    with naming_extra("Reading Parquet tables"):
        import pyarrow.parquet as pq
    with _explained(path), pq.ParquetFile(check_readable(path), memory_map=True, read_dictionary=[*names]) as file:
        yield file


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except FileError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise FileError(f"Cannot read {path} as Parquet: {str(error).rstrip('.')}.") from None
