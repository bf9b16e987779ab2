"""Images that change their folder: nothing is written over, all or nothing moves, and everything can be undone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualt.errors import FileError, InputError
from dualt.io import make_moves, moves, plan_moves, read_class_folder, read_moves, save_moves
from dualt.io.moves import Move

NAME = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=6)


def write(folder, files):
    for file in files:
        path = Path(folder, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in Path(folder).rglob("*.png")}


@pytest.fixture
def folder(tmp_path):
    """The folder of classes, with a name that both have."""
    write(tmp_path / "pets", ["cat/1.png", "cat/2.png", "cat/deep/3.png", "dog/1.png", "dog/1-2.png"])
    return tmp_path / "pets"


def test_taken_names_get_a_number_and_folders_inside_stay(folder):
    images = read_class_folder(folder)
    assert images.files == ("cat/1.png", "cat/2.png", "cat/deep/3.png", "dog/1-2.png", "dog/1.png")
    planned = plan_moves(images, ["dog", "cat", "dog", "cat", "cat"])
    assert planned == [
        Move("cat/1.png", "dog/1-3.png"),
        Move("cat/deep/3.png", "dog/deep/3.png"),
        Move("dog/1-2.png", "cat/1-2.png"),
        Move("dog/1.png", "cat/1-3.png"),
    ]


@settings(max_examples=25)
@given(st.data())
def test_whatever_moves_nothing_is_lost_and_all_comes_back(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("moves") / "folder"
    stems = data.draw(st.lists(NAME.filter(lambda name: name[0] != "."), min_size=1, max_size=4, unique_by=str.lower))
    files = [f"{name}/{stem}.png" for name in ("a", "b, c", "=d") for stem in stems]
    write(folder, files)
    images, before = read_class_folder(folder), contents(folder)
    labels = data.draw(st.lists(st.sampled_from(images.names), min_size=len(images.files), max_size=len(images.files)))
    save_moves(folder.parent / "plan.csv", plan_moves(images, labels))
    planned = read_moves(folder.parent / "plan.csv")
    assert planned == plan_moves(images, labels)
    moved = make_moves(folder, planned, folder.parent / "undo.csv")
    after = contents(folder)
    assert sorted(after.values()) == sorted(before.values())
    wanted = {before[file]: label for file, label in zip(images.files, labels, strict=True)}
    assert {content: file.split("/")[0] for file, content in after.items()} == wanted
    if moved:
        make_moves(folder, read_moves(folder.parent / "undo.csv"), folder.parent / "redo.csv")
    assert contents(folder) == before


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_move_that_fails_takes_back_those_before_it(folder, tmp_path, monkeypatch, failing):
    before, real, calls = contents(folder), os.link, []

    def link(source, target, **options):
        calls.append(source)
        if len(calls) == failing + 1:
            raise KeyboardInterrupt if failing == 2 else OSError(5, "Input/output error")
        return real(source, target, **options)

    def rename(source, target):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(moves.os, "link", link)
    monkeypatch.setattr(Path, "rename", rename)
    planned = plan_moves(read_class_folder(folder), ["new", "new", "new", "cat", "cat"])
    with pytest.raises(KeyboardInterrupt if failing == 2 else FileError):
        make_moves(folder, planned, tmp_path / "undo.csv")
    assert contents(folder) == before
    assert not (folder / "new").exists()
    assert not (tmp_path / "undo.csv").exists()


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_kill_half_way_is_undone_by_the_file(folder, tmp_path, after):
    before = contents(folder)
    # Killed right after a link was made: the file has two names then.
    program = f"""
import os, signal
from pathlib import Path
from dualt.io import make_moves, moves, plan_moves, read_class_folder
real, calls = os.link, []
def link(*paths, **options):
    real(*paths, **options)
    calls.append(1)
    if len(calls) > {after}:
        os.kill(os.getpid(), signal.SIGKILL)
moves.os.link = link
folder = Path({str(folder)!r})
make_moves(folder, plan_moves(read_class_folder(folder), ["dog", "dog", "dog", "cat", "cat"]), Path("undo.csv"))
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert {*contents(folder).values()} == {*before.values()}
    make_moves(folder, read_moves(tmp_path / "undo.csv"), tmp_path / "redo.csv")
    assert contents(folder) == before


def test_without_links_files_are_renamed(folder, tmp_path, monkeypatch):
    def link(*paths, **options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(moves.os, "link", link)
    assert make_moves(folder, [Move("cat/1.png", "dog/9.png")], tmp_path / "undo.csv") == 1
    assert (folder / "dog/9.png").read_text() == "cat/1.png"
    with pytest.raises(FileError, match="got one"):
        make_moves(folder, [Move("cat/2.png", "dog/9.png")], tmp_path / "undo2.csv")


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ("from,to\ncat/1.png,../1.png\n", InputError, "inside the folder"),
        ("from,to\n/etc/passwd,cat/1.png\n", InputError, "inside the folder"),
        ("from,to\ncat/1.png,dog/1.png\n", FileError, "Expected no file at"),
        ("from,to\ncat/9.png,dog/9.png\n", FileError, "no such file"),
        ("from,to\ncat/1.png,dog/9.png\ncat/2.png,dog/9.png\n", InputError, "dog/9.png 2 times"),
        ("from\ncat/1.png\n", InputError, "header from,to"),
        ("from,to\ncat/1.png\n", InputError, "line 2"),
    ],
)
def test_bad_moves_are_refused_whole(folder, tmp_path, table, error, message):
    before = contents(folder)
    (tmp_path / "moves.csv").write_text(table)
    with pytest.raises(error, match=message):
        make_moves(folder, read_moves(tmp_path / "moves.csv"), tmp_path / "undo.csv")
    assert contents(folder) == before
    assert not (tmp_path / "undo.csv").exists()


@pytest.mark.parametrize("name", ["..", "a/b", "", ".hidden", "a\\b"])
def test_a_class_that_names_no_folder_is_refused(folder, name):
    with pytest.raises(InputError, match="name a folder"):
        plan_moves(read_class_folder(folder), [name, "cat", "cat", "dog", "dog"])
