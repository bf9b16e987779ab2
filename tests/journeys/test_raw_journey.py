"""From raw texts or images to corrected ones in three commands: issues, a review in the browser, apply-review."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from dualt.cli import app
from dualt.issues import labels_digest

CLASSES = {
    "animals, small": ["fox", "hen", "cat"],
    'the "sea"': ["ship", "wave", "salt"],
    "café ☕": ["cup", "milk", "cake"],
}


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def read(path):
    with Path(path).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def review_of(issues, labels, truth):
    """Write the review that somebody who knows the truth downloads: every flagged label decided."""
    with Path("review.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["index", "id", "old", "new", "labels"])
        for row in issues:
            writer.writerow([row["index"], row["id"], row["given"], truth[int(row["index"])], labels_digest(labels)])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUALT_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_from_a_csv_of_texts_to_the_corrected_one(here, delimiter):
    rng, names = np.random.default_rng(5), list(CLASSES)
    rows, truth = [], []
    for number in range(150):
        true = names[rng.integers(3)]
        title = " ".join(rng.choice(CLASSES[true], 5)) + rng.choice(["", ', "so"', "\nsecond line", " 🦊", "; =1+1"])
        label = "" if number % 17 == 3 else names[rng.integers(3)] if rng.random() < 0.1 else true
        rows.append([f"{number // 2:04}", title, label, rng.choice(["", "007", "1,5", "'x"])])
        truth.append(true)
    rows[20], truth[20] = rows[19], truth[19]
    with Path("raw.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([["sku", "title", "label", "note"], *rows])
    before = Path("raw.csv").read_bytes()
    columns = ["--label", "label", "--id", "sku"]
    run("issues", "raw.csv", *columns, "--text", "title", "-o", "issues.csv", "--report", "page.html")
    flagged = read("issues.csv")
    assert len(flagged) > 5
    for row in flagged:
        assert [row["id"], row["given"]] == [rows[int(row["index"])][place] for place in (0, 2)]
        assert row["text"].removeprefix("'") == rows[int(row["index"])][1].removeprefix("'")
    review_of(flagged, [row[2] for row in rows], truth)
    run("apply-review", "raw.csv", "review.csv", *columns, "-o", "corrected.csv")
    with Path("corrected.csv").open(encoding="utf-8", newline="") as stream:
        corrected = list(csv.reader(stream, delimiter=delimiter))[1:]
    flagged_rows = {int(row["index"]) for row in flagged}
    for number, (row, new) in enumerate(zip(rows, corrected, strict=True)):
        assert new == [*row[:2], truth[number] if number in flagged_rows else row[2], row[3]]
    wrong = [
        sum(row[2] not in ("", true) for row, true in zip(table, truth, strict=True)) for table in (rows, corrected)
    ]
    assert wrong[1] <= 0.3 * wrong[0]
    assert Path("raw.csv").read_bytes() == before


def test_from_a_folder_of_images_to_the_corrected_one(here):
    rng = np.random.default_rng(0)
    folders = ["a, b", "c ☕"]
    truth = {}
    for name in folders:
        Path("photos", name).mkdir(parents=True)
    for number in range(60):
        image = rng.integers(0, 60, (12, 12), dtype=np.uint8)
        true = number % 2
        image[(slice(None), slice(3, 9)) if true else (slice(3, 9), slice(None))] += 180
        given = 1 - true if number in (8, 15) else true
        file = f"{folders[given]}/{number:03}.png"
        Image.fromarray(image).save(Path("photos", file))
        truth[file] = folders[true]
    pictures = {path.name: path.read_bytes() for path in Path("photos").rglob("*.png")}
    run("issues", "photos", "-o", "issues.csv", "--top", "3", "--report", "page.html")
    flagged = read("issues.csv")
    files = sorted(truth)
    review_of(flagged, [file.partition("/")[0] for file in files], [truth[file] for file in files])
    said = json.loads(run("apply-review", "photos", "review.csv", "--move", "-o", "undo.csv", "--json").stdout)
    assert said["moved"] == 2
    for path in Path("photos").rglob("*.png"):
        assert path.read_bytes() == pictures.pop(path.name)
        assert path.parent.name == folders[int(path.stem) % 2]
    assert not pictures
