"""What is measured on the synthetic data, whose posteriors are known: the error of Figure 1, and Δ1, Δ2, Δ3.

The appendix defines Δ1 = |P(Ȳ=j | x) − P̂(Ȳ=j | x)|, Δ2 = |P(Ȳ=j | Y'=l) − P̂(Ȳ=j | Y'=l)| and
Δ3 = |P(Ȳ=j | Y'=l, Y=i, x) − P(Ȳ=j | Y'=l, x)|, and says that they are computed on the training set. Given x,
Y' is certain, and the last would not depend on the network at all; but it is to vanish once Y' is the noisy label.
So we count it, as the proof of Theorem 1 uses it: without x, weighted with P(Y'=l | Y=i).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def posterior_error(truth: Floats, estimated: NDArray[np.float32]) -> float:
    """Return the mean of |P − P̂| over samples and classes: Δ1 on a training part, Figure 1 on a test part."""
    return float(np.abs(truth - estimated).mean())


def counting_error(truth: Floats, intermediate: Labels, noisy: Labels) -> float:
    """Return Δ2: the mean over j and the predicted classes l of |P(Ȳ=j | Y'=l) − share of label j among them|."""
    n_classes = truth.shape[1]
    errors = [
        np.abs(truth[chosen].mean(axis=0) - np.bincount(noisy[chosen], minlength=n_classes) / chosen.sum())
        for chosen in (intermediate == label for label in range(n_classes))
        if chosen.any()
    ]
    return float(np.mean(errors))


def fitting_error(clean: Labels, intermediate: Labels, noisy: Labels, n_classes: int) -> float:
    """Return Δ3: the mean over i, j of Σ_l |P̂(Ȳ=j | Y'=l, Y=i) − P̂(Ȳ=j | Y'=l)| P̂(Y'=l | Y=i)."""
    counts = np.zeros((n_classes, n_classes, n_classes))
    np.add.at(counts, (clean, intermediate, noisy), 1)
    of_both = counts.sum(axis=2)
    given_both = counts / np.maximum(of_both, 1)[:, :, None]
    given_intermediate = counts.sum(axis=0) / np.maximum(of_both.sum(axis=0), 1)[:, None]
    weights = of_both / np.maximum(of_both.sum(axis=1), 1)[:, None]
    return float((np.abs(given_both - given_intermediate) * weights[:, :, None]).sum(axis=1).mean())
