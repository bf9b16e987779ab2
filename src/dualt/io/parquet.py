"""Parquet files as blocks: decoded a row group or less at a time, never whole in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError, LabelsError, UnknownNameError, naming_extra
from dualt.io.arrays import check_readable
from dualt.io.load import choose_columns, load_labels
from dualt.labels import as_label_array
from dualt.rows.blocks import Rows
from dualt.rows.floats import working_dtype
from dualt.validation import check_same_length

# Row groups up to this size are decoded whole, larger ones in batches.
_GROUP_BYTES, _BATCH_BYTES = 1 << 27, 1 << 24


@dataclass(frozen=True)
class ParquetBlock:
    """The rows of a Parquet file; labels come from its column `label`, or from the file `labels`."""

    path: Path
    columns: tuple[str, ...]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    label: str | None
    labels: Path | None = None

    @classmethod
    def open(
        cls, path: Path, label: str | None, labels: Path | None = None, pattern: str | None = None
    ) -> tuple[ParquetBlock, tuple[str, ...] | None]:
        """Return the block and its class names, as the file's own description has them."""
        with _opened(path) as file:
            schema, n_samples = file.schema_arrow, file.metadata.num_rows
        names = tuple(schema.names)
        if len(set(names)) < len(names):
            raise InputError(f"Expected columns of different names in {path}, got {', '.join(names)}.")
        exclude = [label] if label is not None and labels is None else []
        for name in exclude:
            if name not in names:
                raise UnknownNameError(f"column of {path}", name, names)
        places, class_names = choose_columns(path, names, len(names), exclude, pattern)
        types = [_number_type(schema.field(place), path) for place in places]
        block = cls(
            path,
            tuple(names[place] for place in places),
            (n_samples, len(places)),
            working_dtype(np.result_type(*types)),
            label,
            labels,
        )
        return block, class_names

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def read(self) -> Iterator[Rows]:
        """Yield (probabilities, labels), some rows at a time."""
        apart = None if self.labels is None else as_label_array(load_labels(self.labels, column=self.label))
        if apart is not None:
            check_same_length(self.shape[0], len(apart))
        start = 0
        for n_rows, column in self._portions([*self.columns, *self._own_label]):
            probs = np.empty((self.shape[1], n_rows), self.dtype)
            for values, name in zip(probs, self.columns, strict=True):
                values[:] = column(name).to_numpy(zero_copy_only=False)  # a missing number is NaN, refused when read
            given = self._labels_of(column, start) if apart is None else apart[start : start + n_rows]
            yield probs.T, given
            del probs, given  # before the next portion is made
            start += n_rows

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone, which leaves the probabilities undecoded."""
        if self.labels is not None:
            yield as_label_array(load_labels(self.labels, column=self.label))
            return
        start = 0
        for n_rows, column in self._portions(self._own_label):
            yield self._labels_of(column, start)
            start += n_rows

    @property
    def _own_label(self) -> list[str]:
        return [self.label] if self.label is not None and self.labels is None else []

    def _portions(self, columns: list[str]) -> Iterator[tuple[int, Callable[[str], Any]]]:
        """Yield the length of one portion of the rows after another, and what returns a column of it by name.

        A row group that fits memory is decoded a column at a time. Decoding all columns side by side takes rows as
        few as one likes, but has a page of each in memory: megabytes times columns.
        """
        row_bytes = self.dtype.itemsize * self.shape[1]
        with _opened(self.path) as file:
            if file.metadata.num_rows != self.shape[0]:
                raise FileError(
                    f"Expected {self.shape[0]:,} rows in {self.path} as before, got {file.metadata.num_rows:,}:"
                    " it changed while it was read."
                )
            lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            if sum(lengths) != self.shape[0]:
                raise FileError(f"Expected {self.shape[0]:,} rows in {self.path}, got {sum(lengths):,}: it is damaged.")
            for group, n_rows in enumerate(lengths):
                if 0 < n_rows * row_bytes <= _GROUP_BYTES:
                    yield n_rows, partial(self._column_of_group, file, group, n_rows)
                elif n_rows:
                    for batch in file.iter_batches(max(_BATCH_BYTES // row_bytes, 1), [group], columns):
                        yield len(batch), batch.column

    def _column_of_group(self, file: Any, group: int, n_rows: int, name: str) -> Any:
        with _explained(self.path):
            column = file.read_row_group(group, columns=[name], use_threads=False).column(0).combine_chunks()
        if len(column) != n_rows:
            raise FileError(f"Expected {n_rows:,} rows in a group of {self.path}, got {len(column):,}: it is damaged.")
        return column

    def _labels_of(self, column_of: Callable[[str], Any], start: int) -> NDArray[Any]:
        column = column_of(str(self.label))
        if column.null_count:
            row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise LabelsError(f"Expected a label in every row of {self.path}, got none at row {row}. Drop that row.")
        values = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
        return as_label_array(values.to_numpy(zero_copy_only=False))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file, memory-mapped; whatever is wrong with it becomes a `FileError`."""
    with naming_extra("Reading Parquet tables"):
        import pyarrow.parquet as pq
    with _explained(path), pq.ParquetFile(check_readable(path), memory_map=True) as file:
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


def _number_type(field: Any, path: Path) -> np.dtype[Any]:
    """Return NumPy's type of a column of numbers."""
    try:
        dtype: np.dtype[Any] = np.dtype(field.type.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        dtype = np.dtype(object)
    if dtype.kind not in "fiub":
        raise InputError(
            f"Expected numbers in column {field.name!r} of {path}, got {field.type}. Name the columns of"
            " probabilities with --probs-columns, or the column of labels with --label."
        )
    return dtype
