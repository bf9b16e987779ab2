"""From raw data to corrected data without a line of Python: a command, a page in a real browser, a command."""

import pytest
from raw_data import contents, raw_table, read, write_images, write_table

from dualt.io import read_class_folder


@pytest.mark.slow
def test_texts(run, decide):
    rows, truth = raw_table(150)
    write_table("raw.csv", rows, lineterminator="\n")
    columns = ["--label", "label", "--id", "sku"]
    run("issues", "raw.csv", *columns, "--text", "title", "--report", "page.html", "-o", "issues.csv")
    listed = [int(row[0]) for row in read("issues.csv")[1:]]
    assert len(listed) > 5
    review = decide("page.html", truth.__getitem__)
    run("apply-review", "raw.csv", review, *columns, "-o", "corrected.csv")
    expected = [list(row) for row in rows]
    for row in listed:
        expected[1 + row][2] = truth[row]
    assert read("corrected.csv") == expected
    wrong = [sum(row[2] not in ("", true) for row, true in zip(t[1:], truth, strict=True)) for t in (rows, expected)]
    assert wrong[1] < 0.2 * wrong[0]
    # What was kept is not asked again: the review of the raw table counts for its next page.
    run("issues", "raw.csv", *columns, "--text", "title", "--reviewed", review, "-o", "again.csv")
    kept = {row for row in listed if rows[1 + row][2] == truth[row]}
    assert not kept & {int(row[0]) for row in read("again.csv")[1:]}


@pytest.mark.slow
def test_images(run, decide):
    truth = write_images("pictures")
    before = contents("pictures")
    run("issues", "pictures", "--report", "page.html", "-o", "issues.csv")
    images = read_class_folder("pictures")
    listed = {row[-1] for row in read("issues.csv")[1:]}
    misplaced = {file for file, content in before.items() if file.split("/")[0] != truth[content]}
    assert misplaced <= {name.removeprefix("'") for name in listed}
    review = decide("page.html", lambda row: truth[before[images.files[row]]])
    run("apply-review", "pictures", review, "-o", "moves.csv")
    assert contents("pictures") == before, "images stay where they are"
    moves = {cells[0].removeprefix("'"): cells[1].removeprefix("'") for cells in read("moves.csv")[1:]}
    assert moves.keys() == misplaced
    assert {file: target.split("/")[0] for file, target in moves.items()} == {
        file: truth[before[file]] for file in misplaced
    }
