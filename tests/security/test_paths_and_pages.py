"""Names and texts out of files stay names and texts: on disk, in the page, in a spreadsheet, on the terminal."""

import csv
import json
import os
import tempfile
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from dualt.errors import FileError
from dualt.files import atomic_write
from dualt.report import image_previews
from tests.cli.commands import run


def test_a_link_planted_under_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("keep")
    (tmp_path / ".out.csv.guessed.tmp").symlink_to(victim)
    monkeypatch.setattr(tempfile, "_name_sequence", iter(["guessed", "fresh"]))
    with atomic_write(tmp_path / "out.csv") as stream:
        stream.write("new")
    assert victim.read_text() == "keep"
    assert not (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "out.csv").read_text() == "new"


def test_nobody_else_can_read_a_file_before_it_is_whole(tmp_path):
    with atomic_write(tmp_path / "out.csv") as stream:
        assert os.fstat(stream.fileno()).st_mode & 0o077 == 0


def test_a_link_in_a_folder_of_images_shows_no_other_file(tmp_path):
    """What is embedded must be an image, wherever its name leads."""
    (tmp_path / "images").mkdir()
    (tmp_path / "secret").write_text("root:x:0:0")
    (tmp_path / "images" / "0.png").symlink_to(tmp_path / "secret")
    with pytest.raises(FileError, match="no known image format"):
        image_previews(tmp_path / "images", [0], n_samples=1)
    (tmp_path / "images" / "0.png").unlink()
    os.mkfifo(tmp_path / "images" / "0.png")
    with pytest.raises(FileError, match="device or a pipe"):
        image_previews(tmp_path / "images", [0], n_samples=1)


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("x")\u2028\'"`',
    "\x1b]0;owned\x07[/b]",
]


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))


@pytest.fixture
def files(tmp_path):
    """Probabilities, labels, and names and texts that are hostile or plain."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(4, 0.2), 200)
    np.save(tmp_path / "probs.npy", probs)
    labels = np.where(rng.random(200) < 0.2, 0, probs.argmax(axis=1))
    np.save(tmp_path / "labels.npy", labels)
    for name, text in {"plain": "text", "hostile": "</script><img src=x onerror=alert(1)>"}.items():
        pd.DataFrame({"y": labels, "text": text}).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "plain.txt").write_text("\n".join("abcd") + "\n")
    (tmp_path / "hostile.json").write_text(json.dumps(HOSTILE))
    return tmp_path


def issues(files, classes, texts):
    return run(
        "issues", files / "probs.npy", files / texts, "--classes", files / classes, "--label", "y", "--text", "text",
        "--report", files / "r.html", "-o", files / "i.csv",
    ).output  # fmt: skip


def test_a_page_of_hostile_names_and_texts_has_the_elements_of_a_plain_one(files):
    issues(files, "plain.txt", "plain.csv")
    plain = Tags((files / "r.html").read_text()).found
    issues(files, "hostile.json", "hostile.csv")
    page = (files / "r.html").read_text()
    assert Tags(page).found == plain
    assert "<img src=x" not in page


def test_a_hostile_name_is_no_formula_and_no_command_to_the_terminal(files):
    shown = issues(files, "hostile.json", "plain.csv")
    assert "\x1b]" not in shown
    assert "\x07" not in shown
    result = run(
        "estimate", files / "probs.npy", files / "labels.npy", "--classes", files / "hostile.json", "--compare"
    )
    assert "\x1b]" not in result.output
    for row in csv.reader((files / "i.csv").read_text().splitlines()[1:]):
        assert not row[1].startswith("=")
        assert not row[2].startswith("=")


def test_names_of_files_that_look_like_markup_are_shown_as_they_are(files):
    (files / "x[").mkdir()
    (files / "x[" / "p].npy").write_bytes((files / "probs.npy").read_bytes())
    for name in ("x[/b].csv", "[red].csv"):
        shown = run("issues", files / "x[/p].npy", files / "labels.npy", "-o", files / name).output
        assert name in shown
        assert "x[/p].npy" in shown


def test_predictions_are_no_formulas(tmp_path):
    pytest.importorskip("torch")
    from dualt.cli.predict import _Samples, _write

    _write(tmp_path / "p.csv", np.eye(2, dtype=np.float32), ("=1+1", "@x"), _Samples(np.eye(2)))
    rows = list(csv.reader((tmp_path / "p.csv").read_text().splitlines()))
    assert [cell for row in rows for cell in row if cell[:1] in "=+-@"] == []
    assert rows[1][0] == "'=1+1"
