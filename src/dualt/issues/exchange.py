"""Issues as tasks for labelling tools, and the answers that these export.

Each task carries what a review needs to find its way back: `index`, `example` (its id), `old` (the given label) and
`labels` (the digest of all given labels). The answer is called `new` everywhere, so that flat exports of any tool are
reviews as they are.

- Label Studio: a list of tasks with predictions (labelstud.io/guide/predictions), answers in ``annotations``.
- Argilla 2: a list of records with suggestions (``Dataset.records.from_json``), answers in ``responses``.
- Hugging Face `datasets`: JSON lines (``load_dataset("json", ...)``), answers in the column `new`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from dualt.errors import FileError, InputError, UnknownNameError
from dualt.files import atomic_write, read_text
from dualt.issues.files import issue_rows
from dualt.validation import class_name

if TYPE_CHECKING:
    from dualt.issues.label_issues import LabelIssues

ANSWER = "new"
_ANY_SIZE = 1 << 40


class _Example(NamedTuple):
    """A flagged label: its row of `issue_rows`, what a review needs of it, and the folder of its picture."""

    row: Mapping[str, Any]
    known: dict[str, Any]
    folder: Path | None

    @property
    def text(self) -> str:
        return str(self.row.get("text") or self.row.get("id") or f"Example {self.row['index']}")

    @property
    def picture(self) -> str:
        """The file of the picture, inside the folder."""
        return str(self.row.get("image", self.row.get("id")))


def check_tool(tool: str, path: str | Path | None) -> tuple[str, Callable[[_Example], dict[str, Any]]]:
    """Return the ending and the form of a tool's tasks, if there is such a tool and they can be written to `path`."""
    if tool not in TOOLS:
        raise UnknownNameError("labelling tool", tool, TOOLS)
    if path is None or Path(path).suffix.lower() != TOOLS[tool][0]:
        got = "none" if path is None else repr(Path(path).name)
        raise FileError(f"Expected an output that ends in {TOOLS[tool][0]} for {tool}, got {got}.")
    return TOOLS[tool]


def export_issues(path: str | Path, issues: LabelIssues, tool: str, folder: Path | None = None) -> None:
    """Write the flagged labels, most suspect first, as tasks for `tool`; `folder` is that of the pictures."""
    ending, form = check_tool(tool, path)
    tasks = (form(example) for example in _examples(issues, folder))
    with atomic_write(path) as stream:
        if ending == ".jsonl":
            stream.writelines(f"{json.dumps(task, ensure_ascii=False)}\n" for task in tasks)
        else:
            json.dump(list(tasks), stream, ensure_ascii=False, indent=1)


def label_studio_interface(issues: LabelIssues, *, pictures: bool) -> str:
    """Return the labelling interface that the tasks are made for, to be pasted into the settings of a project."""
    shown = '<Image name="image" value="$image"/>' if pictures else '<Text name="text" value="$text"/>'
    choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in issues.class_names)
    about = "image" if pictures else "text"
    return f'<View>{shown}<Choices name="{ANSWER}" toName="{about}" choice="single">{choices}</Choices></View>'


def _examples(issues: LabelIssues, folder: Path | None) -> Iterator[_Example]:
    for row in issue_rows(issues):
        known = {"index": row["index"], "example": row.get("id", ""), "old": row["given"]}
        yield _Example(row, known | {"labels": issues.labels_digest}, folder)


def _label_studio(example: _Example) -> dict[str, Any]:
    about, shown = "text", example.text
    if example.folder is not None:
        # The path is seen from the folder that Label Studio may serve: LOCAL_FILES_DOCUMENT_ROOT, here the one above.
        path = f"{example.folder.resolve().name}/{example.picture}"
        about, shown = "image", f"/data/local-files/?d={quote(path)}"
    value = {"choices": [example.row["suggested"]]}
    chosen = {"from_name": ANSWER, "to_name": about, "type": "choices", "value": value}
    predicted = {"model_version": "dualt", "score": example.row["suggested_probability"], "result": [chosen]}
    return {"data": {about: shown, **example.known}, "predictions": [predicted]}


def _argilla(example: _Example) -> dict[str, Any]:
    row, folder = example.row, example.folder
    suggested = {"value": row["suggested"], "score": row["suggested_probability"], "agent": "dualt"}
    shown = {"text": example.text} if folder is None else {"image": str(folder.resolve() / example.picture)}
    return {
        "id": str(row["index"]), "fields": shown, "metadata": example.known, "suggestions": {ANSWER: suggested},
        "responses": {}, "vectors": {},
    }  # fmt: skip


def _hugging_face(example: _Example) -> dict[str, Any]:
    row = example.row
    scores = {name: row[name] for name in ("suggested", "suggested_probability", "probability_right")}
    shown = {"text": row["text"]} if "text" in row else {}
    file = {} if example.folder is None else {"file_name": example.picture}
    return {**example.known, ANSWER: None, **scores, **shown, **file}


TOOLS: dict[str, tuple[str, Callable[[_Example], dict[str, Any]]]] = {
    "label-studio": (".json", _label_studio),
    "argilla": (".json", _argilla),
    "hf": (".jsonl", _hugging_face),
}


def read_answers(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each task that was answered, from 1, and its `index`, `example`, `old`, `labels` and `new`.

    Raises
    ------
    InputError
        If a task is not one of `export_issues`, or was answered in two ways.
    """
    for number, task in enumerate(_tasks(path), start=1):
        if not isinstance(task, dict):
            raise InputError(f"Expected an object as task {number} of {path}, got {type(task).__name__}.")
        known = next((part for part in (task.get("data"), task.get("metadata")) if isinstance(part, dict)), task)
        missing = [name for name in ("index", "old") if known.get(name) is None]
        if missing:
            raise InputError(
                f"Expected {missing[0]!r} in task {number} of {path}, as `dualt issues --export` writes it, got none."
            )
        answers = {*_answers(task)}
        if len(answers) > 1:
            raise InputError(
                f"Expected one class for task {number} of {path}, got {' and '.join(sorted(answers))[:80]}."
                " Settle it in the tool, and export again."
            )
        if answers:
            yield number, known | {ANSWER: answers.pop()}


def _tasks(path: Path) -> list[Any]:
    text = read_text(path, limit=_ANY_SIZE)
    try:
        if path.suffix.lower() != ".json":
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"Cannot read {path} as JSON: {error}.") from None
    if not isinstance(tasks, list):
        raise InputError(f"Expected a list of tasks in {path}, got {type(tasks).__name__}.")
    return tasks


def _answers(task: Mapping[str, Any]) -> Iterator[str]:
    """Yield every class that somebody chose, in whichever form."""
    try:
        for annotation in task.get("annotations") or ():
            for part in () if annotation.get("was_cancelled") else annotation.get("result") or ():
                if part.get("from_name", ANSWER) == ANSWER:
                    yield from part["value"]["choices"]
        for response in (task.get("responses") or {}).get(ANSWER) or ():
            yield response["value"]
    except (AttributeError, KeyError, TypeError):
        raise InputError(f"Expected answers as the tool exports them, got {str(task)[:80]}.") from None
    flat = next((task[name] for name in (ANSWER, f"{ANSWER}.responses") if task.get(name) not in (None, "")), ())
    flat = flat.get("choices", ()) if isinstance(flat, dict) else flat
    yield from map(class_name, flat if isinstance(flat, (list, tuple)) else [flat])
