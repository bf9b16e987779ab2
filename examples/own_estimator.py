"""An estimator of your own: one function, one line to register it, and it stands beside the others.

python examples/own_estimator.py        writes own-estimator.png
"""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot

import dualt
from dualt.estimators import ESTIMATORS, EstimatorEntry, count_fit
from dualt.results import Fit
from dualt.rows import NoisyPosterior


def margin_count(posterior: NoisyPosterior, *, margin: float = 0.5) -> Fit:
    """T̂[l, j] = share of given label j among examples whose class l leads the runner-up by `margin`.

    Rows come in chunks that fit a core's cache, so that data of any size can be read. `count_fit` normalises the
    counts and knows how to resample them, which is where the intervals come from.
    """
    counts = np.zeros((posterior.n_classes, posterior.n_classes), np.int64)
    for probs, labels in posterior.chunks():
        second, first = np.partition(probs, -2, axis=1)[:, -2:].T
        kept = first - second >= margin
        np.add.at(counts, (probs[kept].argmax(axis=1), labels[kept]), 1)
    return count_fit(counts)


def make_data(n_samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities of a decent classifier, labels with pair noise, and the true matrix."""
    rng = np.random.default_rng(0)
    transition = dualt.noise.pair(4, 0.3)
    clean = rng.integers(4, size=n_samples)
    logits = 2 * np.eye(4)[clean] + rng.normal(size=(n_samples, 4))
    posterior = np.exp(2 * logits)
    probs = posterior / posterior.sum(axis=1, keepdims=True) @ transition
    return probs, dualt.noise.corrupt(clean, transition, random_state=1), transition


def main() -> None:
    """Register the estimator, and compare it with the others."""
    ESTIMATORS["margin-count"] = EstimatorEntry(margin_count, "counts given labels among examples with a clear lead")
    probs, labels, transition = make_data(20_000)
    for estimator, options in (("margin-count", {"margin": 0.3}), ("spade", {}), ("clean-count", {})):
        estimate = dualt.estimate_transition(probs, labels, estimator, **options)
        error = dualt.l1_error(estimate.transition, transition, normalize=True)
        print(f"{estimator:13} {estimate.noise_rate:.1%} wrong, off by {error:.3f} per row")

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 4), layout="constrained")
    dualt.plot_transition(transition, ax=left, title="truth")
    dualt.estimate_transition(probs, labels, "margin-count", margin=0.3).plot(right)
    figure.savefig("own-estimator.png", dpi=120)
    print("Look at the matrix: own-estimator.png")


if __name__ == "__main__":
    main()
