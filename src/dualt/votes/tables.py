"""Votes in, of any shape: long and wide tables, arrays, lists, and exports of labelling tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError
from dualt.files import read_text
from dualt.io.tables import JSON_LINES, read_table

if TYPE_CHECKING:
    from pandas import DataFrame

Codes = NDArray[np.intp]

# Columns of a long table, by the names that crowd-kit and labelling tools give them, in this order of preference.
COLUMNS = {
    "item": ("item", "task", "id", "example", "_input_hash"),
    "annotator": ("annotator", "worker", "who", "user", "_annotator_id"),
    "label": ("label", "vote", "class", "choice"),
}


class Ballots(NamedTuple):
    """Votes as codes: `annotator[i]` said `vote[i]` of `item[i]`; the names of items, annotators and classes."""

    item: Codes
    annotator: Codes
    vote: Codes
    items: NDArray[Any]
    annotators: NDArray[Any]
    classes: NDArray[Any]
    n_repeated: int = 0


def as_ballots(
    votes: Any,
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    *,
    classes: Sequence[Any] | None = None,
    items: NDArray[Any] | None = None,
    shape: tuple[int, int] | None = None,
) -> Ballots:
    """Return votes as codes; `combine_votes` describes votes, columns and classes.

    Items are by default those of the table, as they first occur. `shape` is that of an array of probabilities, in which
    items and classes that are numbers are positions.
    """
    import pandas as pd

    long, rows = long_table(votes, item, annotator, label)
    label_codes, labels = _factorized(long["label"])
    said = [one != "" and not (isinstance(one, int) and one < 0) for one in labels]
    there = np.append(said, False)[label_codes]  # a missing value has the code -1
    if not there.any():
        raise LabelsError("Expected at least one vote, got none.")
    long, label_codes = long[there], label_codes[there]
    names = _class_names([one for one, is_vote in zip(labels, said, strict=True) if is_vote], classes, shape)
    codes = {str(_whole(name)): code for code, name in enumerate(names)}  # "1" and 1 are the same class
    vote = np.array([codes.get(str(one), -1) for one in labels])[label_codes]
    if (vote < 0).any():
        wrong = int(np.argmax(vote < 0))
        raise LabelsError(
            f"Expected one of the classes {', '.join([*codes][:10])}, got {labels[label_codes[wrong]]!r}, the vote of"
            f" {long['annotator'].iloc[wrong]} on item {long['item'].iloc[wrong]}."
        )
    if items is None:
        items = _item_names(pd.unique(long["item"]), shape) if rows is None else rows
    if shape is not None and len(items) != shape[0]:
        raise InputError(
            f"Expected a row of probs for each of the {len(items):,} items, got {shape[0]:,}. Pass a data frame whose"
            " index has the items."
        )
    place = pd.Index(items).get_indexer(pd.Index(long["item"]))
    if (place < 0).any():
        unknown = long["item"].iloc[int(np.argmax(place < 0))]
        raise InputError(f"Expected votes on the {len(items):,} given items, got one on {unknown}.")
    who, found = _factorized(long["annotator"])
    people = _sorted(found)
    who = pd.Index(people).get_indexer(pd.Index(found))[who]
    last = ~pd.Series(place * len(people) + who).duplicated(keep="last").to_numpy()
    place, who, vote = (np.asarray(own[last], np.intp) for own in (place, who, vote))
    return Ballots(place, who, vote, np.asarray(items), _array(people), _array(names), int((~last).sum()))


def _class_names(found: list[Any], classes: Sequence[Any] | None, shape: tuple[int, int] | None) -> Sequence[Any]:
    names = _sorted(found) if classes is None else classes
    if shape is not None and len(names) != shape[1]:
        numbers = [int(one) for one in names if str(one).isdigit()]
        if classes is not None or len(numbers) < len(names) or max(numbers) >= shape[1]:
            raise LabelsError(
                f"Expected votes for {shape[1]} classes, one per column of probs, got {len(names)}"
                f" ({', '.join(map(str, names[:10]))}). Pass classes= in the order of the columns."
            )
        return range(shape[1])
    if len(names) < 2:
        raise LabelsError(f"Expected votes for at least two classes, got only {[*names]}. Pass classes=.")
    return names


def _item_names(found: NDArray[Any], shape: tuple[int, int] | None) -> NDArray[Any]:
    """Return the items of a long table; whole numbers are rows of the probabilities."""
    if shape is not None and found.dtype.kind == "i" and 0 <= found.min() <= found.max() < shape[0]:
        return np.arange(shape[0])
    return found


def long_table(
    votes: Any, item: str | None, annotator: str | None, label: str | None
) -> tuple[DataFrame, NDArray[Any] | None]:
    """Return votes as a data frame with the columns item, annotator and label, and all items of a wide table."""
    import pandas as pd

    if isinstance(votes, (str, Path)):
        votes = read_votes(votes)
    elif hasattr(votes, "to_pandas"):
        votes = votes.to_pandas()
    elif not isinstance(votes, pd.DataFrame):
        triples = isinstance(votes, list) and all(isinstance(one, tuple) and len(one) == 3 for one in votes)
        votes = pd.DataFrame(votes, columns=[*COLUMNS] if triples else None)
    named = {"item": item, "annotator": annotator, "label": label}
    found = {
        role: next((name for name in COLUMNS[role] if name in votes.columns), role)
        if named[role] is None
        else named[role]
        for role in COLUMNS
    }
    missing = [name for name in found.values() if name not in votes.columns]
    if not missing:
        return votes[list(found.values())].set_axis(list(found), axis=1), None
    if any(named.values()):
        raise InputError(f"Expected a column {missing[0]!r}, got {', '.join(map(str, votes.columns))}.")
    cells = votes.to_numpy(object)
    row, column = np.nonzero(~pd.isna(cells))
    values = {"item": votes.index[row], "annotator": votes.columns[column], "label": cells[row, column]}
    return pd.DataFrame(values), votes.index.to_numpy()


def _factorized(column: Any) -> tuple[Codes, list[Any]]:
    """Return codes, -1 for missing values, and the different values."""
    import pandas as pd

    codes, values = pd.factorize(np.asarray(column, dtype=object))
    return codes, [_whole(value) for value in values]


def _whole(value: Any) -> Any:
    """Return whole numbers as such, even where missing values made them floats."""
    return int(value) if isinstance(value, (float, np.integer)) and value == int(value) else value


def _sorted(values: list[Any]) -> list[Any]:
    """Return numbers by size, anything else as text."""
    try:
        return sorted(values, key=int)
    except (TypeError, ValueError):
        return sorted(values, key=str)


def _array(values: Sequence[Any]) -> NDArray[Any]:
    return np.array([*values], None if all(isinstance(one, int) for one in values) else object)


def read_votes(path: str | Path) -> DataFrame:
    """Return a table of votes, or an export of Label Studio, Argilla or Prodigy as one, with what each item shows."""
    import pandas as pd

    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".json", *JSON_LINES):
        return read_table(path)
    text = read_text(path, limit=1 << 40)
    try:
        records = json.loads(text) if ending == ".json" else [json.loads(line) for line in text.splitlines() if line]
    except ValueError as error:
        raise InputError(f"Expected JSON in {path}, got {error}.") from None
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        raise InputError(f"Expected a list of tasks in {path}, as labelling tools export them.")
    rows = [row for number, record in enumerate(records) for row in _votes_of(record, number)]
    if not rows:
        raise InputError(f"Expected tasks that somebody labelled in {path}, got none.")
    return pd.DataFrame(rows)


def _votes_of(record: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Yield the votes of one task; a record of no labelling tool is a row of a table."""
    answers = next((key for key in record if key == "responses" or str(key).endswith(".responses")), None)
    if "annotations" in record:
        yield from _label_studio(record, number)
    elif answers is not None:
        yield from _argilla(record, answers, number)
    elif "answer" not in record:
        yield record
    elif record["answer"] != "ignore":  # Prodigy
        label = _single(record.get("accept", record.get("label")), number)
        if record["answer"] != "accept":
            label = None if "accept" in record else f"not {label}"
        who = record.get("_annotator_id", record.get("_session_id"))
        item = record.get("_input_hash", record.get("text", number))
        yield _shown(record) | {"item": item, "annotator": who, "label": label}


def _label_studio(task: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    for annotation in task["annotations"]:
        who = annotation.get("completed_by")
        who = who.get("email", who.get("id")) if isinstance(who, dict) else who
        chosen = [one.get("value", {}).get("choices", []) for one in annotation.get("result", [])]
        if chosen and not annotation.get("was_cancelled"):
            vote = {"item": task.get("id", number), "annotator": who, "label": _single(chosen[0], number)}
            yield _shown(task.get("data")) | vote


def _argilla(record: dict[str, Any], name: str, number: int) -> Iterator[dict[str, Any]]:
    answers = record[name] or []
    if isinstance(answers, dict):
        answers = next(iter(answers.values()), [])
    else:  # flattened: a list each of values, users and states
        users, states = (record.get(f"{name}.{own}") or [] for own in ("users", "status"))
        answers = [
            {"value": value, "user_id": place if user is None else user, "status": state or "submitted"}
            for place, (value, user, state) in enumerate(zip_longest(answers, users, states))
        ]
    shown = _shown(record.get("fields")) or _shown(record)
    for answer in answers:
        if answer.get("status", "submitted") == "submitted":
            who, label = answer.get("user_id", answer.get("user")), _single(answer["value"], number)
            yield shown | {"item": record.get("id", number), "annotator": who, "label": label}


def _single(chosen: Any, number: int) -> Any:
    if isinstance(chosen, list) and len(chosen) > 1:
        raise LabelsError(
            f"Expected one class per vote, got {chosen} in task {number + 1}: multi-label is not supported."
        )
    return next(iter(chosen), None) if isinstance(chosen, list) else chosen


def _shown(data: Any) -> dict[str, Any]:
    """Return the plain values of a task, such as its text."""
    hidden = {"item", "annotator", "label", "answer", "accept", "options", "id"}
    return {
        key: value for key, value in (data.items() if isinstance(data, dict) else ())
        if isinstance(value, (str, int, float)) and key not in hidden and not key.startswith("_")
    }  # fmt: skip
