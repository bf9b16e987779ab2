"""Which labels to check: a simple random sample, in batches that add up."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.rng import stream

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.intp]


def draw_rows(rows: Ints, size: int, seed: int, earlier: Ints | None = None) -> Ints:
    """Return `size` of the `rows` that are not in `earlier` batches, drawn at random without replacement.

    A batch drawn at random from the rows that are left makes one simple random sample with the earlier ones.
    """
    # A stream of its own: the labels may have been corrupted with the same seed.
    order = rows[np.argsort(stream(seed, "audit rows").random(len(rows)), kind="stable")]
    return order[:size] if earlier is None else order[~np.isin(order, earlier)][:size]
