"""Votes in, of any shape: long and wide tables, arrays, lists, and exports of labelling tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
) -> Ballots:
    """Return votes as codes.

    Parameters
    ----------
    votes
        A long table (one row per vote), a wide table or array (items × annotators), a list of (item, annotator,
        label), or a file. None, NaN, "" and, among whole numbers, those below zero are no vote.
    item, annotator, label
        Columns of a long table; by default those of `COLUMNS` that it has.
    classes
        In the order of the probabilities; by default those that occur, sorted.
    items
        All items, in order; by default those of the table, as they first occur.
    """
    import pandas as pd

    long, all_items = long_table(votes, item, annotator, label)
    label_values = as_values(long["label"])
    there = ~no_vote(label_values)
    if not there.any():
        raise LabelsError("Expected at least one vote, got none.")
    long, label_values = long[there], label_values[there]
    items = all_items if items is None else items
    order = pd.Index(pd.unique(long["item"]) if items is None else items)
    item_codes = order.get_indexer(pd.Index(long["item"]))
    if (item_codes < 0).any():
        unknown = long["item"].iloc[int(np.argmax(item_codes < 0))]
        raise InputError(f"Expected votes on the {len(order):,} given items, got one on {unknown!r}.")
    names = pd.Index(sorted_values(label_values) if classes is None else np.asarray(classes))
    if len(names) < 2:
        raise LabelsError(f"Expected votes for at least two classes, got only {names.tolist()}. Pass classes=.")
    vote = names.get_indexer(pd.Index(label_values))
    if (vote < 0).any() and classes is not None:  # "1" and 1 are the same class
        vote = pd.Index([str(name) for name in names]).get_indexer(pd.Index([str(value) for value in label_values]))
    if (vote < 0).any():
        place = int(np.argmax(vote < 0))
        raise LabelsError(
            f"Expected one of the classes {', '.join(map(str, names[:10]))}, got {label_values[place]!r}, the vote of"
            f" {long['annotator'].iloc[place]} on item {long['item'].iloc[place]}."
        )
    people = sorted_values(as_values(long["annotator"]))
    who = pd.Index(people).get_indexer(pd.Index(as_values(long["annotator"])))
    last = ~pd.Series(item_codes * len(people) + who).duplicated(keep="last").to_numpy()
    item_codes, who, vote = (np.asarray(codes[last], np.intp) for codes in (item_codes, who, vote))
    return Ballots(item_codes, who, vote, order.to_numpy(), people, names.to_numpy(), int((~last).sum()))


def long_table(
    votes: Any, item: str | None, annotator: str | None, label: str | None
) -> tuple[DataFrame, NDArray[Any] | None]:
    """Return votes as a data frame with the columns item, annotator and label, and all items of a wide table."""
    votes = _as_frame(votes)
    named = {"item": item, "annotator": annotator, "label": label}
    for name in named.values():
        if name is not None and name not in votes.columns:
            raise InputError(f"Expected a column {name!r}, got {', '.join(map(str, votes.columns))}.")
    found = {
        role: name if name is not None else next((known for known in COLUMNS[role] if known in votes.columns), None)
        for role, name in named.items()
    }
    missing = [role for role, name in found.items() if name is None]
    if missing and not any(named.values()):
        return _melted(votes), votes.index.to_numpy()
    if missing:
        raise InputError(f"Expected {missing[0]}=, a column of {', '.join(map(str, votes.columns))}, got none.")
    return votes[list(found.values())].set_axis(list(found), axis=1), None


def _as_frame(votes: Any) -> DataFrame:
    import pandas as pd

    if isinstance(votes, (str, Path)):
        return read_votes(votes)
    if hasattr(votes, "to_pandas"):
        votes = votes.to_pandas()
    elif isinstance(votes, Mapping):
        votes = pd.DataFrame(dict(votes))
    elif isinstance(votes, list) and votes and all(isinstance(one, tuple) and len(one) == 3 for one in votes):
        return pd.DataFrame(votes, columns=[*COLUMNS])
    if isinstance(votes, pd.DataFrame):
        return votes
    array = np.asarray(votes, object)
    if array.ndim != 2:
        raise InputError(f"Expected votes as a table of items × annotators, got shape {array.shape}.")
    return pd.DataFrame(array)


def _melted(wide: DataFrame) -> DataFrame:
    """Return one row per vote of items × annotators; the items are the index."""
    import pandas as pd

    columns = [as_values(wide.iloc[:, place]) for place in range(wide.shape[1])]
    chosen = [np.flatnonzero(~no_vote(column)) for column in columns]
    rows = np.concatenate(chosen)
    return pd.DataFrame(
        {
            "item": wide.index.to_numpy()[rows],
            "annotator": np.repeat(np.asarray(wide.columns), [len(own) for own in chosen]),
            "label": [value for column, own in zip(columns, chosen, strict=True) for value in column[own].tolist()],
        }
    )


def as_values(column: Any) -> NDArray[Any]:
    """Return a column as an array of objects, whole numbers as such even where missing values made them floats."""
    values = np.asarray(column, dtype=object)
    return np.array([int(one) if isinstance(one, float) and one.is_integer() else one for one in values] or [], object)


def no_vote(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are no vote: missing, empty, or a number below zero."""
    import pandas as pd

    missing = np.asarray(pd.isna(values), bool)
    own = [one == "" or (isinstance(one, (int, np.integer)) and one < 0) for one in values[~missing]]
    missing[~missing] = own
    return missing


def sorted_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values in order, numbers by size, anything else as text."""
    import pandas as pd

    found = pd.unique(values).tolist()
    try:
        found.sort(key=int)
    except (TypeError, ValueError):
        found.sort(key=str)
    if all(isinstance(one, int) for one in found):
        return np.array(found)
    return np.array(found, object)


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
    """Yield the votes of one task."""
    if "annotations" in record:
        yield from _label_studio(record, number)
    elif "responses" in record or any(str(key).endswith(".responses") for key in record):
        yield from _argilla(record, number)
    elif "answer" in record:
        yield from _prodigy(record, number)
    else:
        yield record


def _label_studio(task: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    shown = _shown(task.get("data"))
    for annotation in task["annotations"]:
        who = annotation.get("completed_by")
        who = who.get("email", who.get("id")) if isinstance(who, dict) else who
        chosen = [one.get("value", {}).get("choices", []) for one in annotation.get("result", [])]
        for choices in [] if annotation.get("was_cancelled") else chosen[:1]:
            yield shown | {"item": task.get("id", number), "annotator": who, "label": _single(choices, number)}


def _argilla(record: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    shown = _shown(record.get("fields")) or _shown(record)
    answers = record.get("responses")
    if not isinstance(answers, dict):  # flattened: NAME.responses and NAME.responses.users
        name = next(key for key in record if str(key).endswith(".responses"))
        users, states = record.get(f"{name}.users") or [], record.get(f"{name}.status") or []
        values = record[name] or []
        answers = {name: [
            {"value": value, "user_id": users[place] if place < len(users) else place,
             "status": states[place] if place < len(states) else "submitted"}
            for place, value in enumerate(values)
        ]}  # fmt: skip
    for answer in next(iter(answers.values()), []):
        if answer.get("status", "submitted") == "submitted":
            who = answer.get("user_id", answer.get("user"))
            yield shown | {
                "item": record.get("id", number),
                "annotator": who,
                "label": _single(answer["value"], number),
            }


def _prodigy(task: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    who = task.get("_annotator_id", task.get("_session_id"))
    item = task.get("_input_hash", task.get("text", number))
    chosen = task.get("accept")
    if task["answer"] == "ignore":
        return
    if isinstance(chosen, list):
        label = _single(chosen, number) if task["answer"] == "accept" else None
    else:
        label = task.get("label") if task["answer"] == "accept" else f"not {task.get('label')}"
    yield _shown(task) | {"item": item, "annotator": who, "label": label}


def _single(chosen: Any, number: int) -> Any:
    if not isinstance(chosen, list):
        return chosen
    if len(chosen) > 1:
        raise LabelsError(
            f"Expected one class per vote, got {chosen} in task {number + 1}: multi-label is not supported."
        )
    return chosen[0] if chosen else None


def _shown(data: Any) -> dict[str, Any]:
    """Return the plain values of a task, such as its text."""
    if not isinstance(data, dict):
        return {}
    hidden = {"item", "annotator", "label", "answer", "accept", "options", "id"}
    return {
        key: value for key, value in data.items()
        if isinstance(value, (str, int, float)) and key not in hidden and not key.startswith("_")
    }  # fmt: skip
