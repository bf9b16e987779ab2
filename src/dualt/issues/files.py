"""Label issues as tables and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualt.errors import FileError
from dualt.files import atomic_write, json_text
from dualt.io.tables import write_table
from dualt.issues.frames import GROUPS

if TYPE_CHECKING:
    from dualt.issues.label_issues import LabelIssues

# With more classes, the largest entries of a matrix stand for it: as many as one with this many classes has.
_MATRIX_CLASSES = 100
_COLUMNS = ("index", "given", "suggested", "probability_right", "suggested_probability", "group")


def issue_columns(issues: LabelIssues) -> dict[str, Sequence[Any]]:
    """Return the flagged labels, most suspect first, as columns: class names, row numbers, ids, texts and images."""
    rows, names = issues.indices, np.array(issues.class_names, dtype=object)
    scores = (issues.probability_right[rows], issues.suggested_probability[rows])
    found = (issues.row_numbers[rows], names[issues.given[rows]], names[issues.suggested[rows]])
    groups = np.array(GROUPS)[(issues.suggested == issues.given)[rows].astype(np.intp)]
    values = (*found, *(score.astype(np.float64).round(6) for score in scores), groups)
    columns = dict(zip(_COLUMNS, values, strict=True))
    more = {"id": issues.row_ids, "text": issues.texts, "image": issues.images}
    described = {name: [each[row] for row in rows.tolist()] for name, each in more.items() if each is not None}
    return {name: column.tolist() for name, column in columns.items()} | described


def issue_rows(issues: LabelIssues) -> Iterator[dict[str, Any]]:
    """Yield the flagged labels, most suspect first."""
    columns = issue_columns(issues)
    yield from (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def counted_pairs(issues: LabelIssues) -> dict[str, Any]:
    """Return the expected numbers of examples by given label and true class.

    `by_pair[given][true]` for up to 100 classes. For more, where all pairs would fill hundreds of megabytes,
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


def save_issues(path: str | Path, issues: LabelIssues, level: float = 0.95) -> None:
    """Write the flagged labels as a `.csv` or `.parquet` table, or everything in `to_dict` as `.json`."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        with atomic_write(path) as stream:
            stream.write(f"{json_text(issues.to_dict(level))}\n")
    elif path.suffix.lower() in (".csv", ".parquet"):
        import pandas as pd

        write_table(path, pd.DataFrame(issue_columns(issues)), guarded=True)
    else:
        raise FileError(f"Expected a name that ends in .csv, .json, .parquet, got {path.name!r}.")
