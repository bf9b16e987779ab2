"""Time and memory, measured the same way by every benchmark: best of several runs, in one process, one thread."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def best_seconds(function: Callable[[], Any], repeats: int = 7) -> float:
    """Return the shortest of several runs: what the machine allows when nothing else disturbs."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return best


def best_of(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the shortest time of each run; they take turns, so that all see the same machine."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], best_seconds(run, 1))
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
