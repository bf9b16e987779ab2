"""Does `RobustClassifier` help, and which correction most: clean test accuracy beside the plain classifier.

    python bench/classifier.py [--seeds 100] [--out classifier.json]

Prints Markdown tables: a row per classifier and data set, the mean over noises and seeds. LabelMe's votes are read from
$DUALT_REAL_NOISE, and left out if they are not there. Results are written to --out as they come, and a run that finds
some in its file goes on from there.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
from measure import collect, machine
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import read

import dualt
import dualt.classifier
from dualt.crossfit import out_of_fold_probabilities
from dualt.errors import DualtWarning, FileError

Record: TypeAlias = dict[str, Any]

NOISES = ("clean", "sym-0.2", "sym-0.5", "pair-0.3", "pair-0.45", "instance-dependent")
CORRECTIONS: tuple[Any, ...] = ("reweight", "posterior", "clean")
COLUMNS = ("plain", *CORRECTIONS)
SIZES = (300, 1_000, 4_000)


def bases() -> dict[str, Any]:
    """Return classifiers by name."""
    return {
        "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "RandomForest": RandomForestClassifier(100, random_state=0),
        "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    }


def tabular(rows: int, seed: int) -> tuple[Any, Any]:
    """Return a table of so many rows to train on, and 2,000 to test on."""
    features, classes = make_classification(
        rows + 2_000, 20, n_informative=10, n_classes=4, n_clusters_per_class=2, class_sep=1.2, random_state=seed
    )
    return features, classes


def divided(data: tuple[Any, Any], seed: int, test: float) -> tuple[Any, ...]:
    x, y = data
    train, other, train_y, other_y = train_test_split(x, y, test_size=test, stratify=y, random_state=seed)
    return train, train_y, other, other_y


def problems(seed: int) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """Yield data, noise, and (features, given labels, test features, true test classes)."""
    sources = {"digits": divided(load_digits(return_X_y=True), seed, 0.3)}
    sources |= {f"table of {rows:,}": divided(tabular(rows, seed), seed, 2_000 / (rows + 2_000)) for rows in SIZES}
    for name, (x, y, test_x, test_y) in sources.items():
        for kind in NOISES:
            if kind == "instance-dependent":
                given = dualt.noise.weak_annotators(x, y, 0.3, seed).noisy_labels
            else:
                matrix = dualt.noise.from_name(kind, int(y.max()) + 1, random_state=seed)
                given = dualt.noise.corrupt(y, matrix, random_state=seed)
            yield name, kind, (x, given, test_x, test_y)
    try:
        file = read("labelme.npz")
    except FileError as error:
        print(f"LabelMe is left out: {error}", file=sys.stderr)
        return
    rng = np.random.default_rng(seed)
    votes = np.array([rng.choice(row[row >= 0]) for row in file["votes"]]).astype(int)
    x, test_x = (file[name].astype(np.float32) for name in ("features", "test_features"))
    yield "LabelMe", "votes", (x, votes, test_x, file["test_clean"].astype(int))


def measure(base: Any, problem: tuple[Any, ...]) -> Iterator[Record]:
    """Yield the clean test accuracy of the plain classifier and of each correction."""
    x, given, test_x, test_y = problem
    yield {"correction": "plain", "accuracy": float(clone(base).fit(x, given).score(test_x, test_y))}
    probs = out_of_fold_probabilities(base, x, np.unique(given, return_inverse=True)[1])
    # The folds are the same for every correction, and most of the time.
    with mock.patch.object(dualt.classifier, "fit_folds", side_effect=lambda *_, **__: probs.copy()):
        for name in CORRECTIONS:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", DualtWarning)
                model = dualt.RobustClassifier(base, correction=name).fit(x, given)
            doubted = any(issubclass(one.category, DualtWarning) for one in told)
            yield {"correction": name, "accuracy": float(model.score(test_x, test_y)), "doubted": doubted}


def cases(seeds: list[int]) -> Iterator[tuple[Record, Callable[[], Iterable[Record]]]]:
    """Yield every classifier on every problem, and what measures it."""
    for seed in seeds:
        for data, kind, problem in problems(seed):
            for name, base in bases().items():
                yield {"base": name, "data": data, "noise": kind, "seed": seed}, partial(measure, base, problem)


def table(records: list[Record], *keys: str) -> Iterator[str]:
    """Yield a table: the mean of each correction for every value of `keys`, and how often each is the best."""
    yield f"| {' | '.join((*keys, *COLUMNS))} | best, of the three |"
    yield "| " + " | ".join(["---"] * (len(keys) + len(COLUMNS) + 1)) + " |"
    groups = list(dict.fromkeys(tuple(record[key] for key in keys) for record in records))
    for group in groups:
        own = [record for record in records if tuple(record[key] for key in keys) == group]
        found = np.array([[r["accuracy"] for r in own if r["correction"] == column] for column in COLUMNS])
        best = np.bincount(found[1:].argmax(axis=0), minlength=len(CORRECTIONS))
        wins = ", ".join(f"{name} {count}" for name, count in zip(CORRECTIONS, best.tolist(), strict=True))
        yield f"| {' | '.join(group)} | " + " | ".join(f"{value:.1%}" for value in found.mean(axis=1)) + f" | {wins} |"


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[100])
    parser.add_argument("--out", type=Path, help="JSON file of the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records = collect(options.out, cases(options.seeds))
    print(f"{machine()}\n", *table(records, "base", "data"), "", *table(records, "noise"), sep="\n")


if __name__ == "__main__":
    main()
