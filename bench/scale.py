"""Data larger than memory: throughput against reading the same bytes, memory, threads, and cleanlab's batched mode.

    python bench/scale.py --scale 0.1   prints Markdown tables; --scale 1 (the default) needs 7 GB of disk
    python bench/scale.py --issues      finds wrong labels in files instead, beside cleanlab's batched mode

Files are written to a temporary folder ($TMPDIR). Every figure is of a fresh process; ratios are within one process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from measure import anonymous_megabytes, apart, best_of, best_seconds, machine, peak_megabytes

NARROW, WIDE, PEER = (10_000_000, 10, 20, "float32"), (1_000_000, 1_000, 1, "float16"), (1_000_000, 100, 1, "float32")
_BYTES = {"float16": 2, "float32": 4}
_SOAK_SECONDS = 60
Shape = tuple[int, int, int, str]


def write_shards(folder: Path, shape: Shape) -> None:
    """Write softmax rows that favour a clean class, and labels of which a fifth are random, in shards."""
    import numpy as np

    n_samples, n_classes, n_shards, dtype = shape
    rows = n_samples // n_shards
    at_once = max(1, (1 << 23) // n_classes)
    for number in range(n_shards):
        rng = np.random.default_rng(number)
        clean = rng.integers(0, n_classes, rows)
        probs = np.lib.format.open_memmap(folder / f"probs{number}.npy", "w+", dtype, (rows, n_classes))
        for low in range(0, rows, at_once):
            part = clean[low : low + at_once]
            chunk = rng.standard_normal((len(part), n_classes), dtype=np.float32)
            chunk[np.arange(len(part)), part] += rng.normal(np.log(n_classes) + 2, 2, len(part)).astype(np.float32)
            np.exp(chunk, out=chunk)
            probs[low : low + at_once] = chunk / chunk.sum(axis=1, keepdims=True)
        np.save(
            folder / f"labels{number}.npy", np.where(rng.random(rows) < 0.8, clean, rng.integers(n_classes, size=rows))
        )


def opened(folder: Path, n_shards: int | None = None, n_jobs: int = 1) -> Any:
    """Return the posterior of the first shards, nothing of it read yet."""
    from dualt.io import open_shards
    from dualt.rows import NoisyPosterior

    blocks = open_shards(folder / "probs*.npy", folder / "labels*.npy")[0]
    return NoisyPosterior.from_blocks(blocks[:n_shards], n_jobs=n_jobs)


def estimate(folder: Path, estimator: str | None, n_shards: int | None = None, n_jobs: int = 1) -> Any:
    from dualt.estimators import estimate_posterior

    return estimate_posterior(opened(folder, n_shards, n_jobs), estimator)


def read_and_sum(folder: Path) -> None:
    """Read every file of probabilities into memory and add it up: the least that can be done with it."""
    import numpy as np

    for path in folder.glob("probs*.npy"):
        dtype = np.load(path, mmap_mode="r").dtype
        np.sum(np.fromfile(path, dtype, offset=128), dtype=np.float32)


def timed(function: Callable[[], Any]) -> tuple[float, float]:
    """Return CPU seconds and peak megabytes of one run."""
    peak = peak_megabytes(function)
    return best_seconds(function, 2, time.process_time), peak


def measure_stream(folder: Path, repeats: int) -> dict[str, Any]:
    """Return seconds of reading, of dual-t with one and two threads, and of the default, and their memory."""
    estimate(folder, "dual-t", 1)  # imports, and files into the page cache
    found: dict[str, Any] = {"dual-t memory": peak_megabytes(lambda: estimate(folder, "dual-t"))}
    found["two threads memory"] = peak_megabytes(lambda: estimate(folder, "dual-t", n_jobs=2))
    runs: dict[str, Callable[[], Any]] = {
        "read": lambda: read_and_sum(folder),
        "dual-t": lambda: estimate(folder, "dual-t"),
        "two threads": lambda: estimate(folder, "dual-t", n_jobs=2),
    }
    found |= best_of(runs, repeats)
    slow: dict[str, Callable[[], Any]] = {
        "default": partial(estimate, folder, None),
        "default two threads": partial(estimate, folder, None, n_jobs=2),
    }
    found |= best_of(slow, 3 if found["dual-t"] < 0.5 else 1)
    found |= {f"{name} memory": peak_megabytes(run) for name, run in slow.items()}  # apart: watching takes time
    return found


def measure_dask(folder: Path, repeats: int) -> tuple[float, float]:
    """Return seconds of dual-t with two threads, and with two Dask workers on this machine."""
    from dualt.estimators import estimate_posterior
    from dualt.rows.dask import DaskPosterior, connected

    def on_workers() -> Any:
        return estimate_posterior(DaskPosterior.of(opened(folder)), "dual-t")

    with connected("local"):
        on_workers()  # the workers import
        estimate(folder, "dual-t", 1)
        runs = {"threads": lambda: estimate(folder, "dual-t", n_jobs=2), "workers": on_workers}
        best = best_of(runs, repeats)
    return best["threads"], best["workers"]


def measure_growth(folder: Path, n_shards: int, repeats: int) -> list[float]:
    """Return seconds for a quarter, half and all of the shards."""
    estimate(folder, "dual-t", 1)
    parts = [n_shards // part for part in (4, 2, 1)]
    return list(best_of({str(part): partial(estimate, folder, "dual-t", part) for part in parts}, repeats).values())


def measure_issues(folder: Path, n_jobs: int) -> tuple[float, float, int]:
    """Return seconds, peak megabytes and number of issues of `dualt issues` without its table."""
    from dualt.issues import find_posterior_issues

    flagged: list[int] = []
    find = lambda: flagged.append(int(find_posterior_issues(opened(folder, n_jobs=n_jobs)).is_issue.sum()))  # noqa: E731
    return (*timed(find), flagged[0])


def measure_cleanlab(folder: Path) -> tuple[float, float, int]:
    """Return the same of cleanlab's batched mode, from the same files, in one process."""
    from cleanlab.experimental.label_issues_batched import find_label_issues_batched

    flagged: list[int] = []
    paths = {"pred_probs_file": str(folder / "probs0.npy"), "labels_file": str(folder / "labels0.npy")}
    find = lambda: flagged.append(len(find_label_issues_batched(**paths, n_jobs=1, verbose=False)))  # noqa: E731
    return (*timed(find), flagged[0])


def measure_soak(folder: Path, seconds: float) -> list[float]:
    """Return anonymous memory after every estimate of a loop that lasts `seconds`, and at least five rounds."""
    levels: list[float] = []
    started = time.perf_counter()
    while len(levels) < 5 or time.perf_counter() - started < seconds:
        estimate(folder, "dual-t", n_jobs=1 + len(levels) % 2)
        levels.append(anonymous_megabytes())
    return levels


def scaled(shape: Shape, scale: float) -> Shape:
    n_samples, n_classes, n_shards, dtype = shape
    return max(int(n_samples * scale) // n_shards, 1) * n_shards, n_classes, n_shards, dtype


def stream_row(folder: Path, shape: Shape, repeats: int) -> str:
    n_samples, n_classes, n_shards, dtype = shape
    found = apart(measure_stream, folder, repeats)
    gigabytes = n_samples * n_classes * _BYTES[dtype] / 1e9
    faster = found["default"] / found["default two threads"]
    memory = " · ".join(
        f"{found[f'{name} memory']:.0f}" for name in ("dual-t", "two threads", "default", "default two threads")
    )
    return (
        f"| {n_samples:,} × {n_classes:,} {dtype}, {n_shards} files | {gigabytes / found['dual-t']:.2f}"
        f" | {found['read'] / found['dual-t']:.2f} | {found['dual-t'] / found['two threads']:.2f}"
        f" | {found['default'] / found['dual-t']:.1f} | {faster:.2f} | {memory} |"
    )


def report(folder: Path, scale: float, repeats: int) -> Iterator[str]:
    """Yield the lines of the report, measuring as it goes."""
    yield (
        "| rows × classes | dual-t, GB/s | of the speed of np.fromfile + np.sum | two threads, × faster"
        " | default, × dual-t | default, two threads, × faster"
        " | peak memory, MB: dual-t · two threads · default · both |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for number, shape in enumerate((scaled(NARROW, scale), scaled(WIDE, scale))):
        place = folder / str(number)
        place.mkdir()
        apart(write_shards, place, shape)
        yield stream_row(place, shape, repeats)
    narrow = scaled(NARROW, scale)
    quarter, half, full = apart(measure_growth, folder / "0", narrow[2], repeats)
    yield f"\nCost of 1×, 2×, 4× the rows: 1, {half / quarter:.2f}, {full / quarter:.2f}.\n"
    two_threads, two_workers = apart(measure_dask, folder / "0", repeats)
    yield f"Two Dask workers take {two_workers / two_threads:.2f} times as long as two threads.\n"
    levels = apart(measure_soak, folder / "0", _SOAK_SECONDS * scale)
    yield f"Memory of {len(levels)} estimates in a loop: second {levels[1]:.0f} MB, last {levels[-1]:.0f} MB.\n"


def report_issues(folder: Path, scale: float) -> Iterator[str]:
    """Yield the lines of finding wrong labels in files."""
    shape = scaled(PEER, scale)
    apart(write_shards, folder, shape)
    yield f"Wrong labels of {shape[0]:,} × {shape[1]} from .npy files:\n"
    yield "| | CPU time, of cleanlab's | peak memory, MB | flagged |"
    yield "| --- | --- | --- | --- |"
    peer, ours = apart(measure_cleanlab, folder), apart(measure_issues, folder, 1)
    for name, found in {"dualt": ours, "cleanlab, batched": peer}.items():
        yield f"| {name} | {found[0] / peer[0]:.2f} | {found[1]:.0f} | {found[2]:,} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows; 0.05 to try it out")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--issues", action="store_true", help="find wrong labels in files, beside cleanlab")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        needed = sum(rows * classes * _BYTES[dtype] for rows, classes, _, dtype in (NARROW, WIDE)) * options.scale * 1.1
        free = shutil.disk_usage(name).free
        if free < needed:
            sys.exit(f"{needed / 1e9:.1f} GB needed in {name}, {free / 1e9:.1f} GB free: pass a smaller --scale")
        print(f"{machine()}; scale {options.scale:g}\n")
        issues = report_issues(Path(name), options.scale)
        for line in issues if options.issues else report(Path(name), options.scale, options.repeats):
            print(line, flush=True)


if __name__ == "__main__":
    main()
