"""From raw texts or images to corrected ones in three commands: issues, a review, apply-review."""

import csv
from pathlib import Path

import pytest
from raw_data import contents, raw_table, write_images, write_table

from dualt.io import read_class_folder
from tests.cli.commands import read_rows


def review_of(issues, truth):
    """Write the review that somebody who knows the truth downloads: every flagged label decided."""
    rows = [[row["index"], row["id"], row["given"], truth[int(row["index"])]] for row in issues]
    write_table("review.csv", [["index", "id", "old", "new"], *rows])


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_from_a_csv_of_texts_to_the_corrected_one(run, delimiter):
    rows, truth = raw_table(150)
    write_table("raw.csv", rows, delimiter=delimiter)
    before = Path("raw.csv").read_bytes()
    columns = ["--label", "label", "--id", "sku"]
    run("issues", "raw.csv", *columns, "--text", "title", "-o", "issues.csv", "--report", "page.html")
    flagged = read_rows("issues.csv")
    assert len(flagged) > 5
    for row in flagged:
        sku, title, label, _ = rows[1 + int(row["index"])]
        assert [row["id"], row["given"]] == [sku, label]
        assert row["text"].removeprefix("'") == title.removeprefix("'")
    review_of(flagged, truth)
    run("apply-review", "raw.csv", "review.csv", *columns, "-o", "corrected.csv")
    with Path("corrected.csv").open(encoding="utf-8", newline="") as stream:
        corrected = list(csv.reader(stream, delimiter=delimiter))
    flagged_rows = {int(row["index"]) for row in flagged}
    for number, (row, new) in enumerate(zip(rows[1:], corrected[1:], strict=True)):
        assert new == [*row[:2], truth[number] if number in flagged_rows else row[2], row[3]]
    wrong = [sum(row[2] not in ("", true) for row, true in zip(t[1:], truth, strict=True)) for t in (rows, corrected)]
    assert wrong[1] <= 0.3 * wrong[0]
    assert Path("raw.csv").read_bytes() == before


def test_from_a_folder_of_images_to_a_table_of_moves(run):
    truth = write_images("photos")
    before, images = contents("photos"), read_class_folder("photos")
    run("issues", "photos", "-o", "issues.csv", "--report", "page.html")
    review_of(read_rows("issues.csv"), [truth[before[file]] for file in images.files])
    run("apply-review", "photos", "review.csv", "-o", "moves.csv")
    assert contents("photos") == before
    moves = [(row["from"].removeprefix("'"), row["to"].removeprefix("'")) for row in read_rows("moves.csv")]
    assert moves
    assert all(target.split("/")[0] == truth[before[file]] != file.split("/")[0] for file, target in moves)
    assert len({target for _, target in moves} - before.keys()) == len(moves), "no file is written over"


def test_a_table_is_opened_at_most_three_times(run, monkeypatch):
    rows, _ = raw_table(150)
    write_table("raw.csv", rows)
    opened = []
    real = Path.open

    def counted(path, *arguments, **options):
        opened.append(path.name)
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    options = ["--label", "label", "--id", "sku", "--text", "title", "-o", "issues.csv", "--report", "page.html"]
    run("issues", "raw.csv", *options)
    assert 1 <= opened.count("raw.csv") <= 3
    run("probs", "raw.csv", *options[:6], "-o", "probs.csv")
    opened.clear()
    run("issues", "probs.csv", *options[:4])
    assert 1 <= opened.count("probs.csv") <= 3
