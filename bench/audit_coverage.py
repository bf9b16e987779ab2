"""Coverage of the intervals of an accuracy: by an audit, beside plain counting; and of the bounds by a known matrix.

    python bench/audit_coverage.py [--draws 3000] [--more 100]

Each setting is one population of 5,000 rows with known truth (other sizes are named), drawn from again and again. A
model that copies repeats that share of the wrong labels. "Wilson" counts the verified rows without the given labels.
`--more` settings drawn at random are summed up, with half as many draws. The interval was chosen on all of these and on
other settings from wider ranges, so neither table is a test on settings of a new kind.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from measure import machine
from numpy.typing import NDArray

import dualt
from dualt import noise
from dualt.audit.evaluation import accuracy_by_audit

Z = 1.959964


class Setting(NamedTuple):
    """Classes, wrong labels, errors of the model, verified rows, copied labels, and rows."""

    n_classes: int
    rate: float
    error: float
    m: int
    copied: float = 0.0
    n: int = 5_000


SETTINGS = [
    Setting(3, 0.05, 0.1, 50), Setting(3, 0.1, 0.07, 20), Setting(3, 0.03, 0.3, 100), Setting(3, 0.05, 0.1, 20),
    Setting(10, 0.2, 0.1, 20), Setting(10, 0.2, 0.1, 100), Setting(10, 0.4, 0.2, 50), Setting(10, 0.4, 0.2, 400),
    Setting(2, 0.05, 0.05, 20), Setting(2, 0.05, 0.05, 100), Setting(2, 0.02, 0.02, 50), Setting(2, 0.02, 0.02, 400),
    Setting(10, 0.1, 0.01, 50), Setting(10, 0.1, 0.01, 200), Setting(2, 0.45, 0.3, 50), Setting(2, 0.45, 0.3, 400),
    Setting(5, 0.1, 0.1, 200, n=1_000), Setting(5, 0.1, 0.1, 100, 0.5), Setting(5, 0.2, 0.05, 100, 0.9),
    Setting(5, 0.2, 0.05, 30, 0.9), Setting(5, 0.3, 0.5, 400, n=600), Setting(10, 0.3, 0.6, 30),
    Setting(10, 0.01, 0.1, 20), Setting(10, 0.01, 0.1, 200), Setting(2, 0.2, 0.5, 40),
]  # fmt: skip


def drawn_settings(number: int) -> list[Setting]:
    """Return settings drawn at random."""
    rng = np.random.default_rng(77)
    ranges = ((2, 3, 5, 10), (0.01, 0.02, 0.05, 0.1, 0.2, 0.4), (0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
              (20, 30, 50, 100, 200, 400), (0.0, 0.0, 0.5, 0.9))  # fmt: skip
    return [Setting(*(values[rng.integers(len(values))] for values in ranges)) for _ in range(number)]  # type: ignore[arg-type]


def population(setting: Setting, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return true classes, given labels and predictions."""
    n, c = setting.n, setting.n_classes
    true = rng.integers(0, c, n)
    given = np.where(rng.random(n) < setting.rate, (true + rng.integers(1, c, n)) % c, true)
    predicted = np.where(rng.random(n) < setting.error, (true + rng.integers(1, c, n)) % c, true)
    return true, given, np.where((given != true) & (rng.random(n) < setting.copied), given, predicted)


def audited(setting: Setting, draws: int, seed: int) -> tuple[float, float, float, float]:
    """Return the coverage by the audit and by Wilson's interval, and the mean width of each."""
    rng = np.random.default_rng(seed)
    true, given, predicted = population(setting, rng)
    right = predicted == true
    found = []
    for _ in range(draws):
        rows = rng.choice(setting.n, setting.m, replace=False)
        one = accuracy_by_audit(predicted, given, rows, true[rows])
        share, spread = right[rows].mean(), Z**2 * (1 - setting.m / setting.n) / setting.m
        centre, half = share + spread / 2, np.sqrt(spread * share * (1 - share) + spread**2 / 4)
        low, high = (centre - half) / (1 + spread), (centre + half) / (1 + spread)
        truth = right.mean()
        found.append((one.low <= truth <= one.high, low <= truth <= high, one.high - one.low, high - low))
    covered, counted, width, plain = np.mean(found, axis=0)
    return float(covered), float(counted), float(width), float(plain)


def bounded(matrix: NDArray[np.float64], n: int, error: float, draws: int) -> tuple[float, float]:
    """Return how often the bounds by the true matrix hold the accuracy, and their mean width."""
    rng, c = np.random.default_rng(1), len(matrix)
    found = []
    for _ in range(draws):
        true = rng.integers(0, c, n)
        given = noise.corrupt(true, matrix, rng)
        predicted = np.where(rng.random(n) < error, (true + 1) % c, true)
        low, high = dualt.noisy_accuracy(predicted, given, matrix, class_names=range(c)).bounds or (0.0, 1.0)
        found.append((low <= (predicted == true).mean() <= high, high - low))
    return tuple(map(float, np.mean(found, axis=0)))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=3_000)
    parser.add_argument("--more", type=int, default=100)
    options = parser.parse_args()
    draws = options.draws
    print(f"{machine()}; {draws:,} draws of each setting\n")
    print("| classes | wrong labels | model errors | verified | | audit covers | Wilson covers | width / Wilson's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for seed, setting in enumerate(SETTINGS):
        covered, counted, width, plain = audited(setting, draws, seed)
        notes = [f"copies {setting.copied:.0%}"] if setting.copied else []
        notes += [f"{setting.n:,} rows"] if setting.n != 5_000 else []
        cells = (setting.n_classes, setting.rate, setting.error, setting.m, ", ".join(notes))
        print("|", " | ".join(map(str, cells)), f"| {covered:.3f} | {counted:.3f} | {width / plain:.2f} |", flush=True)
    found = np.array([audited(one, draws // 2, 1000 + n) for n, one in enumerate(drawn_settings(options.more))])
    print(f"\n| {len(found)} settings drawn at random | least | mean | below .94 | below .93 | mean width | most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, cover, widths in (("audit", found[:, 0], found[:, 2]), ("Wilson", found[:, 1], found[:, 3])):
        below, ratio = [int((cover < limit).sum()) for limit in (0.94, 0.93)], widths / found[:, 3]
        figures = f"{cover.min():.3f} | {cover.mean():.3f} | {below[0]} | {below[1]}"
        print(f"| {name} covers | {figures} | {ratio.mean():.2f} | {ratio.max():.2f} |", flush=True)
    print("\n| matrix | rows | model errors | bounds hold | mean width |\n| --- | --- | --- | --- | --- |")
    matrices = {"symmetric, 2 classes, 10 %": noise.symmetric(2, 0.1), "pair, 3 classes, 30 %": noise.pair(3, 0.3)}
    for name, matrix in matrices.items():
        for n in (50, 500):
            for error in (0.0, 0.1):
                held, width = bounded(matrix, n, error, draws)
                print(f"| {name} | {n} | {error} | {held:.3f} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    main()
