"""Label issues as tables and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dualt.errors import FileError, naming_extra
from dualt.files import atomic_write, json_text
from dualt.io.cells import guard_cell, write_rows

if TYPE_CHECKING:
    from dualt.issues.label_issues import LabelIssues

# Numbers become Python's so many rows at a time, which takes a few megabytes.
_AT_A_TIME = 1 << 14
# A matrix of more classes is told by its largest entries: as many as one of this many classes has.
_MATRIX_CLASSES = 100
_COLUMNS = ("index", "given", "suggested", "probability_right", "suggested_probability")


def issue_rows(issues: LabelIssues) -> Iterator[dict[str, Any]]:
    """Yield the flagged labels, most suspect first, with class names, under the row numbers of the table."""
    names, indices, numbers = issues.class_names, issues.indices, issues.row_numbers
    more = described(issues)
    for low in range(0, len(indices), _AT_A_TIME):
        rows = indices[low : low + _AT_A_TIME]
        scores = (issues.given, issues.suggested, issues.probability_right, issues.suggested_probability)
        columns = (rows.tolist(), *(column[rows].tolist() for column in (numbers, *scores)))
        for row, index, given, suggested, right, probability in zip(*columns, strict=True):
            cells = (index, names[given], names[suggested], round(right, 6), round(probability, 6))
            yield dict(zip(_COLUMNS, cells, strict=True)) | {name: values[row] for name, values in more.items()}


def counted_pairs(issues: LabelIssues) -> dict[str, Any]:
    """Return the expected numbers of examples by given label and true class.

    `by_pair[given][true]` for up to 100 classes. For more, of which all pairs would fill hundreds of megabytes,
    `largest_pairs`: the ten thousand pairs of different classes with the largest numbers, largest first.
    """
    n_classes, names = len(issues.class_names), issues.class_names
    if n_classes <= _MATRIX_CLASSES:
        return {"by_pair": issues.by_pair.tolist()}
    wrong = issues.by_pair.copy()
    np.fill_diagonal(wrong, 0)
    numbers = wrong.ravel()
    largest = np.argpartition(numbers, -(_MATRIX_CLASSES**2))[-(_MATRIX_CLASSES**2) :]
    places = [place for place in largest[np.lexsort((largest, -numbers[largest]))].tolist() if numbers[place] > 0]
    pairs = [(*divmod(place, n_classes), float(numbers[place])) for place in places]
    return {
        "largest_pairs": [
            {"given": names[given], "true": names[true], "expected_count": number} for given, true, number in pairs
        ]
    }


def described(issues: LabelIssues) -> dict[str, Sequence[str]]:
    """Return what is known of the examples besides their labels: columns of ids, texts and images."""
    columns = {"id": issues.row_ids, "text": issues.texts, "image": issues.images}
    return {name: column for name, column in columns.items() if column is not None}


def save_issues(path: str | Path, issues: LabelIssues, level: float | None = None) -> None:
    """Write the flagged labels as a `.csv` or `.parquet` table, or with all that `to_dict` has as `.json`."""
    path = Path(path)
    writers: dict[str, Callable[[IO[Any], LabelIssues], None]] = {
        ".csv": _write_csv,
        ".json": partial(_write_json, level=level),
        ".parquet": _write_parquet,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise FileError(f"Expected a name that ends in {', '.join(writers)}, got {path.name!r}.")
    with atomic_write(path, "wb" if write is _write_parquet else "w") as stream:
        write(stream, issues)


def _write_csv(stream: IO[str], issues: LabelIssues) -> None:
    """Write a table in which no class name can act as a formula of a spreadsheet."""
    write_rows(stream, [(*_COLUMNS, *described(issues))])
    rows = (row.values() for row in issue_rows(issues))
    write_rows(stream, ([guard_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows))


def _write_json(stream: IO[str], issues: LabelIssues, level: float | None) -> None:
    stream.write(json_text(issues.to_dict(level)))
    stream.write("\n")


def _write_parquet(stream: IO[bytes], issues: LabelIssues) -> None:
    with naming_extra("A Parquet file"):
        import pyarrow as pa
        from pyarrow import parquet

    rows, names = list(issue_rows(issues)), (*_COLUMNS, *described(issues))
    parquet.write_table(pa.table({name: [row[name] for row in rows] for name in names}), stream)
