"""A few hundred mutated files for every reader: valid data or an error of ours, soon, in little memory.

`make fuzz` tries many more.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_commands import COMMANDS, CommandTrial
from fuzz_readers import READERS
from fuzz_trial import Trial

from dualt.cli import app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="time and memory are limited by Linux"),
]
INPUTS = 150
# By how much the resident memory may rise.
RESIDENT = 128 << 20


@pytest.mark.parametrize("name", READERS)
def test_mutated_files_are_read_or_refused(name, tmp_path):
    outcome = Trial(READERS[name], tmp_path, seed=2).run(INPUTS)
    assert not outcome.failures, next(iter(outcome.failures.values()))
    assert outcome.accepted + outcome.refused == INPUTS
    assert outcome.refused > 0
    assert outcome.peak_bytes < RESIDENT


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_with_nasty_options_answer_or_refuse(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("typer.launch", lambda *_: 0)
    n_runs = 5 if name in ("train", "reproduce", "demo") else 25
    outcome = CommandTrial(name, tmp_path, seed=3).run(n_runs)
    assert not outcome.failures, next(iter(outcome.failures.values()))
    assert outcome.refused > 0 or n_runs == 5


def test_every_command_is_under_fire():
    names = {command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands}
    assert names | {"data"} == {*COMMANDS}


def test_a_seed_always_gives_the_same_inputs(tmp_path):
    for name in ("probabilities .npz", "archive .tar.gz", "checkpoint"):
        first, second = (Trial(READERS[name], tmp_path, seed=7) for _ in range(2))
        assert [first.draw() for _ in range(50)] == [second.draw() for _ in range(50)]


def test_the_run_prints_a_table_and_finds_nothing():
    script = Path(__file__).parent / "run.py"
    command = [sys.executable, script, "--inputs", "20", "--only", "idx", "--engine", "plain"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("| idx") == 2
    assert "| all 2 | 40 |" in done.stdout


class Broken:
    """A reader with every fault that the trial must find."""

    def __init__(self, fault):
        self.fault = fault

    def __call__(self, path):
        if path.read_bytes() != b"[1]":
            self.fault()


def out_of_memory():
    try:
        bytearray(1 << 40)
    except MemoryError as error:
        from dualt.errors import FileError

        raise FileError("Cannot read it.") from error


@pytest.mark.parametrize(
    "fault", [lambda: json.loads("{"), out_of_memory, lambda: 1 / 0], ids=["error", "memory", "zero"]
)
def test_the_trial_finds_what_it_looks_for(fault, tmp_path):
    from fuzz_readers import Reader

    outcome = Trial(Reader("x.json", lambda: [b"[1]"], Broken(fault)), tmp_path, seed=0).run(20)
    assert len(outcome.failures) >= 15
