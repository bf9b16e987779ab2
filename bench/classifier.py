"""Does `RobustClassifier` help: clean test accuracy beside the plain classifier, several bases, noises and seeds.

python bench/classifier.py        prints a Markdown table (digits, five seeds)
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

from measure import machine

NOISES = ("clean", "sym-0.2", "sym-0.5", "pair-0.3", "pair-0.45")
CORRECTIONS: tuple[Literal["reweight", "posterior", "clean"], ...] = ("reweight", "posterior", "clean")


def bases() -> dict[str, Any]:
    """Return classifiers by name."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "LogisticRegression()": LogisticRegression(),
        "scaled LogisticRegression(C=0.01)": make_pipeline(StandardScaler(), LogisticRegression(C=0.01)),
        "RandomForest(min_samples_leaf=3)": RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
        "scaled GaussianNB": make_pipeline(StandardScaler(), GaussianNB(var_smoothing=0.1)),
    }


def accuracies(base: Any, noise: str, seed: int) -> list[float]:
    """Return clean test accuracy of the plain classifier and of each correction."""
    from sklearn.base import clone
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    import dualt

    features, clean = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(features, clean, test_size=0.3, stratify=clean, random_state=seed)
    noisy = dualt.noise.corrupt(train_y, dualt.noise.from_name(noise, 10, random_state=seed), random_state=seed)
    models = [clone(base), *(dualt.RobustClassifier(base, correction=name) for name in CORRECTIONS)]
    return [float(model.fit(train, noisy).score(test, test_y)) for model in models]


def main() -> None:
    import numpy as np

    warnings.simplefilter("ignore")
    print(f"{machine()}\n")
    print("| base | noise | plain | " + " | ".join(CORRECTIONS) + " | seeds where reweight helps |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, base in bases().items():
        for noise in NOISES:
            found = np.array([accuracies(base, noise, seed) for seed in range(100, 105)])
            means = " | ".join(f"{value:.1%}" for value in found.mean(axis=0))
            print(f"| {name} | {noise} | {means} | {int((found[:, 1] > found[:, 0]).sum())} of 5 |", flush=True)


if __name__ == "__main__":
    main()
