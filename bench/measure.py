"""Time and memory, measured the same way by every benchmark: best of several runs, in one process, one thread.

A clock is `perf_counter`, or `process_time` for what uses one thread: other work on the machine then disturbs less.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def best_seconds(
    function: Callable[[], Any], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the shortest of several runs: what the machine allows when nothing else disturbs."""
    best = float("inf")
    for _ in range(repeats):
        started = clock()
        function()
        best = min(best, clock() - started)
    return best


def best_of(
    runs: dict[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the shortest time of each run; they take turns, so that all see the same machine."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], best_seconds(run, 1, clock))
    return best


def anonymous_megabytes() -> float:
    """Return this process's anonymous resident memory: what it allocated, not what it mapped from files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no RssAnon: this benchmark reads Linux's /proc")


def peak_megabytes(function: Callable[[], Any]) -> float:
    """Return by how much anonymous memory rose above its level at the start while `function` ran."""
    before = peak = anonymous_megabytes()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, anonymous_megabytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        function()
    finally:
        done.set()
        watcher.join()
    return max(peak, anonymous_megabytes()) - before


def collect(
    path: Path | None, cases: Iterable[tuple[dict[str, Any], Callable[[], Iterable[dict[str, Any]]]]]
) -> list[dict[str, Any]]:
    """Measure the cases that the file of results lacks, write them there as they come, and return all.

    A case is what tells it from others, and a function that measures it.
    """
    from dualt.files import atomic_write

    records: list[dict[str, Any]] = json.loads(path.read_text()) if path is not None and path.exists() else []
    done = [record.items() for record in records]
    for case, measure in cases:
        if any(case.items() <= record for record in done):
            continue
        records += [{**case, **found} for found in measure()]
        if path is not None:
            with atomic_write(path) as stream:
                json.dump(records, stream, indent=1)
    return records


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run in a fresh process, which may start others."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def row(*cells: Any) -> None:
    """Print a row of a Markdown table, numbers with three digits."""
    shown = (f"{cell:.3f}".replace("nan", "–") if isinstance(cell, float) else str(cell) for cell in cells)
    print("| " + " | ".join(shown) + " |", flush=True)


def head(*cells: str) -> None:
    """Print the head of a Markdown table."""
    row(*cells)
    row(*["---"] * len(cells))


def machine() -> str:
    """Return a line that says where the figures come from."""
    import numpy as np

    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "",
    )
    from dualt import kernels

    kind = "compiled kernels" if kernels.library else "no compiled kernels"
    return (
        f"{model or platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, one thread, {kind}"
    )
