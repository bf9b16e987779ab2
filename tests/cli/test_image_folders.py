"""Images in a folder per class as labels: matched with probabilities by name, listed, audited, predicted."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dualt.io import read_class_folder
from tests.cli.commands import read_rows, refused, run

NAMES = ["cat", "dog", "fox"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Forty-five pictures, every ninth in a wrong folder; their names, and probabilities that know the truth."""
    monkeypatch.chdir(tmp_path)
    probs = {}
    for number in range(45):
        true = number % 3
        name = f"{NAMES[(true + (number % 9 == 4)) % 3]}/{number}.png"
        Path("pets", name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((6, 6), 5 * number, np.uint8)).save(Path("pets", name))
        probs[name] = np.full(3, 0.03) + 0.91 * np.eye(3)[true]
    write("probs.csv", sorted(probs, reverse=True), probs)
    return probs


def write(path, names, probs, called="file"):
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([called, *NAMES])
        writer.writerows([name, *probs[max(probs, key=lambda known: known.endswith(name))]] for name in names)


def test_rows_are_matched_by_name_in_whatever_order(files):
    run("issues", "probs.csv", "pets", "-o", "issues.csv", "--report", "page.html")
    found = read_rows("issues.csv")
    assert {row["id"] for row in found} == {name for name in files if int(Path(name).stem) % 9 == 4}
    images = read_class_folder("pets")
    assert all(images.files[int(row["index"])] == row["id"] for row in found)
    assert [row["suggested"] for row in found] == [NAMES[int(Path(row["id"]).stem) % 3] for row in found]
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(found)
    assert found[0]["id"] in page
    told = json.loads(run("issues", "probs.csv", "pets", "--json").stdout)
    assert {row["id"] for row in told["issues"]} == {row["id"] for row in found}


def test_texts_stay_with_the_images_that_the_table_names(files):
    lines = Path("probs.csv").read_text(encoding="utf-8").splitlines()
    captions = [f"{line},this is {line.split(',')[0]}" for line in lines[1:]]
    Path("probs.csv").write_text("\n".join([f"{lines[0]},caption", *captions]), encoding="utf-8")
    run("issues", "probs.csv", "pets", "--text", "caption", "-o", "issues.csv")
    found = read_rows("issues.csv")
    assert found
    assert all(row["text"] == f"this is {row['id']}" for row in found)
    run("audit", "pets", "--probs", "probs.csv", "--text", "caption", "--size", 9, "-o", "audit.csv")
    assert all(row["text"] == f"this is {row['id']}" for row in read_rows("audit.csv"))


def test_an_array_has_the_order_of_the_sorted_files(files):
    np.save("probs.npy", [files[name] for name in sorted(files)])
    told = json.loads(run("issues", "probs.npy", "pets", "--json").stdout)
    assert {int(Path(row["id"]).stem) % 9 for row in told["issues"]} == {4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines, lines[1]], "got 2"),
        (lambda lines: [*lines, "cat/none.png,1,0,0"], "no file of that name"),
        (lambda lines: ["name,cat,dog,fox", *lines[1:]], "none called 'file'"),
    ],
)
def test_rows_that_do_not_fit_the_files_are_refused(files, change, message):
    lines = Path("probs.csv").read_text().splitlines()
    Path("probs.csv").write_text("\n".join(change(lines)) + "\n")
    assert message in " ".join(run("issues", "probs.csv", "pets", code=2).output.split())


def test_an_image_without_a_row_is_left_out(files):
    """As `dualt probs` leaves out those that cannot be read."""
    whole = json.loads(run("issues", "probs.csv", "pets", "--json").stdout)
    lines = Path("probs.csv").read_text().splitlines()
    gone = whole["issues"].pop(0)["id"]
    captions = [",caption", *(f",this is {line.split(',')[0]}" for line in lines[1:])]
    joined = [line + more for line, more in zip(lines, captions, strict=True) if line.split(",")[0] != gone]
    Path("probs.csv").write_text("\n".join(joined) + "\n")
    result = run("issues", "probs.csv", "pets", "--text", "caption", "-o", "issues.csv", "--report", "page.html")
    assert f"Images without a row in probs.csv are left out: '{gone}'" in result.stderr
    found = read_rows("issues.csv")
    assert {row["id"] for row in found} == {row["id"] for row in whole["issues"]}
    assert all(row["text"] == f"this is {row['id']}" for row in found)


def test_an_array_of_probabilities_has_no_room_for_images_that_cannot_be_read(files):
    """It has a row for every file, without names; a table names its rows."""
    Path("pets", NAMES[0], "broken.png").write_bytes(b"no picture")
    assert "Remove them, or write a table: -o probs.csv" in refused("probs", "pets", "-o", "made.npy")
    assert not Path("made.npy").exists()
    run("probs", "pets", "-o", "made.csv")
    run("issues", "made.csv", "pets")


def test_pictures_of_a_table_are_named_in_all_that_is_written(files):
    flat = {Path(name).name: row for name, row in files.items()}
    for name in files:
        Path("flat").mkdir(exist_ok=True)
        Path("flat", Path(name).name).write_bytes(Path("pets", name).read_bytes())
    with Path("data.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["picture", "label", *NAMES])
        writer.writerows([Path(name).stem, name.split("/")[0], *flat[Path(name).name]] for name in files)
    run("issues", "data.csv", "--label", "label", "--id", "picture", "--images", "flat", "-o", "issues.csv")
    assert all(row["image"] == f"{row['id']}.png" for row in read_rows("issues.csv"))


def test_an_audit_names_the_files(files):
    run("audit", "pets", "--size", 5, "-o", "audit.csv")
    run("audit", "pets", "--probs", "probs.csv", "--size", 12, "-o", "drawn.csv", "--report", "audit.html")
    rows = read_rows("drawn.csv")
    assert {row["id"].split("/")[0] for row in rows} == {*NAMES}
    assert all(row["id"].startswith(f"{row['given']}/") for row in [*rows, *read_rows("audit.csv")])


def test_a_review_of_other_files_is_refused(files):
    images = read_class_folder("pets")
    Path("review.csv").write_text("index,id,old,new\n0,cat/gone.png,cat,dog\n")
    assert "made for other labels" in refused("apply-review", "pets", "review.csv", "-o", "moves.csv")
    assert read_class_folder("pets") == images
