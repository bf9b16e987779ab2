"""Describe colour photographs without labels: the library's filters, in the number that the benchmarks have."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.crossfit import ImageFeatures

Floats: TypeAlias = NDArray[np.float32]


def patch_features(pixels: Floats) -> Floats:
    """Return how images (n, channels, side, side) answer to 400 filters learnt from their patches."""
    return ImageFeatures(n_filters=400, n_components=300).fit_transform(pixels)
