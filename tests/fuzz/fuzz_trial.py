"""One reader under fire: every input is read under a limit of time and memory, and what happens is counted."""

from __future__ import annotations

import resource
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from fuzz_mutations import mutate
from fuzz_readers import Reader

from dualt.errors import DualtError, DualtWarning

SECONDS = 30
# No input is larger than some hundred kB: whoever asks for more than this believes a header.
ADDRESS_SPACE = 1 << 30


class TooSlow(BaseException):
    """Not an `Exception`: no reader may take it for a damaged file."""


@dataclass
class Outcome:
    """What became of the inputs of one reader; `failures` are tracebacks, by the input's number."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    peak_bytes: int = 0
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        return self.accepted + self.refused + len(self.failures)


class Trial:
    """Reads inputs with one reader in a folder of its own."""

    def __init__(self, reader: Reader, folder: Path, seed: int) -> None:
        self.reader, self.seeds, self.rng, self.outcome = reader, reader.seeds(), Random(seed), Outcome()
        self.path = folder / reader.file
        for name, content in {**reader.beside(), reader.file: self.seeds[0]}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        # Also does the imports, which are no part of what is measured.
        assert any(self._accepts(content) for content in self.seeds), "none of the files to start from is valid"

    def _accepts(self, content: bytes) -> bool:
        self.path.write_bytes(content)
        try:
            self.reader.read(self.path)
        except DualtError:  # Readers of one format share its files, and want different things.
            return False
        return True

    def draw(self, data: bytes | None = None) -> bytes:
        """Return a mutated file: as a whole, or inside its container."""
        data = self.rng.choice(self.seeds) if data is None else data
        if self.reader.inside is not None and self.rng.random() < 0.5:
            try:
                return self.reader.inside(data, lambda part: mutate(part, self.rng, self.seeds), self.rng)
            except Exception:  # What is damaged already cannot be unpacked.
                return mutate(data, self.rng, self.seeds)
        return mutate(data, self.rng, self.seeds)

    def read(self, data: bytes) -> None:
        """Read one input and count what happens."""
        self.path.write_bytes(data)
        number, began = self.outcome.tried, process_time()
        try:
            with limited(), warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", DualtWarning)
                self.reader.read(self.path)
            self.outcome.accepted += 1
        except DualtError as error:
            if ran_out_of_memory(error):
                self.outcome.failures[number] = "".join(traceback.format_exception(error))
            else:
                self.outcome.refused += 1
        except (Exception, TooSlow) as error:
            self.outcome.failures[number] = "".join(traceback.format_exception(error))
        self.outcome.slowest = max(self.outcome.slowest, process_time() - began)

    def run(self, n_inputs: int, seconds: float = 1e9) -> Outcome:
        """Read mutated files until there were `n_inputs`, or the time is over."""
        began = perf_counter()
        with measured_memory(self.outcome):
            while self.outcome.tried < n_inputs and perf_counter() - began < seconds:
                self.read(self.draw())
        return self.outcome


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error of ours hides an allocation that was refused.

    Python's parser, which reads the header of an `.npy` file, says the same of brackets too deep for its stack.
    """
    while error is not None:
        if isinstance(error, MemoryError):
            return "ast.py" not in traceback.extract_tb(error.__traceback__)[-1].filename
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    """Limit time and memory."""

    def stop(*_: object) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_status("VmSize") + ADDRESS_SPACE, hard))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


@contextmanager
def measured_memory(outcome: Outcome) -> Iterator[None]:
    """Measure by how much the resident memory rises above what it is now."""
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # The high-water mark starts anew.
    yield
    outcome.peak_bytes = max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)
