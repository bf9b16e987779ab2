"""How fast and how lean is `estimate_transition`: against one pass of np.sum, and against cleanlab.

    python bench/estimate.py            prints a Markdown table

Every figure is a ratio to something measured in the same process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from measure import best_of, best_seconds, machine, peak_megabytes

SHAPES = {(1_000_000, 10): 25, (1_000_000, 100): 8, (100_000, 1_000): 5}


def make_inputs(n_samples: int, n_classes: int) -> tuple[Any, Any]:
    """Return the float32 softmax of logits that favour a clean class, and labels of which a fifth are random."""
    import numpy as np

    rng = np.random.default_rng(0)
    clean = rng.integers(0, n_classes, n_samples)
    probs = rng.standard_normal((n_samples, n_classes), dtype=np.float32)
    probs[np.arange(n_samples), clean] += rng.normal(np.log(n_classes) + 2, 2, n_samples).astype(np.float32)
    np.exp(probs, out=probs)
    probs /= probs.sum(axis=1, keepdims=True)
    return probs, np.where(rng.random(n_samples) < 0.8, clean, rng.integers(0, n_classes, n_samples))


def measure_shape(shape: tuple[int, int]) -> dict[str, float]:
    """Return times and memory for one shape, in a process of its own."""
    import numpy as np

    import dualt

    probs, labels = make_inputs(*shape)
    dualt.estimate_transition(probs[:5000], labels[:5000], "dual-t")
    result = {"memory": peak_megabytes(lambda: dualt.estimate_transition(probs, labels, "dual-t"))}
    runs: dict[str, Callable[[], Any]] = {
        "sum": lambda: np.sum(probs),
        "dual-t": lambda: dualt.estimate_transition(probs, labels, "dual-t"),
    }
    result |= best_of(runs, 15)
    result |= best_of({"clean-count": lambda: dualt.estimate_transition(probs, labels, "clean-count")}, 4)
    estimate = dualt.estimate_transition(probs, labels, "dual-t")
    result["200 replicates"] = best_seconds(lambda: estimate.replicates(200 if shape[1] <= 100 else 32), 2)
    result["mapped"] = measure_mapped(probs, labels)
    try:
        from cleanlab.count import estimate_py_and_noise_matrices_from_probabilities as peer
    except ImportError:
        print("cleanlab is not installed: pip install 'dualt[bench]'", file=sys.stderr)
    else:
        result["cleanlab"] = best_seconds(lambda: peer(labels, probs), 3)
    return result


def measure_mapped(probs: Any, labels: Any) -> float:
    """Return the anonymous memory that estimating from a memory-mapped .npy file takes."""
    import numpy as np

    import dualt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probs.npy"
        np.save(path, probs)
        mapped = np.load(path, mmap_mode="r")
        return peak_megabytes(lambda: dualt.estimate_transition(mapped, labels, "dual-t"))


def main() -> None:
    print(f"{machine()}\n")
    print(
        "| rows × classes | × np.sum (at most) | × faster than cleanlab | memory, MB | from a mapped file, MB"
        " | clean-count, × dual-t | replicates |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for shape, limit in SHAPES.items():
        with get_context("spawn").Pool(1) as pool:
            found = pool.apply(measure_shape, (shape,))
        against_peer = f"{found['cleanlab'] / found['dual-t']:.1f}" if "cleanlab" in found else "not installed"
        print(
            f"| {shape[0]:,} × {shape[1]:,} | {found['dual-t'] / found['sum']:.1f} ({limit}) | {against_peer}"
            f" | {found['memory']:.0f} | {found['mapped']:.0f} | {found['clean-count'] / found['dual-t']:.1f}"
            f" | {found['200 replicates']:.2f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
