"""Issues as tasks for labelling tools, and the answers that these export.

Each task carries what a review needs: `index`, `example` (its id) and `old` (the given label). The answer is called
`new` everywhere, so that flat exports of any tool are reviews as they are.

- Label Studio: a list of tasks with predictions (labelstud.io/guide/predictions), answers in ``annotations``.
- Argilla 2: a list of records with suggestions (``Dataset.records.from_json``), answers in ``responses``.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from dualt.errors import FileError, InputError, UnknownNameError
from dualt.files import check_ending, write_text
from dualt.issues.label_issues import ISSUE_FORMATS, LabelIssues
from dualt.validation import class_name
from dualt.votes.tables import answers_of, read_tasks

ANSWER = "new"
Row = Mapping[str, Any]


def check_output(path: str | Path | None, tool: str | None) -> None:
    """Refuse an unknown tool, and a `path` that is not for its tasks or, without a tool, for flagged labels."""
    if tool is not None and tool not in TOOLS:
        raise UnknownNameError("labelling tool", tool, TOOLS)
    if tool is None:
        check_ending(path, ISSUE_FORMATS)
    elif path is None or Path(path).suffix.lower() != ".json":
        got = "none" if path is None else repr(Path(path).name)
        raise FileError(f"Expected an output that ends in .json for {tool}, got {got}.")


def export_issues(path: str | Path, issues: LabelIssues, tool: str, folder: Path | None = None) -> None:
    """Write the flagged labels, most suspect first, as tasks for `tool`; `folder` is that of the pictures."""
    check_output(path, tool)
    tasks = []
    for row in issues.listed().to_dict("records"):
        known = {"index": row["index"], "example": row.get("id", ""), "old": row["given"]}
        tasks.append(TOOLS[tool](row, known, folder))
    write_text(path, json.dumps(tasks, ensure_ascii=False, indent=1))


def label_studio_interface(issues: LabelIssues, *, pictures: bool) -> str:
    """Return the labelling interface for the tasks, to be pasted into the settings of a project."""
    about, tag = ("image", "Image") if pictures else ("text", "Text")
    choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in issues.class_names)
    answer = f'<Choices name="{ANSWER}" toName="{about}" choice="single">{choices}</Choices>'
    return f'<View><{tag} name="{about}" value="${about}"/>{answer}</View>'


def _text(row: Row) -> str:
    return str(row.get("text") or row.get("id") or f"Example {row['index']}")


def _picture(row: Row) -> str:
    return str(row.get("image", row.get("id")))


def _label_studio(row: Row, known: Row, folder: Path | None) -> dict[str, Any]:
    about, shown = "text", _text(row)
    if folder is not None:
        # The path starts at the folder that Label Studio may serve, LOCAL_FILES_DOCUMENT_ROOT: here the one above.
        about, shown = "image", f"/data/local-files/?d={quote(f'{folder.resolve().name}/{_picture(row)}')}"
    value = {"choices": [row["suggested"]]}
    chosen = {"from_name": ANSWER, "to_name": about, "type": "choices", "value": value}
    predicted = {"model_version": "dualt", "score": row["suggested_probability"], "result": [chosen]}
    return {"data": {about: shown, **known}, "predictions": [predicted]}


def _argilla(row: Row, known: Row, folder: Path | None) -> dict[str, Any]:
    suggested = {"value": row["suggested"], "score": row["suggested_probability"], "agent": "dualt"}
    shown = {"text": _text(row)} if folder is None else {"image": str(folder.resolve() / _picture(row))}
    return {
        "id": str(row["index"]), "fields": shown, "metadata": known, "suggestions": {ANSWER: suggested},
        "responses": {}, "vectors": {},
    }  # fmt: skip


TOOLS: dict[str, Callable[[Row, Row, Path | None], dict[str, Any]]] = {
    "label-studio": _label_studio,
    "argilla": _argilla,
}


def read_answers(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each answered task, from 1, and its `index`, `example`, `old` and `new`."""
    for number, task in enumerate(read_tasks(path), start=1):
        known = next((part for part in (task.get("data"), task.get("metadata")) if isinstance(part, dict)), task)
        if known.get("index") is None or known.get("old") is None:
            raise InputError(f"Expected 'index' and 'old' in task {number} of {path}, as `--export` writes them.")
        answers = sorted({*_answers(task)})
        if len(answers) > 1:
            raise InputError(
                f"Expected one class for task {number} of {path}, got {' and '.join(answers)[:80]}. Settle it in the"
                " tool, and export again."
            )
        if answers:
            yield number, known | {ANSWER: answers[0]}


def _answers(task: dict[str, Any]) -> Iterator[str]:
    """Yield every class that somebody chose, in whichever form; JSON-MIN and CSV have it in a column."""
    column = task.get(ANSWER)
    try:
        chosen = [said for question, said, _ in answers_of(task, 0) if question == ANSWER]
    except (AttributeError, KeyError, TypeError):
        raise InputError(f"Expected answers as the tool exports them, got {str(task)[:80]}.") from None
    for said in (column.get("choices", ()) if isinstance(column, dict) else column, *chosen):
        if said not in (None, ""):
            yield from map(class_name, said if isinstance(said, list) else [said])
