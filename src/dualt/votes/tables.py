"""Votes in, of any shape: long and wide tables, arrays, lists, and exports of labelling tools."""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError
from dualt.files import read_json
from dualt.io.table_columns import INDEX_COLUMNS
from dualt.io.tables import JSON_LINES, json_lines, read_table
from dualt.labels import Codes, shorten
from dualt.validation import check_class_names

if TYPE_CHECKING:
    from pandas import DataFrame

# Columns of a table, by the names that crowd-kit and labelling tools give them, in this order of preference.
COLUMNS = {
    "item": ("item", "task", "id", "example", "_input_hash", *INDEX_COLUMNS),
    "annotator": ("annotator", "worker", "who", "user", "_annotator_id"),
    "label": ("label", "vote", "class", "choice"),
}

# Columns with fewer votes may have labels of their own by chance, but only texts and ids differ in every row.
_LEAST_VOTES = 20
_WHOLE, _BELOW_ZERO = re.compile(r"|-?[0-9]+([.,]0)?"), re.compile(r"-[0-9]+")
_log = logging.getLogger(__name__)


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
    label_codes, labels = factorized(long["label"], whole=True)
    said = [one != "" and not _BELOW_ZERO.fullmatch(str(one)) for one in labels]
    there = np.append(said, False)[label_codes]  # a missing value has the code -1
    if not there.any():
        raise LabelsError("Expected at least one vote, got none.")
    if rows is None and (left_out := ~there & (label_codes >= 0) & (long["label"] != "")).any():
        _log.warning("%s votes below zero are left out: such numbers are no votes.", f"{left_out.sum():,}")
    long, label_codes = long[there], label_codes[there]
    _check_votes(long)
    found = {str(one): one for one, is_vote in zip(labels, said, strict=True) if is_vote}
    names = _class_names([*found.values()], classes, shape)
    codes = {str(name): code for code, name in enumerate(names)}  # "1" and 1 are the same class
    vote = np.array([codes.get(str(one), -1) for one in labels])[label_codes]
    if (vote < 0).any():
        wrong = int(np.argmax(vote < 0))
        raise LabelsError(
            f"Expected one of the classes {', '.join([*codes][:10])}, got {labels[label_codes[wrong]]!r}, the vote of"
            f" {long['annotator'].iloc[wrong]} on item {long['item'].iloc[wrong]}."
        )
    if items is None:
        items = pd.unique(long["item"]) if rows is None else rows
        numbers = () if rows is not None or shape is None else range(shape[0])
        if pd.Index(items).isin([*numbers, *map(str, numbers)]).all():  # whole numbers are rows of the probabilities
            items = np.array([type(items[0])(row) for row in numbers])
    if shape is not None and len(items) != shape[0]:
        raise InputError(
            f"Expected a row of probs for each of the {len(items):,} items, got {shape[0]:,}. Pass a table with the"
            " items, in Python a data frame with them as its index."
        )
    index = pd.Index(items)
    if index.has_duplicates:
        raise InputError(
            f"Expected one row per item, got several for {index[index.duplicated()].tolist()[0]!r}. If each row is a"
            " vote, name the columns of annotators and labels."
        )
    place = index.get_indexer(pd.Index(long["item"]))
    if (place < 0).any():
        unknown = long["item"].iloc[int(np.argmax(place < 0))]
        raise InputError(f"Expected votes on the {len(items):,} given items, got one on {unknown}.")
    who, different = factorized(long["annotator"])
    people = pd.Index(_sorted(different))
    who = people.get_indexer(pd.Index(different))[who]
    if rows is not None:
        _check_columns(who, vote, people.to_numpy(), len(rows), [*codes])
    last = ~pd.Series(place * len(people) + who).duplicated(keep="last").to_numpy()
    place, who, vote = (np.asarray(codes[last], np.intp) for codes in (place, who, vote))
    n_repeated, kinds = int((~last).sum()), pd.Index(names).to_numpy()
    return Ballots(place, who, vote, np.asarray(items), people.to_numpy(), kinds, n_repeated)


def _check_votes(long: DataFrame) -> None:
    """Refuse votes without an item or annotator."""
    for role in ("item", "annotator"):
        missing = long[role].isna() | (long[role] == "")
        if missing.any():
            vote = long.iloc[int(np.argmax(missing))].to_dict()
            raise InputError(f"Expected an {role} for each vote, got none in {vote}. Fill it in, or leave it out.")


def _check_columns(who: Codes, vote: Codes, columns: NDArray[Any], n_rows: int, classes: list[str]) -> None:
    """Refuse a wide table with a column of several labels that no other column has: it is no annotator."""
    used = np.zeros((len(columns), len(classes)), bool)
    used[who, vote] = True
    alone = (used.sum(axis=1) > 1) & ~used[:, used.sum(axis=0) > 1].any(axis=1)
    alone &= (np.bincount(who) >= _LEAST_VOTES) | (used.sum(axis=1) == n_rows)
    if alone.any() and len(columns) > 1:
        first = int(np.argmax(alone))
        values = [one if len(one) <= 30 else f"{one[:29]}…" for one in np.array(classes)[used[first]].tolist()]
        raise InputError(
            f"Expected a column per annotator, got {columns[first : first + 1].tolist()[0]!r}, whose values"
            f" ({shorten(values, 3)}) are in no other column. Name the columns of item and, if each row is a vote, of"
            " annotator and label; or drop what is no vote (dualt votes: texts by --text), and write classes alike."
        )


def _class_names(found: list[Any], classes: Sequence[Any] | None, shape: tuple[int, int] | None) -> Sequence[Any]:
    if several := next((one for one in found if str(one).startswith('{"choices"')), None):  # CSV of Label Studio
        raise LabelsError(f"Expected one class per vote, got {several}: multi-label is not supported.")
    names = _sorted(found) if classes is None else list(classes)
    check_class_names(names)
    if shape is not None and len(names) != shape[1]:
        numbers = [int(one) for one in names if str(one).isdigit()]
        if classes is not None or len(numbers) < len(names) or max(numbers) >= shape[1]:
            raise LabelsError(
                f"Expected votes for {shape[1]} classes, one per column of probs, got {len(names)}"
                f" ({', '.join(map(str, names[:10]))}). Pass a table with named columns, or classes= in Python."
            )
        return range(shape[1])
    if len(names) < 2:
        raise LabelsError(f"Expected votes for at least two classes, got only {names[0]!r}. See classes= in Python.")
    return names


def long_table(
    votes: Any, item: str | None, annotator: str | None, label: str | None
) -> tuple[DataFrame, NDArray[Any] | None]:
    """Return votes as a data frame with the columns item, annotator and label, and all items of a wide table."""
    import pandas as pd

    if isinstance(votes, (str, Path)):
        votes = read_votes(votes, label)
    elif hasattr(votes, "to_pandas"):
        votes = votes.to_pandas()
    elif not isinstance(votes, pd.DataFrame):
        triples = isinstance(votes, list) and all(isinstance(one, tuple) and len(one) == 3 for one in votes)
        try:
            votes = pd.DataFrame(votes, columns=[*COLUMNS] if triples else None)
        except ValueError as error:
            raise InputError(f"Expected votes as a table of items × annotators: {error}.") from None
    named = {"item": item, "annotator": annotator, "label": label}
    found = [
        name or next((usual for usual in COLUMNS[role] if usual in votes.columns), role) for role, name in named.items()
    ]
    missing = [name for name in found if name not in votes.columns]
    if not missing:
        return votes[found].set_axis([*named], axis=1), None
    # A table with a row per vote has two of these columns at least, and a column of annotators.
    if annotator or label or item in missing or missing in (found[:1], found[2:]):
        hint = "Name the columns of item, annotator and label."
        raise InputError(f"Expected a column {missing[0]!r}, got {', '.join(map(str, votes.columns))}. {hint}")
    if found[0] not in missing:
        votes = votes.set_index(found[0])
    votes = votes.drop(columns=[*INDEX_COLUMNS], errors="ignore")
    cells = votes.to_numpy(object)
    row, column = np.nonzero(~pd.isna(cells))
    values = {"item": votes.index[row], "annotator": votes.columns[column], "label": cells[row, column]}
    return pd.DataFrame(values), votes.index.to_numpy()


def factorized(column: Any, *, whole: bool = False) -> tuple[Codes, list[Any]]:
    """Return codes, -1 for missing values, and the different values; whole numbers stored as floats become int.

    With `whole`, texts that all are whole numbers have no decimals: data frames with gaps write 1 as '1.0' or '1,0'.
    """
    import pandas as pd

    try:
        codes, values = pd.factorize(np.asarray(column, dtype=object))
    except TypeError:
        odd = next((one for one in column if not isinstance(one, Hashable)), column)
        raise InputError(f"Expected names or numbers as items, annotators and votes, got {str(odd)[:60]}.") from None
    if whole and all(_WHOLE.fullmatch(one) for one in values if isinstance(one, str)):
        values = [re.split("[.,]", one)[0] if isinstance(one, str) else one for one in values]
    return codes, [int(one) if isinstance(one, (float, np.integer)) and one == int(one) else one for one in values]


def _sorted(values: list[Any]) -> list[Any]:
    """Return numbers by size, anything else as text."""
    try:
        return sorted(values, key=int)
    except (TypeError, ValueError):
        return sorted(values, key=str)


def read_votes(path: str | Path, label: str | None = None) -> DataFrame:
    """Return a table of votes, or an export of Label Studio, Argilla or Prodigy as one, with what each item shows.

    `label` chooses a question of an export that has several, and names its column; by default that is "label".
    """
    import pandas as pd

    path = Path(path)
    if path.suffix.lower() not in (".json", *JSON_LINES):
        return read_table(path)
    records = read_tasks(path)
    try:
        found = [vote for number, record in enumerate(records) for vote in answers_of(record, number)]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"Expected tasks in {path} as a labelling tool exports them, got others.") from None
    if not found:
        raise InputError(f"Expected a class that somebody chose in {path}, got none. Texts and regions are no classes.")
    asked = [*dict.fromkeys(question for question, _, _ in found if question is not None)]
    if len(asked) > 1 and label not in asked:
        raise InputError(f"Expected one question in {path}, got {', '.join(asked)}. Name one as the column of labels.")
    column = label if label in asked else "label"
    return pd.DataFrame([
        row if question is None else row | {column: _single(said, row["item"])}
        for question, said, row in found if question in (None, label) or len(asked) == 1
    ])  # fmt: skip


def read_tasks(path: Path) -> list[dict[str, Any]]:
    """Return the tasks of a labelling tool's export: a list in JSON, or JSON lines."""
    tasks = [*json_lines(path)] if path.suffix.lower() in JSON_LINES else read_json(path, limit=1 << 40)
    if not isinstance(tasks, list) or not all(isinstance(one, dict) for one in tasks):
        raise InputError(f"Expected a list of tasks in {path}, each an object, got something else.")
    return tasks


def answers_of(record: dict[str, Any], number: int) -> Iterator[tuple[str | None, Any, dict[str, Any]]]:
    """Yield question, answer and what else is known of each vote on a task; a row of a plain table has no question."""
    if "annotations" in record and "data" in record:
        yield from _label_studio(record, number)
    elif ("responses" in record and "fields" in record) or any(name.endswith(".responses") for name in record):
        yield from _argilla(record, number)
    elif record.get("answer") not in ("accept", "reject", "ignore"):
        yield None, None, record
    elif record["answer"] != "ignore":  # Prodigy
        said = record.get("accept", record.get("label"))
        if record["answer"] != "accept":
            said = None if "accept" in record else f"not {said}"
        who = record.get("_annotator_id", record.get("_session_id"))
        item = record.get("_input_hash", record.get("text", number))
        yield "label", said, _shown(record) | {"item": item, "annotator": who}


def _label_studio(task: dict[str, Any], number: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for annotation in task["annotations"]:
        who = annotation.get("completed_by")
        who = who.get("email", who.get("id")) if isinstance(who, dict) else who
        for one in () if annotation.get("was_cancelled") else annotation.get("result") or ():
            value = one.get("value", {})
            if chosen := value.get("choices", value.get("rating")):
                about = _shown(task["data"]) | {"item": task.get("id", number), "annotator": who}
                yield one.get("from_name", "label"), chosen, about


def _argilla(record: dict[str, Any], number: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    said = record.get("responses") or {}
    if isinstance(said, list):  # of Argilla 1: one per person, with the answers to all questions
        answers = [(question, one | value) for one in said for question, value in (one.get("values") or {}).items()]
    else:
        answers = [(question, one) for question, several in said.items() for one in several]
    for name in (name for name in record if name.endswith(".responses")):  # flat: a column each for what, who, status
        rows = zip_longest(*(record.get(key) or () for key in (name, f"{name}.users", f"{name}.status")))
        keys = "value", "user_id", "status"
        answers += [(name.removesuffix(".responses"), dict(zip(keys, row, strict=True))) for row in rows]
    item = next(one for one in (record.get("id"), record.get("external_id"), number) if one is not None)
    for question, answer in answers:
        if (answer.get("status") or "submitted") == "submitted":
            yield question, answer["value"], _shown(record.get("fields", record)) | {
                "item": item, "annotator": answer.get("user_id")
            }  # fmt: skip


def _single(chosen: Any, item: Any) -> Any:
    one, *more = (chosen or [None]) if isinstance(chosen, list) else [chosen]
    if more:
        raise LabelsError(f"Expected one class per vote, got {chosen} in task {item}: multi-label is not supported.")
    return one


def _shown(data: Any) -> dict[str, Any]:
    """Return the plain values of a task, such as its text."""
    hidden = {"item", "annotator", "label", "answer", "accept", "options", "id"}
    return {
        key: value
        for key, value in (data or {}).items()
        if isinstance(value, (str, int, float)) and key not in hidden and not key.startswith("_")
    }
