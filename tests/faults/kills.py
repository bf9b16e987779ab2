"""Kill commands at random moments, look at what they leave, and run them again: `python tests/faults/kills.py -n 100`.

Commands run in forked processes, which saves the imports. A file is half-written if it is neither what stood there
before nor what an undisturbed run writes, lost if it is gone, and runs are mixed if files of two of them stand beside
each other as if they were one, or if running again does not come to the undisturbed result.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from shutil import copytree
from tempfile import TemporaryDirectory

import numpy as np

_HEAD = ("command", "kills", "too late, beside them", "left old", "left new", "half-written", "lost", "mixed")


@dataclass
class Found:
    """What was found after the kills of one command."""

    kills: int = 0
    late: int = 0
    old: int = 0
    new: int = 0
    half_written: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)

    @property
    def bad(self) -> list[str]:
        return [*self.half_written, *self.lost, *self.mixed]


def preload() -> None:
    """Import what commands import, and what an optimizer and a figure do when they are first made."""
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg  # noqa: F401
    import torch._dynamo  # noqa: F401

    import dualt.nn.run
    import dualt.report
    import dualt.reproduce  # noqa: F401


def spawn(*arguments: object) -> int:
    """Run a command in a forked process and return its id."""
    child = os.fork()
    if child:
        return child
    code, quiet = 1, os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        from dualt.cli import app

        app([str(argument) for argument in arguments])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def finish(*arguments: object) -> float:
    """Run a command to its end and return how long it took."""
    began = time.monotonic()
    if status := os.waitpid(spawn(*arguments), 0)[1]:
        raise RuntimeError(f"dualt {' '.join(map(str, arguments))} ended with {status}")
    return time.monotonic() - began


def kill(delay: float, *arguments: object) -> bool:
    """Kill a command after some seconds; tell whether it was over by then."""
    child = spawn(*arguments)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.WIFEXITED(os.waitpid(child, 0)[1])


def content(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder but for temporary ones, which a kill may leave."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".tmp" not in str(path))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files if path.name != ".lock"}


def compare(found: Found, now: dict[str, bytes], before: dict[str, bytes], after: dict[str, bytes]) -> None:
    """Count what a kill left of files that are replaced."""
    for name in before.keys() | now.keys():
        if name not in now:
            found.lost.append(name)
        elif now[name] not in (before.get(name), after.get(name)):
            found.half_written.append(name)
    found.new += all(now.get(name) == after[name] for name in after)
    found.old += all(now.get(name) == before.get(name) for name in before)


class Issues:
    """A table and a page of issues, over those of other labels."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        probs = rng.dirichlet(np.full(10, 0.2), 4000)
        labels = probs.argmax(axis=1)
        labels[::4] = (labels[::4] + 1) % 10
        np.save(folder / "probs.npy", probs)
        np.save(folder / "labels.npy", labels)
        np.save(folder / "other.npy", np.roll(labels, 7))
        self.folder, self.before, self.after = folder, folder / "before", folder / "after"
        for out, given in ((self.before, "other.npy"), (self.after, "labels.npy")):
            out.mkdir()
            self.seconds = finish(*self.command(out, given))

    def command(self, out: Path, labels: str = "labels.npy") -> tuple[object, ...]:
        data = (self.folder / "probs.npy", self.folder / labels)
        return ("issues", *data, "-o", out / "i.csv", "--report", out / "r.html", "--quiet")

    def once(self, delay: float, out: Path, found: Found) -> None:
        copytree(self.before, out)
        found.late += kill(delay, *self.command(out))
        compare(found, content(out), content(self.before), content(self.after))
        finish(*self.command(out))
        if content(out) != content(self.after):
            found.mixed.append("issues, run again")


class ApplyReview:
    """A table of labels that is corrected in place; its copy must be the old one."""

    def __init__(self, folder: Path) -> None:
        text = "\n".join(["id,label,text", *(f"{n},{'abc'[n % 3]},{'x' * 60}" for n in range(40_000)), ""])
        new = {number: "abc"[(number + 1) % 3] for number in range(0, 40_000, 9)}
        reviewed = [f"{number},{'abc'[number % 3]},{label}" for number, label in new.items()]
        (folder / "review.csv").write_text("\n".join(["index,old,new", *reviewed, ""]))
        self.folder, self.text = folder, text.encode()
        out = folder / "after"
        out.mkdir()
        (out / "t.csv").write_bytes(self.text)
        self.seconds = finish(*self.command(out))
        self.after = content(out)

    def command(self, out: Path) -> tuple[object, ...]:
        return ("apply-review", out / "t.csv", self.folder / "review.csv", "--label", "label", "--in-place", "--quiet")

    def once(self, delay: float, out: Path, found: Found) -> None:
        out.mkdir()
        (out / "t.csv").write_bytes(self.text)
        found.late += kill(delay, *self.command(out))
        now = content(out)
        compare(found, now, {"t.csv": self.text}, self.after)
        if now["t.csv"] != self.text and self.text not in (now[name] for name in now if ".bak" in name):
            found.lost.append("the copy of a table that was replaced")
        if now["t.csv"] == self.text:
            finish(*self.command(out))
        if content(out)["t.csv"] != self.after["t.csv"]:
            found.mixed.append("apply-review, run again")


class Train:
    """A training over another one's model (`--overwrite`), or resumed."""

    def __init__(self, folder: Path) -> None:
        labels = np.arange(120) % 2
        points = np.random.default_rng(0).normal(size=(120, 2)) + 3 * labels[:, None]
        np.savez(folder / "points.npz", X=points, y=labels)
        self.folder, self.before, self.after = folder, folder / "before", folder / "after"
        finish(*self.command(self.before, "--random-state", 1))
        self.seconds = finish(*self.command(self.after))
        self.weights = {_weights(out): name for out, name in ((self.before, "old"), (self.after, "new"))}
        self.number = 0

    def command(self, out: Path, *more: object) -> tuple[object, ...]:
        settings = ("--method", "ce", "--network", "mlp-small", "--recipe", "paper", "--epochs", 8, "--n-jobs", 1)
        return ("train", self.folder / "points.npz", *settings, "-o", out, "--json", *more)

    def once(self, delay: float, out: Path, found: Found) -> None:
        from dualt.errors import DualtError
        from dualt.nn.checkpoint import read_checkpoint
        from dualt.nn.saved_model import Model

        self.number += 1
        over = self.number % 2 == 0
        if over:
            copytree(self.before, out)
        found.late += kill(delay, *self.command(out, *(["--overwrite"] if over else [])))
        for checkpoint in out.glob("checkpoints/*.safetensors"):
            try:
                read_checkpoint(checkpoint)
            except DualtError:  # noqa: PERF203
                found.half_written.append("a checkpoint")
        try:
            Model.load(out)
        except DualtError:
            pass
        else:
            which = self.weights.get(_weights(out), "")
            found.old += which == "old"
            found.new += which == "new"
            about = Model.load(out).about
            if not which or about["random_state"] != (1 if which == "old" else 0):
                found.mixed.append("a model of two runs")
        finish(*self.command(out, "--overwrite" if over else "--resume"))
        if _weights(out) != _weights(self.after):
            found.mixed.append("train, run again")


def _weights(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


class Reproduce:
    """A sweep of six runs."""

    def __init__(self, folder: Path) -> None:
        self.after = folder / "after"
        self.seconds = finish(*self.command(self.after))

    @staticmethod
    def command(out: Path) -> tuple[object, ...]:
        grid = ("--set", "sizes=60", "--set", "noise=sym-20", "--set", "seeds=2", "--set", "epochs=2")
        return ("reproduce", "figure2", "--profile", "smoke", *grid, "-o", out, "--json")

    @staticmethod
    def _records(out: Path) -> dict[str, object]:
        from dualt.reproduce import read_records

        dropped = ("seconds", "finished")
        return {
            name: {key: value for key, value in record.items() if key not in dropped}
            for name, record in read_records(out).items()
        }

    def once(self, delay: float, out: Path, found: Found) -> None:
        found.late += kill(delay, *self.command(out))
        try:
            kept = self._records(out)
        except ValueError:
            found.half_written.append("a record")
            kept = {}
        found.new += bool(kept)
        expected = self._records(self.after)
        if not kept.items() <= expected.items():
            found.mixed.append("a record of another run")
        path = out / "records.jsonl"
        n_lines = len(path.read_text().splitlines()) if path.exists() else 0
        finish(*self.command(out))
        if self._records(out) != expected:
            found.mixed.append("reproduce, run again")
        if len(path.read_text().splitlines()) > n_lines + len(expected) - len(kept):
            found.lost.append("a finished record was made again")


COMMANDS: dict[str, Callable[[Path], object]] = {
    "issues": Issues, "apply-review": ApplyReview, "train": Train, "reproduce": Reproduce
}  # fmt: skip


def kill_many(name: str, n_kills: int, seed: int) -> Found:
    """Kill a command at so many random moments of its run."""
    rng, found = Random(f"{seed} {name}"), Found()
    with TemporaryDirectory(prefix="dualt-kills-") as folder:
        place = Path(folder) / "made"
        place.mkdir()
        case = COMMANDS[name](place)
        for number in count():
            if found.kills - found.late == n_kills:
                return found
            found.kills += 1
            case.once(rng.uniform(0, case.seconds), Path(folder) / str(number), found)
    raise AssertionError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--kills", type=int, default=100, help="in all, shared by the commands")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    preload()

    print(f"| {' | '.join(_HEAD)} |\n|{' --- |' * len(_HEAD)}")
    names, bad = [name for name in COMMANDS if options.only in name], []
    for name in names:
        found = kill_many(name, options.kills // len(names), options.seed)
        bad += [f"{name}: {each}" for each in found.bad]
        counts = [found.kills - found.late, found.late, found.old, found.new]
        counts += [len(each) for each in (found.half_written, found.lost, found.mixed)]
        print(f"| `{name}` | {' | '.join(map(str, counts))} |", flush=True)
    print(*bad, sep="\n", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
