"""The file that labels came from, written again with other labels and nothing else changed."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, LabelsError, naming_extra
from dualt.files import atomic_write, open_input
from dualt.io.arrays import open_npz
from dualt.io.cells import guard_cell
from dualt.io.json_lines import JSON_LINES, value_span
from dualt.io.load import TABLES, label_place, open_table, save_labels
from dualt.io.parquet import check_described, opened
from dualt.io.tables import LABEL_COLUMNS
from dualt.io.text_table import DELIMITERS, TextTable, cell_spans
from dualt.label_arrays import is_missing


def save_corrected(
    target: str | Path,
    corrected: NDArray[Any],
    source: str | Path,
    given: NDArray[Any],
    *,
    column: str | None = None,
    header: bool | None = None,
) -> None:
    """Write `source` to `target` with the labels `corrected` in place of `given`.

    Of a table or an archive of the same format, every column, row and array comes back as it was: text to the
    character, except in the cells of changed labels. Of a file of labels alone, and of any file if the target is
    `.npy` or `.txt`, the labels are written; see `save_labels`.

    Parameters
    ----------
    target
        File to write.
    corrected, given
        The new and the old labels of all rows; `given` as `load_labels` returned them.
    source
        File that the labels were read from.
    column, header
        As they were passed to `load_labels`.
    """
    source, target = Path(source), Path(target)
    kind, wanted = source.suffix.lower(), target.suffix.lower()
    changed = np.flatnonzero((given != corrected) & ~is_missing(given)) if given.ndim == 1 else np.arange(len(given))
    if kind == wanted and kind in _WRITERS:
        _WRITERS[kind](_Job(source, target, given, corrected, changed, column, header))
    elif wanted in TABLES and kind in TABLES and open_table(source, column, header).n_columns > 1:
        raise FileError(f"Expected a name that ends in {kind} as {source.name}, got {target.name!r}.")
    else:
        if is_missing(given).any() and wanted != ".csv":
            raise LabelsError(f"Expected a label in every row of {source} for {target.name}. Write a {kind} file.")
        save_labels(target, corrected)


class _Job(NamedTuple):
    """The arguments of `save_corrected`, and the rows that change."""

    source: Path
    target: Path
    given: NDArray[Any]
    corrected: NDArray[Any]
    changed: NDArray[np.intp]
    column: str | None
    header: bool | None


def _write_text(job: _Job) -> None:
    """Replace cells of a table in text; a class is written as it is elsewhere in the column."""
    table = open_table(job.source, job.column, job.header)
    assert isinstance(table, TextTable)  # noqa: S101
    place = label_place(table, job.column)
    with open_input(job.source) as stream:
        text = stream.read().decode("utf-8")
    rows = cell_spans(text, table.delimiter)
    if table.header_lines:
        next(rows)
    spans = [row[place] for row in rows]
    _check_rows(len(spans), job.given, job.source)
    # Each cell as `csv` reads it, without its quotes.
    cells = ("".join(next(csv.reader([text[low:high]], delimiter=table.delimiter), [])) for low, high in spans)
    written = dict(zip(job.given.tolist(), cells, strict=True))
    parts, place = [], 0
    for row in job.changed.tolist():
        low, high = spans[row]
        label = job.corrected[row].item()
        cell = written.get(label, guard_cell(label) if isinstance(label, str) else str(label))
        parts += [text[place:low], _quoted(cell, text[low:high], table.delimiter)]
        place = high
    with atomic_write(job.target, "wb") as stream:
        stream.writelines(part.encode("utf-8") for part in (*parts, text[place:]))


def _quoted(cell: str, like: str, delimiter: str) -> str:
    needed = cell.startswith(('"', " ")) or any(sign in cell for sign in (delimiter, "\r", "\n"))
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if needed or like.startswith('"') else cell


def _write_json_lines(job: _Job) -> None:
    """Replace one value in each line of a changed label."""
    table = open_table(job.source)
    key = (table.names or ())[label_place(table, job.column)]
    with open_input(job.source) as stream:
        lines = [line.decode("utf-8") for line in stream]
    places = [number for number, line in enumerate(lines) if line.strip()]
    _check_rows(len(places), job.given, job.source)
    spans = [value_span(lines[number], key) for number in places]
    values = (span and lines[number][slice(*span)] for number, span in zip(places, spans, strict=True))
    written = dict(zip(job.given.tolist(), values, strict=True))
    for row in job.changed.tolist():
        line, span, label = lines[places[row]], spans[row], job.corrected[row].item()
        if span is None:
            raise FileError(f"Expected {key!r} in row {row} of {job.source}, got a line without it.")
        cell = written.get(label) or json.dumps(label, ensure_ascii=False)
        lines[places[row]] = line[: span[0]] + cell + line[span[1] :]
    with atomic_write(job.target, "wb") as stream:
        stream.writelines(line.encode("utf-8") for line in lines)


def _write_parquet(job: _Job) -> None:
    """Write the same row groups with the same schema and compression, the labels of one column replaced."""
    with naming_extra("Writing Parquet tables"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    table = open_table(job.source)
    place = label_place(table, job.column)
    with opened(job.source, range(table.n_columns)) as file, atomic_write(job.target, "wb") as out:
        schema, start = file.schema_arrow, 0
        _check_rows(file.metadata.num_rows, job.given, job.source)
        check_described(file, job.source, range(min(file.num_row_groups, 1)))
        compression = {
            part.path_in_schema: part.compression.lower().replace("uncompressed", "none")
            for part in map(file.metadata.row_group(0).column, range(file.metadata.num_columns))
        } if file.num_row_groups else "snappy"  # fmt: skip
        # Texts come numbered; the notes of the file, copied, have their types as they were.
        with pq.ParquetWriter(out, schema, compression=compression, store_schema=False) as writer:
            writer.add_key_value_metadata(file.metadata.metadata or {})
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                own = job.changed[slice(*np.searchsorted(job.changed, [start, start + len(rows)]))]
                if len(own):
                    old = rows.column(place)
                    values = old.to_pylist()
                    for row in own.tolist():
                        values[row - start] = _like(job.corrected[row].item(), values[row - start])
                    plain = old.type.value_type if pa.types.is_dictionary(old.type) else old.type
                    new = pa.array(values, plain)
                    new = new.dictionary_encode().cast(old.type) if plain is not old.type else new
                    rows = rows.set_column(place, schema.field(place), pa.chunked_array([new]))
                writer.write_table(rows, row_group_size=max(len(rows), 1))
                start += len(rows)


def _like(label: Any, old: Any) -> Any:
    """Return a label in the type of the one it replaces."""
    if isinstance(old, bool):
        return str(label) in ("True", "1", "1.0")  # beside missing ones they are read as texts
    return type(old)(label) if isinstance(old, (int, float, str)) else label


def _write_npz(job: _Job) -> None:
    """Copy the other arrays byte for byte."""
    with open_npz(job.source) as archive:
        wanted = (job.column,) if job.column else (*LABEL_COLUMNS, "arr_0")
        name = next((name for name in wanted if name in archive.names), archive.names[0])
        stored = archive.read(name).dtype
    same = stored if stored.kind != "U" else np.promote_types(stored, job.corrected.dtype)
    with (
        open_input(job.source) as stream,
        zipfile.ZipFile(stream) as old,
        atomic_write(job.target, "wb") as out,
        zipfile.ZipFile(out, "w") as new,
    ):
        for entry in old.infolist():
            if entry.filename != f"{name}.npy":
                new.writestr(entry, old.read(entry))
                continue
            with new.open(zipfile.ZipInfo(entry.filename, entry.date_time), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, job.corrected.astype(same, copy=False), allow_pickle=False)


def _check_rows(found: int, given: NDArray[Any], source: Path) -> None:
    if found != len(given):
        raise FileError(f"Expected {len(given):,} rows in {source} as before, got {found:,}: it changed.")


_WRITERS: dict[str, Callable[[_Job], None]] = {
    **dict.fromkeys(DELIMITERS, _write_text),
    **dict.fromkeys(JSON_LINES, _write_json_lines),
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
