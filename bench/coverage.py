"""How often does the 95 % interval hold the true entry: on data where an estimator's assumptions hold, and where not.

    python bench/coverage.py [--replications 120]

Five classes, 2,000 examples, exact noisy posteriors. Separable classes have examples whose true class is clear;
of overlapping ones hardly any is, and what is counted among the clearest is biased. Of the default, also how often
its range holds the true noise rate.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from measure import machine
from numpy.typing import NDArray

import dualt
from dualt import noise

N_CLASSES, N_SAMPLES = 5, 2_000
DISTANCES = {"separable": 5.0, "overlapping": 1.5}
NOISES = ("pair-0.3", "sym-0.3", "random-0.3")
# `joint` takes a second each time.
ESTIMATORS = {"clean-count": 1.0, "confident-joint": 1.0, "dual-t": 1.0, "joint": 0.25}


def sample(distance: float, name: str, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return exact noisy posteriors of Gaussian classes, given labels, and the matrix."""
    rng = np.random.default_rng(seed)
    truth = noise.from_name(name, N_CLASSES, random_state=seed)
    clean = rng.integers(0, N_CLASSES, N_SAMPLES)
    centres = distance * np.eye(N_CLASSES)
    points = rng.normal(size=(N_SAMPLES, N_CLASSES)) + centres[clean]
    posterior = np.exp(-0.5 * ((points[:, None] - centres) ** 2).sum(axis=2))
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior @ truth, noise.corrupt(clean, truth, random_state=seed), truth


def coverage(estimator: str, distance: float, name: str, replications: int) -> tuple[float, float]:
    """Return the share of entries that lie in their interval, and of noise rates that are at least what is claimed."""
    entries, rates = [], []
    for seed in range(500, 500 + replications):
        probs, labels, truth = sample(distance, name, seed)
        estimate = dualt.estimate_transition(probs, labels, estimator)
        low, high = estimate.confidence_interval(0.95)
        entries.append((low <= truth + 1e-12) & (truth <= high + 1e-12))
        rates.append(estimate.noise_rate_interval()[0] <= 1 - np.trace(truth) / N_CLASSES)
    return float(np.mean(entries)), float(np.mean(rates))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=120)
    replications = parser.parse_args().replications
    print(f"{machine()}; {replications} replications, a quarter of them for joint\n")
    print("| estimator |", " | ".join(f"{kind}, {name}" for kind in DISTANCES for name in NOISES), "|")
    print("| --- |", " | ".join("---" for _ in range(len(DISTANCES) * len(NOISES))), "|")
    for estimator, share in ESTIMATORS.items():
        repeated = max(1, round(share * replications))
        held = [coverage(estimator, DISTANCES[kind], name, repeated) for kind in DISTANCES for name in NOISES]
        print(f"| {estimator} |", " | ".join(f"{entries:.3f}" for entries, _ in held), "|", flush=True)
        if estimator == "clean-count":
            print(f"| {estimator}, noise rate in its range |", " | ".join(f"{rates:.3f}" for _, rates in held), "|")


if __name__ == "__main__":
    main()
