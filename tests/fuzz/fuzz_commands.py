"""Every option of every command, with values from a list of nasty ones: a result, or a refusal in one line."""

from __future__ import annotations

import os
import traceback
from itertools import pairwise
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from typing import Any

import numpy as np
import typer
from fuzz_trial import Outcome, TooSlow, limited, measured_memory
from typer.testing import CliRunner

from dualt.cli import app

NUMBERS = (
    "-1", "0", "1", "2", "0.5", "1e-300", "nan", "inf", "-inf", "1e9", "1e300", "9" * 30, "2147483648", "1_0", "0x10",
    "٣",
)  # fmt: skip
TEXTS = (
    "", " ", "a\x00b", "\x1b]0;x\x07", "\udcff", "x" * 300, "x" * 5000, "[", "*", "**", "p_*", "=1+1", "None", "null",
    "%s", "{}", "é", "a=b", "=", "a=", "a=" + "[" * 500, "a=9**9**9", "shrink=-1", "n_neighbors=2.5", "features=x",
    "anchor=x", "seeds=9999999999999999", "epochs=nan", "sym-nan", "pair--1", "sym-1e9", "label", "a,b", "a,a", ",",
    "a", "t", "joint", "hoc", "auto", "meta", "cpu", "tls://127.0.0.1:9", "tcp://x:99999999", "zip", "shift",
)  # fmt: skip
PATHS = (
    "absent.npy", "pipe.csv", "pipe.npy", "zero.npy", "zero.json", "loop.csv", "folder", "folder.csv", "empty.csv",
    "empty.npy", "p.npy", "l.npy", "t.csv", "e.json", "a.csv", "r.csv", "names.txt", "objects.npz", "new.csv",
    "new.npy", "new.html", "new", "absent/new.csv", "../new.csv", "/dev/null", "/dev/stdin", "/proc/self/mem", "-",
    "~", "~nobody/x", "y" * 300 + ".csv", "\x1b[2J.npy", "a\x00b.csv", "",
)  # fmt: skip
# Values of these that are large ask for work that is long, and get it.
_LONG = ("epochs", "folds", "seeds", "batch_size", "n_jobs", "patience", "size", "n_samples", "max_")
# On a busy machine, and with all that a command imports.
_SECONDS = 120
_DATA = ["p.npy", "l.npy"]
COMMANDS: dict[str, list[str]] = {
    "estimate": ["estimate", *_DATA],
    "issues": ["issues", *_DATA, "-o", "new.csv"],
    "summarize": ["summarize", *_DATA, "-o", "new.npz"],
    "merge": ["merge", "s.npz", "-o", "new.json"],
    "apply-review": ["apply-review", "t.csv", "r.csv", "-o", "new.csv"],
    "audit": ["audit", "l.npy", "-o", "new.csv", "--size", "20"],
    "evaluate": ["evaluate", *_DATA, "--transition", "e.json"],
    "train": [
        "train", "t.csv", "-o", "model", "--overwrite", "--network", "mlp-small", "--method", "ce", "--folds", "1",
        "--epochs", "1", "--n-jobs", "1",
    ],
    "probs": ["probs", "t.csv", "--label", "label", "--features", "a,b", "-o", "new.csv"],
    "predict": ["predict", "m", "t.csv", "-o", "new.csv"],
    "reproduce": ["reproduce", "figure2", "--profile", "smoke", "--show", "-o", "model"],
    "data": ["data", "get", "digits"],
    "demo": ["demo", "--no-network", "--report", "new.html"],
}  # fmt: skip


def make_files(folder: Path, *, model: bool) -> None:
    """Write the inputs of all commands, and things that are no inputs."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.3), 60)
    np.save(folder / "p.npy", probs)
    np.save(folder / "l.npy", np.where(rng.random(60) < 0.2, 0, probs.argmax(axis=1)))
    np.savez(folder / "objects.npz", a=np.array([{}], object), b=np.zeros(3))
    rows = [f"{a:.3f},{b:.3f},{'xyz'[number % 3]}" for number, (a, b) in enumerate(rng.normal(size=(30, 2)))]
    (folder / "t.csv").write_text("\n".join(["a,b,label", *rows, ""]))
    (folder / "r.csv").write_text("index,old,new\n0,x,y\n3,x,z\n")
    (folder / "a.csv").write_text("index,given,true\n0,0,0\n1,1,2\n")
    (folder / "names.txt").write_text("x\ny\nz\n")
    for name in ("empty.csv", "empty.npy"):
        (folder / name).touch()
    for name in ("folder", "folder.csv"):
        (folder / name).mkdir(exist_ok=True)
    for name in ("pipe.csv", "pipe.npy"):
        os.mkfifo(folder / name)
    for name in ("zero.npy", "zero.json"):
        (folder / name).symlink_to("/dev/zero")
    (folder / "loop.csv").symlink_to("loop.csv")
    made = [["estimate", "p.npy", "l.npy", "-o", "e.json"], ["summarize", "p.npy", "l.npy", "-o", "s.npz"]]
    for arguments in [*made, *([[*COMMANDS["train"][:3], "m", *COMMANDS["train"][4:]]] if model else [])]:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output


class CommandTrial:
    """Runs one command with options drawn at random, in a folder of its own."""

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        from dualt.rows import cluster

        cluster._TIMEOUT = "1s"
        self.folder, self.rng, self.outcome = folder / "a" / "b", Random(seed), Outcome()
        self.folder.mkdir(parents=True)
        os.chdir(self.folder)
        os.environ["DUALT_CACHE"] = str(folder / "cache")
        make_files(self.folder, model=name == "predict")
        self.kept = {path: path.read_bytes() for path in self.folder.rglob("*") if _is_plain(path)}
        self.base = COMMANDS[name]
        command = typer.main.get_command(app).commands[self.base[0]]
        command = getattr(command, "commands", {}).get(self.base[1], command)
        self.parameters = [
            each for each in command.params if each.name != "help" and (name, each.name) != ("demo", "network")
        ]
        self.run_once(self.base)  # does the imports, which are no part of what is measured
        self.outcome = Outcome(failures=self.outcome.failures)

    def draw(self) -> list[str]:
        """Return the command with one or two of its options, or an argument, replaced."""
        arguments = list(self.base)
        for _ in range(self.rng.choice((1, 1, 2))):
            parameter = self.rng.choice(self.parameters)
            if parameter.param_type_name == "option" and parameter.is_flag:
                arguments.append(self.rng.choice([*parameter.opts, *parameter.secondary_opts]))
            elif parameter.param_type_name == "option":
                arguments += [parameter.opts[0], self._value(parameter)]
            elif len(self.base) > 1:
                arguments[self.rng.randrange(1, min(3, len(self.base)))] = self._value(parameter)
        return arguments

    def _value(self, parameter: Any) -> str:
        # Of the first, or of the second, by the version of Typer.
        shown = str(getattr(parameter, "type", None) or parameter.type_descriptor.annotation).lower()
        numeric, path = any(kind in shown for kind in ("int", "float")), "path" in shown
        values = NUMBERS if numeric else PATHS if path else (*TEXTS, *PATHS)
        if self.rng.random() < 0.1:
            values = NUMBERS + TEXTS + PATHS
        value = self.rng.choice(values)
        if (parameter.name or "").startswith(_LONG) and len(value) > 5:
            return "3"
        return value

    def run(self, n_inputs: int, seconds: float = 1e9) -> Outcome:
        """Run the command until there were `n_inputs`, or the time is over."""
        began = perf_counter()
        with measured_memory(self.outcome):
            while self.outcome.tried < n_inputs and perf_counter() - began < seconds:
                self.run_once(self.draw())
        return self.outcome

    def run_once(self, arguments: list[str]) -> None:
        """Run one command line and count what happens."""
        number, began, failure = self.outcome.tried, process_time(), None
        try:
            with limited(_SECONDS):
                result = CliRunner().invoke(app, arguments)
            error = result.exception
            if error is not None and not isinstance(error, SystemExit):
                failure = "".join(traceback.format_exception(error))
            elif result.exit_code not in (0, 1, 2):
                failure = f"exit code {result.exit_code}\n{result.output}"
            elif any(sign in result.output for sign in "\x1b\x07"):
                failure = f"control characters\n{result.output!r}"
        except (Exception, TooSlow) as error:
            failure = "".join(traceback.format_exception(error))
        changed = [path for path, content in self.kept.items() if not path.exists() or path.read_bytes() != content]
        named = {value for option, value in pairwise(arguments) if option in ("-o", "--output", "--report")}
        lost = [path for path in changed if path.name not in named]
        if lost and not {"--in-place", "--move", "--overwrite"} & {*arguments}:
            failure = f"{lost[0].name} was changed or lost"
        for path in changed:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.kept[path])
        if failure is not None:
            self.outcome.failures[number] = f"{arguments}\n{failure}"
        elif result.exit_code:
            self.outcome.refused += 1
        else:
            self.outcome.accepted += 1
        self.outcome.slowest = max(self.outcome.slowest, process_time() - began)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
