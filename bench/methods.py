"""Which method trains best: clean test accuracy of every method, on synthetic noise and on labels given by people.

python bench/methods.py           prints a Markdown table (three seeds); LabelMe if $DUALT_REAL_NOISE names its folder
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import machine

METHODS = ("ce", "gce", "elr", "mixup", "co-teaching", "reweighting", "forward")
COLUMNS = (*METHODS, "auto", "forward, true T", "RobustClassifier")
NOISES = ("clean", "sym-0.2", "sym-0.5", "pair-0.45", "instance-dependent")
SEEDS = 3


class Problem(NamedTuple):
    """Training samples with noisy and clean labels, and a clean test part."""

    x: np.ndarray[Any, Any]
    noisy: np.ndarray[Any, Any]
    clean: np.ndarray[Any, Any]
    test_x: np.ndarray[Any, Any]
    test_y: np.ndarray[Any, Any]


def problems(seed: int) -> Iterator[tuple[str, Problem]]:
    """Yield the problems by name."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    for noise in NOISES:
        yield f"digits, {noise}", Problem(train, noisy_labels(train, train_y, noise, seed), train_y, test, test_y)
    folder = os.environ.get("DUALT_REAL_NOISE")
    if folder:
        with np.load(Path(folder) / "labelme.npz", allow_pickle=False) as file:
            votes, clean = file["votes"], file["clean"].astype(np.int64)
            features, tests = (file[name].astype(np.float32) for name in ("features", "test_features"))
            rng = np.random.default_rng(seed)
            one = np.array([rng.choice(row[row >= 0]) for row in votes]).astype(np.int64)
            yield "LabelMe, one vote", Problem(features, one, clean, tests, file["test_clean"].astype(np.int64))


def noisy_labels(x: Any, y: Any, noise: str, seed: int) -> Any:
    """Return labels corrupted by the noise of that name."""
    import dualt

    if noise == "instance-dependent":
        return dualt.noise.weak_annotators(x, y, 0.3, seed).noisy_labels
    return dualt.noise.corrupt(y, dualt.noise.from_name(noise, 10, random_state=seed), random_state=seed)


def accuracies(problem: Problem, seed: int) -> dict[str, float]:
    """Return the clean test accuracy of every method; those that need a matrix share one estimate."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import dualt
    from dualt.nn.classifier import RobustNetClassifier

    def score(method: str, transition: Any = None) -> tuple[float, RobustNetClassifier]:
        model = RobustNetClassifier(method=method, transition=transition, n_jobs=1, random_state=seed)
        model.fit(problem.x, problem.noisy)
        return float(model.score(problem.test_x, problem.test_y)), model

    found: dict[str, float] = {}
    found["auto"], auto = score("auto")
    counts = np.zeros((len(auto.classes_),) * 2)
    np.add.at(counts, (problem.clean, problem.noisy), 1)
    for method in METHODS:
        same = auto.method_ == method
        found[method] = found["auto"] if same else score(method, auto.transition_estimate_)[0]
    found["forward, true T"], _ = score("forward", counts / counts.sum(axis=1, keepdims=True))
    base = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    robust = dualt.RobustClassifier(base).fit(problem.x, problem.noisy)
    found["RobustClassifier"] = float(robust.score(problem.test_x, problem.test_y))
    return found


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    found: dict[str, list[list[float]]] = {}
    for seed in range(SEEDS):
        for name, problem in problems(seed):
            scores = accuracies(problem, seed)
            told = " ".join(f"{column} {100 * value:.1f}" for column, value in scores.items())
            print(f"seed {seed}, {name}: {told}", file=sys.stderr, flush=True)
            found.setdefault(name, []).append([scores[column] for column in COLUMNS])
    print(f"{machine()}\n")
    print("| data | " + " | ".join(COLUMNS) + " |")
    print("| --- |" + " --- |" * len(COLUMNS))
    for name, rows in found.items():
        print(f"| {name} | " + " | ".join(f"{100 * value:.1f}" for value in np.mean(rows, axis=0)) + " |")


if __name__ == "__main__":
    main()
