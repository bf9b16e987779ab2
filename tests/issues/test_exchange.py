"""Issues as tasks of labelling tools, and what these export as a review.

The forms were tried with the tools themselves: tasks validated by label-studio-sdk 2.1 and converted by it to JSON-MIN
and CSV, records read and written by argilla 2.8. Here their exports are made by hand.
"""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dualt.errors import InputError
from dualt.issues import read_review
from tests.cli.commands import refused, run, write_rows

NAMES = ["café, ☕", 'the "sea"', "fox"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of 60 rows, of which every tenth is labelled wrong; ids repeat, and a label is missing."""
    monkeypatch.chdir(tmp_path)
    rows = [["sku", "title", "label", *(f"p_{name}" for name in NAMES)]]
    for row in range(60):
        true = row % 3
        given = NAMES[(true + (row % 10 == 4)) % 3]
        probs = np.full(3, 0.02) + 0.94 * np.eye(3)[true]
        rows.append([f"{row // 2}", f"a {NAMES[true]}\n{row} 🦊", "" if row == 7 else given, *probs])
    with Path("data.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return rows


def export(tool, path):
    named = ["--label", "label", "--id", "sku", "--text", "title", "--probs", "p_*"]
    return run("issues", "data.csv", *named, "--top", 6, "--export", tool, "-o", path)


def label_studio(flat):
    """Return the tasks with the suggestion as annotation, the last one cancelled and the one before not done."""
    tasks = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
    for number, task in enumerate(tasks):
        done = {"id": number, "was_cancelled": number == 5, "result": task["predictions"][0]["result"]}
        task |= {"id": 1000 + number, "annotations": [] if number == 4 else [done]}
    if not flat:
        return tasks
    return [
        {**task["data"], "id": task["id"], "new": task["predictions"][0]["result"][0]["value"]["choices"][0]}
        for task in tasks[:4]
    ]


def answered(kind):
    """Write what a tool exports after the first four tasks were done, and return the name of the file."""
    if kind.startswith("argilla"):
        records = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
        for record in records[:4]:
            chosen = record["suggestions"]["new"]["value"]
            record["responses"] = {"new": [{"value": chosen, "user_id": "a"}, {"value": chosen, "user_id": "b"}]}
        if kind == "argilla":
            Path("done.json").write_text(json.dumps(records))
            return "done.json"
        flat = [
            record["metadata"] | {"id": "x", "new.responses": [r["value"] for r in record["responses"].get("new", [])]}
            for record in records
        ]
        Path("done.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in flat))
        return "done.jsonl"
    tasks = label_studio(flat=kind != "label-studio")
    Path("done.json").write_text(json.dumps(tasks))
    if kind != "label-studio csv":
        return "done.json"
    write_rows("done.csv", tasks)
    return "done.csv"


KINDS = ["label-studio", "label-studio min", "label-studio csv", "argilla", "argilla flat"]


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_table_through_a_tool_to_the_corrected_table(table, kind):
    export(kind.split()[0], "tasks.json")
    review = answered(kind)
    decisions = read_review(review)
    assert len(decisions) == 4
    run("apply-review", "data.csv", review, "--label", "label", "--id", "sku", "-o", "out.csv")
    with Path("out.csv").open(encoding="utf-8", newline="") as stream:
        corrected = list(csv.reader(stream))
    changed = [row for row in range(61) if corrected[row] != list(map(str, table[row]))]
    assert len(changed) == 4
    for row in changed:
        assert (row - 1) % 10 == 4, "a label that was wrong"
        assert corrected[row] == [*map(str, table[row][:2]), NAMES[(row - 1) % 3], *map(str, table[row][3:])]


def test_the_interface_offers_the_classes(table):
    shown = export("label-studio", "tasks.json").output.splitlines()[-1]
    view = ElementTree.fromstring(shown)
    assert [choice.get("value") for choice in view.iter("Choice")] == NAMES
    chosen = json.loads(Path("tasks.json").read_text(encoding="utf-8"))[0]["predictions"][0]["result"][0]
    assert view.find("Choices").attrib == {"name": chosen["from_name"], "toName": chosen["to_name"], "choice": "single"}


def test_an_export_of_other_labels_is_refused(table):
    export("argilla", "tasks.json")
    review = answered("argilla")
    decision = read_review(review)[0]
    table[decision.index + 1][2] = next(name for name in NAMES if name != decision.old)
    with Path("data.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(table)
    assert "labelled" in refused("apply-review", "data.csv", review, "--label", "label", "-o", "out.csv")
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}', "list of tasks"),
        ("[1]", "list of tasks"),
        ('[{"data": {"index": 1}}]', "'old' in task 1"),
        ('[{"index": "x", "old": "a", "new": "b"}]', "row number"),
        ('[{"index": 1, "old": "a", "new": ["b", "c"]}]', "b and c"),
        ('[{"index": 1, "old": "a", "data": {"index": 1, "old": "a"}, "annotations": [3]}]', "the tool exports"),
        ('[{"index": 1, "old": "a", "new": "b"}, {"index": 1, "old": "a", "new": "c"}]', "task 1 and task 2"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "done.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_review(tmp_path / "done.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--export", "excel", "-o", "x.json"], "Unknown labelling tool"),
        (["--export", "argilla", "-o", "x.jsonl"], "ends in .json for argilla, got 'x.jsonl'"),
        (["--export", "argilla"], "ends in .json for argilla, got none"),
        (["-o", "x.xlsx"], "ends in .csv, .json, .parquet, got 'x.xlsx'"),
    ],
)
def test_mistakes_are_refused_before_anything_is_read(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("issues", "absent.csv", "--label", "y", *arguments)


@pytest.mark.parametrize("number", [int, float])
def test_answers_that_are_numbers_are_class_numbers(tmp_path, number):
    tasks = [{"index": 3, "old": 1, "new": number(0)}, {"index": 4, "old": 0, "new": number(2)}, {"index": 5, "old": 0}]
    (tmp_path / "done.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    found = [(each.index, each.old, each.new) for each in read_review(tmp_path / "done.jsonl")]
    assert found == [(3, "1", "0"), (4, "0", "2")]
