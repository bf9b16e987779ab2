"""How far an estimate could be off by chance: a bootstrap of the summary, not of the data.

Counts are resampled as a multinomial; an anchor as the first of the stored best rows that a resample
would draw. An interval covers *sampling*: what would change with other examples of the same kind. It
does not cover *bias*: probabilities that are wrong, or noise that depends on the example, shift every
resample alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_REPLICATE_ENTRIES = 1 << 25


def default_replicates(n_classes: int) -> int:
    """Return 200 replicates, fewer for hundreds of classes so that they fit in memory."""
    return int(np.clip(_REPLICATE_ENTRIES // n_classes**2, 32, 200))


def percentile_interval(
    replicates: NDArray[Any], support: NDArray[Any], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the central `level` of the replicates, widened to what `support` labels can show at all.

    A count of 0 among n labels resamples to 0 for ever, yet rules out only rates above
    1 − (1 − level)^(1/n) ("the rule of three").
    """
    tail = (1 - level) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
    reach = 1 - (1 - level) ** (1 / np.maximum(support, 1))
    # Within reach of an end the end itself cannot be ruled out: a shrunk zero would else exclude 0.
    return np.where(low < reach, 0, np.minimum(low, 1 - reach)), np.where(high > 1 - reach, 1, np.maximum(high, reach))
