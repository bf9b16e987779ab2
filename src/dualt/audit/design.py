"""Which labels to check: a simple random sample, in batches that add up, and how many are needed."""

from __future__ import annotations

from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.rng import stream

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]

# The largest standard deviation of an indicator, where nothing is known about it.
_LARGEST_SPREAD = 0.5


def draw_rows(rows: Ints, total: int, seed: int, earlier: Ints | None = None) -> Ints:
    """Return `total` of the `rows`, drawn at random without replacement: those of `earlier` batches, and others.

    A batch drawn at random from the rows that are left makes one simple random sample with the earlier ones.
    """
    # Not the random numbers that labels were made with by the same seed.
    order = rows[np.argsort(stream(seed, "audit rows").random(len(rows)), kind="stable")]
    first = order[:0] if earlier is None else earlier
    return np.concatenate((first, order[~np.isin(order, first)]))[:total]


def labels_needed(target: float, n_samples: int, reached: float | None = None, n_verified: int = 0) -> int:
    """Return how many labels the half-width `target` of a 95 % interval needs; it falls as √(1/m − 1/N).

    Known is the half-width that `n_verified` labels have `reached`; before that, the largest that is possible.
    """
    if reached is not None and reached <= target:
        return n_verified
    all_rows = 1 / n_samples
    step = (1.96 * _LARGEST_SPREAD) ** -2 if reached is None else reached**-2 * (1 / n_verified - all_rows)
    return min(ceil(1 / (target**2 * step + all_rows)), n_samples)
