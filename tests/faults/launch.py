"""Run the command line of `dualt` in a process in which something goes wrong at a chosen moment.

`python launch.py FAULT ARGUMENT dualt-arguments…`. Files are written by way of `os.fsync`, just before they get their
name: the worst moment to be stopped at. `python launch.py --serve LIBRARY…` loads libraries, which takes seconds, and
forks such a process for every list of these words that comes as a line of JSON; it answers with exit code and stderr.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def _at_fsync(act: Callable[[int], None]) -> None:
    """Call `act` with 1, 2, 3… whenever a file is about to be finished."""
    real, count = os.fsync, 0

    def fsync(descriptor: int) -> None:
        nonlocal count
        count += 1
        act(count)
        real(descriptor)

    os.fsync = fsync


def _signal_at(number: str, which: signal.Signals) -> None:
    _at_fsync(lambda count: os.kill(os.getpid(), which) if count == int(number) else None)


def _kill_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def _interrupt_in(module: str) -> None:
    """Send Ctrl-C from outside as soon as a module is there: while the data are read."""

    def watch() -> None:
        while module not in sys.modules:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


def _limit_files(size: str) -> None:
    """No file may grow beyond `size` bytes, as if the disk were full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))


def _meet(folder: str) -> None:
    """Wait with a whole file that has no name yet, until another process has one too."""

    def meet(_: int) -> None:
        (Path(folder) / str(os.getpid())).touch()
        until = time.monotonic() + 60
        while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.005)

    _at_fsync(meet)


def _spoil_shard(action: str) -> None:
    """Between the first pass over the shards and the second, one of them is removed, or replaced by half of it."""
    from dualt.io.shards import FileRows

    read, seen = FileRows.__call__, []

    def spoilt(self: FileRows):
        if self.path.stem == "1":
            seen.append(self)
            if len(seen) == 2:
                content = self.path.read_bytes()
                self.path.unlink()
                if action == "cut":
                    self.path.write_bytes(content[: len(content) // 2])
        yield from read(self)

    FileRows.__call__ = spoilt


FAULTS: dict[str, Callable[[str], None]] = {
    "none": lambda _: None,
    "kill-after": lambda seconds: _kill_after(float(seconds)),
    "kill-at-fsync": lambda number: _signal_at(number, signal.SIGKILL),
    "interrupt-at-fsync": lambda number: _signal_at(number, signal.SIGINT),
    "interrupt-in": _interrupt_in,
    "limit-files": _limit_files,
    "meet": _meet,
    "spoil-shard": _spoil_shard,
}


def _serve(libraries: list[str]) -> list[str]:
    """Fork a process for every line, in which alone this returns, with the words of the line."""
    for library in libraries:
        import_module(library)
    assert "dualt" not in sys.modules
    for line in sys.stdin:
        told, said = os.pipe()
        child = os.fork()
        if not child:
            nothing = os.open(os.devnull, os.O_RDWR)
            for own, ordinary in ((nothing, 0), (nothing, 1), (said, 2)):
                os.dup2(own, ordinary)
            return json.loads(line)
        os.close(said)
        with os.fdopen(told, encoding="utf-8") as stream:
            error = stream.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(json.dumps([code, error]) + "\n")
        sys.stdout.flush()
    sys.exit()


if __name__ == "__main__":
    words = _serve(sys.argv[2:]) if sys.argv[1] == "--serve" else sys.argv[1:]
    # What was started in the background, as these tests may be, inherits that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fault, argument, *arguments = words
    sys.argv = ["dualt", *arguments]
    FAULTS[fault](argument)
    from dualt.cli import main

    main()
