"""The paper's two Gaussians, whose posteriors are known exactly.

Class 0 is N(0, I), class 1 is N(2·1, I), in ten dimensions, both equally likely. The log-odds are
log p(x | 1) − log p(x | 0) = Σ_k (μ x_k − μ²/2) with μ = 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from dualt.datasets.dataset import Dataset, Labels
from dualt.rng import stream
from dualt.transition import to_noisy

N_FEATURES = 10
SHIFT = 2.0


def load_synthetic(
    *, n_samples: int = 20_000, n_test: int = 10_000, random_state: int = 0, standardize: bool = False
) -> Dataset:
    """Two Gaussians in ten dimensions with means 0 and 2 and unit variance, drawn afresh for every random_state.

    With `standardize`, networks see standardised features, as in the paper's released code, not in its text.
    """
    train_x, train_y = _draw(n_samples, stream(random_state, "synthetic-train"))
    test_x, test_y = _draw(n_test, stream(random_state, "synthetic-test"))
    as_drawn = None if standardize else np.repeat([[0.0], [1.0]], N_FEATURES, axis=1)
    return Dataset("synthetic", train_x, train_y, test_x, test_y, ("zero", "two"), published=as_drawn)


def _draw(n_samples: int, rng: np.random.Generator) -> tuple[NDArray[np.float32], Labels]:
    labels = rng.integers(2, size=n_samples)
    points = rng.standard_normal((n_samples, N_FEATURES)) + SHIFT * labels[:, None]
    return points.astype(np.float32), labels


def clean_posterior(x: ArrayLike) -> NDArray[np.float64]:
    """Return P(clean | x) exactly: the logistic function of the log-odds, for x of shape (n, 10)."""
    points = np.asarray(x, np.float64)
    log_odds = (SHIFT * points - SHIFT**2 / 2).sum(axis=1)
    # Both from the logistic function: 1 − p would lose the digits of a tiny probability.
    return np.column_stack([expit(-log_odds), expit(log_odds)])


def noisy_posterior(x: ArrayLike, transition: ArrayLike) -> NDArray[np.float64]:
    """Return P(noisy | x) = P(clean | x) @ transition exactly, for x of shape (n, 10)."""
    return to_noisy(clean_posterior(x), transition)
