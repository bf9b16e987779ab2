"""`make fuzz`: every reader of files and every command under fire, in processes of their own; prints a Markdown table.

With atheris installed, inputs that reach new code are mutated further; without it, valid files are mutated.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import traceback
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, TemporaryFile
from time import perf_counter

HUNG = 120
_INSTRUMENTED = ["dualt", "csv", "gzip", "json", "pickletools", "tarfile", "tomllib", "zipfile"]
_HEAD = ("reader", "inputs", "accepted", "refused", "other", "slowest, ms of CPU", "memory, MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10**9, help="most inputs a reader")
    parser.add_argument("--seconds", type=float, default=5.0, help="most seconds a reader; a command gets twice that")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="those whose name contains this, or one of several: csv|npy")
    parser.add_argument(
        "--engine", choices=("atheris", "plain"), default="atheris" if find_spec("atheris") else "plain"
    )
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        return _one_reader(options)
    from fuzz_commands import COMMANDS
    from fuzz_readers import READERS

    known = [*READERS, *(f"dualt {name}" for name in COMMANDS)]
    print(f"Engine {options.engine}, seed {options.seed}.\n\n| {' | '.join(_HEAD)} |\n|{' --- |' * len(_HEAD)}")
    outcomes = {
        name: _in_process(name, options) for name in known if any(word in name for word in options.only.split("|"))
    }
    total = [sum(outcome[key] for outcome in outcomes.values()) for key in ("accepted", "refused")]
    failed = {name: outcome["failures"] for name, outcome in outcomes.items() if outcome["failures"]}
    other = sum(map(len, failed.values()))
    print(f"| all {len(outcomes)} | {sum(total) + other:,} | {total[0]:,} | {total[1]:,} | {other} | | |")
    for name, failures in failed.items():
        for failure in failures.values():
            print(f"\n{name}: {failure}", file=sys.stderr)
    return 1 if failed else 0


def _in_process(name: str, options: argparse.Namespace) -> dict:
    answer, error = _guided(name, options) if options.engine == "atheris" else _forked(name, options)
    try:
        outcome = json.loads(answer.splitlines()[-1])
    except (IndexError, ValueError):
        crash = f"the process ended\n{error[-3000:]}"
        outcome = {"accepted": 0, "refused": 0, "slowest": 0, "peak_bytes": 0, "failures": {"0": crash}}
    tried = outcome["accepted"] + outcome["refused"] + len(outcome["failures"])
    cells = (
        name, f"{tried:,}", f"{outcome['accepted']:,}", f"{outcome['refused']:,}", len(outcome["failures"]),
        f"{1000 * outcome['slowest']:.0f}", f"{outcome['peak_bytes'] / 2**20:.0f}",
    )  # fmt: skip
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return outcome


def _guided(name: str, options: argparse.Namespace) -> tuple[str, str]:
    """Return what a new process, which atheris ends, says on stdout and stderr."""
    command = [sys.executable, __file__, "--reader", name]
    for option in ("inputs", "seconds", "seed", "engine"):
        command += [f"--{option}", str(getattr(options, option))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout, f"{done.returncode}\n{done.stderr}"


def _forked(name: str, options: argparse.Namespace) -> tuple[str, str]:
    """Return the same of a fork of this one, which spares the imports."""
    with TemporaryFile("w+") as answer, TemporaryFile("w+") as error:
        child = os.fork()
        if not child:
            os.dup2(answer.fileno(), 1)
            os.dup2(error.fileno(), 2)
            try:
                _one_reader(argparse.Namespace(**{**vars(options), "reader": name}))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        answer.seek(0)
        error.seek(0)
        return answer.read(), f"{status}\n{error.read()}"


def _one_reader(options: argparse.Namespace) -> int:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        if options.reader.startswith("dualt "):
            from fuzz_commands import CommandTrial

            trial = CommandTrial(options.reader.removeprefix("dualt "), Path(folder), options.seed)
            print(json.dumps(asdict(trial.run(options.inputs, 2 * options.seconds))), flush=True)
            os.chdir("/")
            return 0
        if options.engine == "atheris":
            _run_guided(options, Path(folder))
        from fuzz_readers import READERS
        from fuzz_trial import Trial

        trial = Trial(READERS[options.reader], Path(folder), options.seed)
        print(json.dumps(asdict(trial.run(options.inputs, options.seconds))))
    return 0


def _run_guided(options: argparse.Namespace, folder: Path) -> None:
    """Let atheris choose what to mutate; it never returns, so the last input ends the process."""
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED):
        from fuzz_readers import READERS
        from fuzz_trial import Trial, measured_memory

        trial = Trial(READERS[options.reader], folder / "files", options.seed)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(trial.seeds):
        (corpus / str(number)).write_bytes(content)
    memory = measured_memory(trial.outcome)
    memory.__enter__()
    began = perf_counter()

    def one_input(data: bytes) -> None:
        faulthandler.dump_traceback_later(HUNG, exit=True)  # for what hangs outside of Python
        trial.read(data)
        if trial.outcome.tried >= options.inputs or perf_counter() - began > options.seconds:
            memory.__exit__(None, None, None)
            print(json.dumps(asdict(trial.outcome)), flush=True)
            os._exit(0)

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        if Random(seed).random() < 0.5:
            return atheris.Mutate(data, max_size)
        return trial.draw(data or None)[:max_size]

    flags = [f"-seed={options.seed + 1}", "-timeout=0", "-rss_limit_mb=0", "-max_len=200000", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
