"""How fast and how lean is the default, then `dual-t`: against one pass of np.sum, and against cleanlab.

    python bench/estimate.py            prints a Markdown table, and how the default grows beside cleanlab
    python bench/estimate.py --threads  prints how much faster two threads are: on an idle machine only

Every figure is a ratio of CPU times of one process and one thread, the best of a few runs that take turns. Of two
threads it is one of wall times, beside the best that CPU times allow: what the main thread does is taken to be serial.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time, thread_time
from typing import Any

from measure import apart, best_of, machine, peak_megabytes

SHAPES = (
    (5_000, 10),
    (50_000, 10),
    (1_000_000, 10),
    (200_000, 100),
    (1_000_000, 100),
    (50_000, 1_000),
    (100_000, 1_000),
)
# Twice the rows each time; and ever more classes of as many entries.
ROWS = tuple((rows, 10) for rows in (50_000, 100_000, 200_000, 400_000, 800_000))
CLASSES = tuple((10_000_000 // classes, classes) for classes in (10, 32, 100, 316, 1_000))
# What a wrong label may be.
NOISES = ("any class", "the next class", "one of five classes")
STRUCTURED = ((1_000_000, 10), (200_000, 100), (50_000, 1_000))
Runs = dict[str, Callable[[], Any]]


def make_inputs(n_samples: int, n_classes: int, *, flat: bool = False, noise: str = "any class") -> tuple[Any, Any]:
    """Return the float32 softmax of confident logits, or of flat ones, and labels of which a fifth are random."""
    import numpy as np

    rng = np.random.default_rng(0)
    clean = rng.integers(0, n_classes, n_samples)
    probs = rng.standard_normal((n_samples, n_classes), dtype=np.float32)
    if not flat:
        probs[np.arange(n_samples), clean] += rng.normal(np.log(n_classes) + 5, 2, n_samples).astype(np.float32)
    np.exp(probs, out=probs)
    probs /= probs.sum(axis=1, keepdims=True)
    kept = rng.random(n_samples) < 0.8
    other = {
        "any class": rng.integers(0, n_classes, n_samples),
        "the next class": (clean + 1) % n_classes,
        "one of five classes": clean // 5 * 5 + rng.integers(0, 5, n_samples),
    }
    return probs, np.where(kept, clean, other[noise])


def issues_of(probs: Any, labels: Any) -> Runs:
    """Return what finds wrong labels: ours, and cleanlab's."""
    from cleanlab.filter import find_label_issues as peer

    import dualt

    return {
        "issues": partial(dualt.find_label_issues, probs, labels),
        "filter": partial(peer, labels, probs, n_jobs=1),
    }


def matrices_of(probs: Any, labels: Any) -> Runs:
    """Return what estimates a matrix: dual-t, and cleanlab."""
    from cleanlab.count import estimate_py_and_noise_matrices_from_probabilities as peer

    import dualt

    return {"dual-t": partial(dualt.estimate_transition, probs, labels, "dual-t"), "peer": partial(peer, labels, probs)}


def measure_shape(shape: tuple[int, int]) -> dict[str, float]:
    """Return times and memory for one shape, in a process of its own."""
    import numpy as np

    import dualt

    probs, labels = make_inputs(*shape)
    repeats = 15 if probs.size < 2_000_000 else 5
    default = partial(dualt.estimate_transition, probs, labels)
    dualt.find_label_issues(probs[:5000], labels[:5000])  # imports
    runs = issues_of(probs, labels) | matrices_of(probs, labels) | {"default": default, "sum": lambda: np.sum(probs)}
    # Memory first: what a run has freed, the next one takes without rising above it.
    found = {"memory": peak_megabytes(runs["issues"]), "filter memory": peak_megabytes(runs["filter"])}
    found |= best_of(runs, repeats, process_time)
    flat = best_of(matrices_of(*make_inputs(*shape, flat=True)), repeats, process_time)
    return found | {f"{name}, flat": seconds for name, seconds in flat.items()}


def measure_growth(shapes: tuple[tuple[int, int], ...]) -> list[dict[str, float]]:
    """Return the times of finding wrong labels, ours and cleanlab's, for each shape."""
    found = []
    for shape in shapes:
        runs = issues_of(*make_inputs(*shape))
        runs["issues"]()  # imports
        found.append(best_of(runs, 2, process_time))
    return found


def measure_noises(shape: tuple[int, int]) -> list[float]:
    """Return our time of finding wrong labels, of cleanlab's, for each kind of noise."""
    found = []
    for noise in NOISES:
        runs = issues_of(*make_inputs(*shape, noise=noise))
        runs["issues"]()  # imports
        times = best_of(runs, 3, process_time)
        found.append(times["issues"] / times["filter"])
    return found


def measure_threads(shape: tuple[int, int]) -> dict[str, tuple[float, float]]:
    """Return how much faster the default is in two threads: by the clock, and as CPU times allow."""
    import dualt

    probs, labels = make_inputs(*shape)
    found = {}
    for name, function in (
        ("matrix, default", dualt.estimate_transition),
        ("wrong labels found", dualt.find_label_issues),
    ):
        runs = {n_jobs: partial(function, probs, labels, n_jobs=n_jobs) for n_jobs in (1, 2)}
        times: dict[int, list[tuple[float, ...]]] = {1: [], 2: []}
        for n_jobs in (1, 2) * 11:
            before = perf_counter(), process_time(), thread_time()
            runs[n_jobs]()
            after = perf_counter(), process_time(), thread_time()
            times[n_jobs].append(tuple(b - a for a, b in zip(before, after, strict=True)))
        # The first run of each imports.
        (wall, cpu, _), (wall_of_two, cpu_of_two, main) = (min(times[n_jobs][1:]) for n_jobs in (1, 2))
        found[name] = wall / wall_of_two, cpu / (main + (cpu_of_two - main) / 2)
    return found


def show_growth(title: str, shapes: tuple[tuple[int, int], ...]) -> None:
    """Print how many times the first shape's time each takes."""
    found = apart(measure_growth, shapes)
    print(f"\n{title}\n\n| rows × classes | dualt | cleanlab | dualt / cleanlab |\n| --- | --- | --- | --- |")
    for (rows, classes), times in zip(shapes, found, strict=True):
        ours, peers = (times[name] / found[0][name] for name in ("issues", "filter"))
        ratio = times["issues"] / times["filter"]
        print(f"| {rows:,} × {classes:,} | {ours:.2f} | {peers:.2f} | {ratio:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", action="store_true", help="two threads beside one, at 1,000,000 × 100")
    if parser.parse_args().threads:
        print(f"{machine()}, then two\n")
        print("| 1,000,000 × 100 | two threads, × faster | CPU times allow |\n| --- | --- | --- |")
        for name, (wall, allowed) in apart(measure_threads, (1_000_000, 100)).items():
            print(f"| {name} | {wall:.2f} | {allowed:.2f} |", flush=True)
        return
    print(f"{machine()}, CPU time\n")
    print(
        "| rows × classes | wrong labels found: time, of cleanlab's | peak MB: dualt · cleanlab"
        " | matrix: default, × np.sum | default, of cleanlab's time | dual-t, × np.sum"
        " | dual-t, × faster than cleanlab | the same, flat probabilities |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        r = apart(measure_shape, shape)
        print(
            f"| {shape[0]:,} × {shape[1]:,} | {r['issues'] / r['filter']:.2f}"
            f" | {r['memory']:.0f} · {r['filter memory']:.0f} | {r['default'] / r['sum']:.0f}"
            f" | {r['default'] / r['peer']:.2f} | {r['dual-t'] / r['sum']:.1f} | {r['peer'] / r['dual-t']:.1f}"
            f" | {r['peer, flat'] / r['dual-t, flat']:.1f} |",
            flush=True,
        )
    show_growth("Growth of finding wrong labels with the rows, the first row of the table as 1:", ROWS)
    show_growth("The same with the classes, at ten million entries:", CLASSES)
    print("\nTime of finding wrong labels, of cleanlab's, if a wrong label is:\n")
    print(f"| rows × classes | {' | '.join(NOISES)} |")
    print("| --- " * (1 + len(NOISES)) + "|")
    for rows, classes in STRUCTURED:
        ratios = " | ".join(f"{ratio:.2f}" for ratio in apart(measure_noises, (rows, classes)))
        print(f"| {rows:,} × {classes:,} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
