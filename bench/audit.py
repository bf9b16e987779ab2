"""What an audit is worth on labels that people gave: how often its intervals hold, and how near it brings the estimate.

    python bench/audit.py [--draws 200] [--seed 0] [--size 200] [--cache FOLDER]

Every draw is a fresh audit of the same data, whose true classes are known. "Counted" is the interval of the same number
of labels drawn at random and merely counted. Where the data are read from: `worlds.py`; what is not there is left out.
All takes less than twenty minutes of one core.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import machine
from numpy.typing import NDArray
from scipy.stats import t as student
from worlds import cases, made

import dualt
from dualt.audit import Audit, AuditResult, correct_by_audit
from dualt.audit.design import draw_rows
from dualt.errors import FileError
from dualt.estimators import estimate_verified
from dualt.issues import find_posterior_issues
from dualt.rows import NoisyPosterior, as_posterior

SIZES = (100, 200, 500)
PEOPLE = ("cifar10n-aggregate", "labelme-vote", "labelme-majority", "hausa-news")


class Believed(NamedTuple):
    """Probabilities, given labels, true classes, the matrix that happened, and what is believed without an audit."""

    posterior: NoisyPosterior
    given: NDArray[np.intp]
    clean: NDArray[np.intp]
    truth: NDArray[np.float64]
    estimate: dualt.TransitionEstimate


def problems(cache: Path | None) -> Iterator[tuple[str, Believed]]:
    """Yield the problems whose data are here, and print which are not."""
    for case in cases([], [0], quick=True):
        if case.name not in PEOPLE:
            continue
        try:
            probs, given, clean, truth = made(case, cache, quick=True)
        except FileError as cause:
            print(f"{case.name} is left out: {cause}")
            continue
        posterior = as_posterior(probs, given)
        found = find_posterior_issues(posterior)
        assert found.transition_estimate is not None
        yield case.name, Believed(posterior, given, clean, truth, found.transition_estimate)


def sample(data: Believed, size: int, seed: int) -> Audit:
    """Draw an audit and look up the true classes."""
    rows = draw_rows(np.arange(len(data.given)), size, seed)
    return Audit(rows, data.clean[rows])


def holds(low: Any, high: Any, truth: Any) -> NDArray[np.bool_]:
    return np.asarray((low <= truth + 1e-12) & (truth - 1e-12 <= high))


def calibration_error(right: NDArray[Any], truth: NDArray[Any], bins: int = 10) -> float:
    place = np.minimum((right * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(place, right - truth, bins)).sum() / len(right))


def matrix_error(data: Believed, matrix: NDArray[np.float64]) -> float:
    return float(np.abs(matrix - data.truth).sum() / len(matrix))


def measured(data: Believed, size: int, seed: int) -> dict[str, float]:
    audit = sample(data, size, seed)
    estimate = estimate_verified(data.posterior, data.estimate, audit)
    result: AuditResult | None = estimate.audit
    assert result is not None
    rate, n_samples = float((data.given != data.clean).mean()), len(data.given)
    low, high = result.noise_rate_interval()
    quantile = float(student.ppf(0.975, size - 1))
    counted = 2 * quantile * np.sqrt(rate * (1 - rate) / size * (1 - size / n_samples))
    lows, highs = result.transition_interval()
    right = find_posterior_issues(data.posterior, estimate).probability_right.astype(np.float64)
    return {
        "rate holds": float(holds(low, high, rate)),
        "width / counted": (high - low) / counted,
        "classes hold": float(holds(np.diagonal(lows), np.diagonal(highs), np.diagonal(data.truth)).mean()),
        "entries hold": float(holds(lows, highs, data.truth).mean()),
        "T error": matrix_error(data, estimate.transition),
        "ECE": calibration_error(right, data.given == data.clean),
    }


def rows_of(data: dict[str, Believed], size: int, seeds: range) -> Iterator[str]:
    found = {name: [measured(one, size, seed) for seed in seeds] for name, one in data.items()}
    for key in next(iter(found.values()))[0]:
        means = [float(np.mean([one[key] for one in runs])) for runs in found.values()]
        yield f"| {size} labels: {key} | " + " | ".join(f"{mean:.3f}" for mean in (*means, np.mean(means))) + " |"


def errors_of(data: dict[str, Believed], size: int, seeds: range) -> str:
    means = []
    for one in data.values():
        runs = []
        for seed in seeds:
            audit = sample(one, size, seed)
            runs.append(matrix_error(one, correct_by_audit(one.posterior, one.estimate.transition, audit).transition))
        means.append(float(np.mean(runs)))
    return f"| T error, {size} labels | " + " | ".join(f"{mean:.3f}" for mean in (*means, np.mean(means))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first draw")
    parser.add_argument("--size", type=int, default=200)
    cache = os.environ.get("DUALT_BENCH_CACHE")
    parser.add_argument("--cache", type=Path, default=Path(cache) if cache else None, help="folder of problems")
    options = parser.parse_args()
    print(f"{machine()}; {options.draws} draws\n")
    data = dict(problems(options.cache))
    if not data:
        sys.exit("No problem could be measured.")
    started, seeds = time.perf_counter(), range(options.seed, options.seed + options.draws)
    print("| |", " | ".join((*data, "mean")), "|")
    print("| --- |", " | ".join("---:" for _ in range(len(data) + 1)), "|")
    before = [matrix_error(one, one.estimate.transition) for one in data.values()]
    print("| T error, no audit |", " | ".join(f"{value:.3f}" for value in (*before, np.mean(before))), "|", flush=True)
    for size in SIZES:
        print(errors_of(data, size, seeds[: max(5, len(seeds) // 4)]), flush=True)
    for line in rows_of(data, options.size, seeds):
        print(line, flush=True)
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
