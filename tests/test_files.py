"""One gate opens what is read; what is written is written whole or not at all."""

import os
import stat
import threading

import pytest

from dualt.errors import FileError
from dualt.files import (
    atomic_write,
    check_outputs,
    check_readable,
    check_writable_target,
    open_input,
    read_json,
    read_text,
)


def test_text_and_bytes_arrive_as_they_are(tmp_path):
    with atomic_write(tmp_path / "a.txt") as stream:
        stream.write("naïve\nline\n")
    assert (tmp_path / "a.txt").read_bytes() == "naïve\nline\n".encode()
    with atomic_write(tmp_path / "b.bin", "wb") as stream:
        stream.write(b"\0\r\n")
    assert (tmp_path / "b.bin").read_bytes() == b"\0\r\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.bin"]


def test_until_the_end_the_old_file_stands(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as stream:
        stream.write("new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_no_trace(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write():
        with atomic_write(path) as stream:
            stream.write("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_two_writers_do_not_share_a_file(tmp_path):
    path, barrier = tmp_path / "a.txt", threading.Barrier(2)

    def write(letter):
        with atomic_write(path) as stream:
            stream.write(letter * 1000)
            barrier.wait(timeout=10)
            stream.write(letter * 1000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in ("a" * 2000, "b" * 2000)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    (tmp_path / "shelf").mkdir()
    real = tmp_path / "shelf" / "real"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "out").symlink_to(real)
    with atomic_write(tmp_path / "out") as stream:
        stream.write("new")
    assert (tmp_path / "out").is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_outputs_are_neither_inputs_nor_each_other(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.symlink_to(one)
    (tmp_path / "three").hardlink_to(one)
    check_outputs([tmp_path / "new", tmp_path / "newer"], [one, tmp_path / "none"])
    for output in (one, two, tmp_path / "three", tmp_path / "x" / ".." / "one"):
        with pytest.raises(FileError, match="also an input"):
            check_outputs([output], [one])
    with pytest.raises(FileError, match="also another output"):
        check_outputs([tmp_path / "new", tmp_path / "new"])


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("x" * 251 + ".txt")
    with atomic_write(path) as stream:
        stream.write("x")
    assert path.read_text() == "x"


def test_targets_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "loop", "leads to itself|[Tt]oo many levels"),
        (tmp_path / "absent" / "a.txt", "absent does not exist"),
        (tmp_path / "file" / "a.txt", "does not exist"),
        (tmp_path / "pipe", "a device or a pipe"),
        (tmp_path / ("x" * 300), "too long"),
    ):
        with pytest.raises(FileError, match=message):
            check_writable_target(path)
        with pytest.raises(FileError, match=message), atomic_write(path):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop", "pipe"]


def test_bytes_and_text_are_read_as_they_are(tmp_path):
    (tmp_path / "a").write_bytes("\ufeffnaïve\r\n".encode())
    with open_input(tmp_path / "a") as stream:
        assert stream.read() == "\ufeffnaïve\r\n".encode()
    assert read_text(tmp_path / "a") == "naïve\r\n"
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="a as text"):
        read_text(tmp_path / "a")
    with pytest.raises(FileError, match="a as text"):
        read_json(tmp_path / "a")


def test_only_regular_files_of_a_known_size_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("[1]")
    for path, limit, message in (
        (tmp_path, None, "got the folder"),
        (tmp_path / "absent", None, "No such file"),
        (tmp_path / "file" / "below", None, "No such file"),
        ("a\0b", None, "No such file"),
        (tmp_path / ("x" * 300), None, "too long"),
        (tmp_path / "pipe", None, "device or a pipe"),
        ("/dev/zero", None, "device or a pipe"),
        (tmp_path / "file", 2, "at most 2 bytes, got 3"),
    ):
        for read in (check_readable, open_input, read_text, read_json):
            with pytest.raises(FileError, match=message):
                read(path) if limit is None else read(path, limit=limit)
    assert read_json(tmp_path / "file") == [1]
