"""`dualt estimate` and `issues`, with its page, when the process, the disk or the clock fails them."""

import json
import signal

import numpy as np
import pytest
from faulty import content, dualt, one_line, start

COMMANDS = {
    "estimate": ("estimate", "-o", "t.json"),
    "issues": ("issues", "-o", "issues.csv"),
    "report": ("issues", "--report", "report.html"),
}


def call(name, inputs, out, labels="labels.npy", **options):
    command, flag, file = COMMANDS[name]
    return dualt(command, inputs / "probs.npy", inputs / labels, flag, out / file, **options)


@pytest.fixture(scope="module")
def expected(inputs, tmp_path_factory):
    """What each command writes when nothing goes wrong."""
    folder = tmp_path_factory.mktemp("expected")
    for name in COMMANDS:
        call(name, inputs, folder)
    assert (folder / "issues.csv").read_text().count("\n") > 50
    return content(folder)


def of(name, expected):
    file = COMMANDS[name][2]
    return {file: expected[file]}


@pytest.mark.parametrize("name", ["estimate", "issues"])
def test_killed_while_writing(name, inputs, out, expected):
    old = {COMMANDS[name][2]: b"the result of last week"}
    (out / COMMANDS[name][2]).write_bytes(*old.values())
    call(name, inputs, out, fault="kill-at-fsync", at=1, code=-signal.SIGKILL)
    left = content(out)
    assert {file: left[file] for file in old} == old, "the old file stands"
    call(name, inputs, out)
    assert {file: content(out)[file] for file in old} == of(name, expected), "a rerun completes"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_on_the_size_of_files(name, inputs, out):
    error = call(name, inputs, out, fault="limit-files", at=100, code=2)
    assert "Cannot write" in one_line(error)
    assert content(out) == {}


def test_a_disk_that_is_really_full(inputs, small_disk):
    """What was on it before stays, and nothing else."""
    before = content(small_disk)
    error = call("report", inputs, small_disk, code=2)
    assert "No space left on device" in one_line(error)
    assert content(small_disk) == before


@pytest.mark.parametrize("name", ["estimate", "report"])
def test_a_folder_that_cannot_be_written(name, inputs, read_only):
    error = call(name, inputs, read_only, code=2)
    assert "Cannot write" in one_line(error)
    assert content(read_only) == {}


@pytest.mark.parametrize(
    ("name", "fault", "at"),
    [
        ("estimate", "interrupt-in", "dualt.rows.summary"),
        ("issues", "interrupt-in", "dualt.issues"),
        ("issues", "interrupt-at-fsync", 1),
    ],
)
def test_control_c(name, fault, at, inputs, out, expected):
    error = call(name, inputs, out, fault=fault, at=at, code=130)
    assert one_line(error).startswith("interrupted: ")
    assert content(out) == {}, "nothing half-written"
    call(name, inputs, out)
    assert content(out) == of(name, expected)


def test_two_at_once_leave_the_whole_result_of_one(inputs, out, tmp_path, expected):
    name = "issues"
    call(name, inputs, out, labels="other.npy")
    (file, other), (_, own) = *content(out).items(), *of(name, expected).items()
    assert own != other
    command, flag, _ = COMMANDS[name]
    (tmp_path / "meet").mkdir()
    both = [
        start("meet", tmp_path / "meet", command, inputs / "probs.npy", inputs / labels, flag, out / file)
        for labels in ("labels.npy", "other.npy")
    ]
    assert [process.communicate(timeout=300)[1] for process in both] == ["", ""]
    assert [process.returncode for process in both] == [0, 0]
    assert len(list((tmp_path / "meet").iterdir())) == 2, "both were about to finish"
    assert content(out) in ({file: own}, {file: other})


@pytest.fixture
def shards(inputs, tmp_path):
    """The inputs as three shards each."""
    for name in ("probs", "labels"):
        (tmp_path / name).mkdir()
        for number, part in enumerate(np.array_split(np.load(inputs / f"{name}.npy"), 3)):
            np.save(tmp_path / name / f"{number}.npy", part)
    return tmp_path / "probs", tmp_path / "labels"


@pytest.mark.parametrize(("action", "words"), [("vanish", "No such file"), ("cut", "may be damaged")])
def test_a_shard_that_changes_between_two_passes(action, words, shards, out, expected):
    arguments = ("estimate", *shards, "-e", "clean-count", "-o", out / "t.json")
    whole = (shards[0] / "1.npy").read_bytes()
    error = dualt(*arguments, fault="spoil-shard", at=action, code=2)
    assert words in one_line(error)
    assert "1.npy" in error
    assert content(out) == {}
    (shards[0] / "1.npy").write_bytes(whole)
    dualt(*arguments)
    found = json.loads((out / "t.json").read_text())["transition"]
    np.testing.assert_allclose(found, json.loads(expected["t.json"])["transition"], atol=1e-12)
