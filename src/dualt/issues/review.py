"""Decisions of a review, read from the page's CSV or the export of a labelling tool."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dualt.errors import FileError, InputError, LabelsError
from dualt.files import open_input
from dualt.io.cells import find_delimiter, is_row_number, unguard_cell
from dualt.io.tables import JSON_LINES
from dualt.issues.exchange import read_answers
from dualt.validation import class_name

HEADER = ("index", "old", "new")


@dataclass(frozen=True)
class Decision:
    """A person looked at example `index`, labelled `old`, and says that its class is `new`.

    `id` is what the example is called, and `labels` the digest of all labels at that time; both are empty if the
    review does not tell. `line` says where in the review that is, and `unit` what is counted there.
    """

    index: int
    old: str
    new: str
    line: int
    id: str = ""
    labels: str = ""
    unit: str = "line"

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"{self.unit} {self.line}"


def read_review(path: str | Path) -> list[Decision]:
    """Read a CSV with the columns ``index,old,new`` and perhaps ``id,labels``, as the report page writes it.

    Other columns are ignored. Cells that were guarded against spreadsheets (`dualt.io.cells`) come back as they
    were. A row whose new label equals the old one is a label that was looked at and kept. A `.json` or `.jsonl` file is
    the export of a labelling tool; see `dualt.issues.exchange`.

    Raises
    ------
    FileError
        If the file cannot be read.
    InputError
        If it is not such a table, or decides an example in two ways; the message gives the line.
    """
    path = Path(path)
    decisions: dict[int, Decision] = {}
    for decision in _exported(path) if path.suffix.lower() in (".json", *JSON_LINES) else _listed(path):
        first = decisions.setdefault(decision.index, decision)
        if (first.old, first.new, first.id) != (decision.old, decision.new, decision.id):
            raise InputError(
                f"Expected one decision per example, got two for example {decision.index}, on {first.where}"
                f" and {decision.where} of {path}. Delete one of the two."
            )
    return list(decisions.values())


def _exported(path: Path) -> Iterator[Decision]:
    for number, task in read_answers(path):
        index, texts = str(task["index"]), {name: _told(task.get(name)) for name in ("old", "new", "labels")}
        if not is_row_number(index):
            raise InputError(f"Expected a row number as index in task {number} of {path}, got {index[:40]!r}.")
        # Tools that number their tasks call that number id.
        called = str(task.get("example", task.get("id")) or "")
        yield Decision(int(index), line=number, id=called, unit="task", **texts)


def _told(value: Any) -> str:
    return "" if value is None else class_name(value)


def _listed(path: Path) -> Iterator[Decision]:
    try:
        with open_input(path, "r") as stream:
            yield from _decisions(stream, path)
    except UnicodeDecodeError as error:
        raise InputError(f"Expected {path} to be UTF-8 text: {error}. Save the review as UTF-8.") from None
    except csv.Error as error:
        raise InputError(f"Expected {path} to be a CSV file: {error}.") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error


def _decisions(stream: IO[str], path: Path) -> Iterator[Decision]:
    reader = csv.reader(stream, strict=True, delimiter=find_delimiter(stream))
    header = next(reader, [])
    names = [cell.strip().lower() for cell in header]
    if not {*HEADER} <= {*names}:
        raise InputError(
            f"Expected the header {','.join(HEADER)} on line 1 of {path}, got {','.join(header)!r}."
            " Pass the file that the report page's download button gave."
        )
    line = reader.line_num + 1
    for cells in reader:
        decision = _decision(names, cells, line, path) if cells else None
        # A tool's table has all tasks; the page's has those that were decided.
        if decision is not None and (decision.new or "example" not in names):
            yield decision
        line = reader.line_num + 1


def _decision(names: list[str], cells: list[str], line: int, path: Path) -> Decision:
    if len(cells) != len(names):
        raise InputError(f"Expected the cells {', '.join(names)} on line {line} of {path}, got {len(cells)}.")
    content = dict(zip(names, cells, strict=True))
    index = content["index"].strip()
    if not is_row_number(index):
        raise InputError(f"Expected a row number as index on line {line} of {path}, got {content['index'][:40]!r}.")
    texts = {name: unguard_cell(content[name]) for name in ("old", "new")}
    called = unguard_cell(content.get("example", content.get("id", "")))
    return Decision(int(index), line=line, labels=content.get("labels", "").strip(), id=called, **texts)


def decided_labels(
    decisions: Sequence[Decision], given: Sequence[str], ids: Sequence[Any] | None = None
) -> dict[int, str]:
    """Return the label that was decided for each reviewed row, by row number.

    An example is found by its id if the review has one and `ids` are passed, else by its row number, which also tells
    examples of one id apart; of ids that are gone nothing is said. Its given label, a class name, must be the old one,
    or the new one if the review was applied.

    Raises
    ------
    LabelsError
        If a label is neither: the review was made for other labels.
    """
    rows: dict[str, list[int]] = {}
    for row, each in enumerate(ids or ()):
        rows.setdefault(str(each), []).append(row)
    found = {}
    for decision in decisions:
        row = decision.index
        if ids is not None and decision.id:
            places = rows.get(decision.id, [])
            if not places:
                continue
            if row not in places and len(places) > 1:
                raise LabelsError(
                    f"Expected one example of the id {decision.id!r} on {decision.where} of the review, which is no"
                    f" longer example {row}, got {len(places)}. Rows that move need ids of their own."
                )
            row = row if row in places else places[0]
        now = given[row] if row < len(given) else "no such row"
        if now not in (decision.old, decision.new):
            raise LabelsError(
                f"Expected example {decision.id or decision.index} to be labelled {decision.old!r} or {decision.new!r},"
                f" as on {decision.where} of the review, got {now!r}. The review was made for other labels."
            )
        found[row] = decision.new
    return found
