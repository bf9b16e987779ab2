"""What every data set is once it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.images import LazyImages

Samples: TypeAlias = "NDArray[Any] | LazyImages"
Labels: TypeAlias = "NDArray[np.int64]"

# Moments of images that are decoded on demand come from this many of them, evenly spread.
_LAZY_SAMPLE = 2_000
_CHUNK = 1_024


class Moments(NamedTuple):
    """Mean and standard deviation per channel of images (of x/255 if uint8), per feature of vectors."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples, labels and class names.

    Attributes
    ----------
    name
    train_x : (n, ...)
        uint8 images (n, H, W) or (n, C, H, W), or float32 vectors (n, d); images too many for the
        memory come as `LazyImages`.
    train_y : (n,)
        Class numbers: the clean ones, unless `noisy`.
    test_x, test_y
        The clean test part, or `None`.
    class_names
    noisy
        The training labels are noisy as they come, and the clean ones are not known.
    published
        The moments that the literature normalises with; without them they are computed.
    ids
        What the user calls each training sample: its id, or the path of its file. `None`: rows have numbers only.
    feature_names
        Columns of the table that the samples come from, in order; `None` if they have no names.
    """

    name: str
    train_x: Samples
    train_y: Labels
    test_x: Samples | None
    test_y: Labels | None
    class_names: tuple[str, ...]
    noisy: bool = False
    published: Moments | None = None
    ids: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean per channel or feature, on the scale of x/255 for uint8."""
        return np.array(self._moments.mean)

    @property
    def std(self) -> NDArray[np.float64]:
        """Standard deviation per channel or feature, on the scale of x/255 for uint8; never zero."""
        return np.array(self._moments.std)

    @cached_property
    def _moments(self) -> Moments:
        return self.published or compute_moments(self.train_x)


def compute_moments(samples: Samples) -> Moments:
    """Return mean and standard deviation per channel or feature; one where a feature is constant."""
    count = sum(len(table) for table in _tables(samples))
    mean = sum(table.sum(axis=0) for table in _tables(samples)) / count
    # A second pass, because E[x²] − E[x]² loses all digits for a feature far from zero.
    variance = sum(((table - mean) ** 2).sum(axis=0) for table in _tables(samples)) / count
    std = np.sqrt(variance)
    return Moments(tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist()))


def _tables(samples: Samples) -> Iterator[NDArray[np.float64]]:
    """Yield the samples in chunks, as rows of channels (pixels become rows) or of features."""
    step = -(-len(samples) // _LAZY_SAMPLE) if isinstance(samples, LazyImages) else 1
    for start in range(0, len(samples), _CHUNK * step):
        chunk = samples[start : start + _CHUNK * step : step]
        scaled = chunk / 255.0 if chunk.dtype == np.uint8 else chunk.astype(np.float64)
        if chunk.ndim == 3:
            scaled = scaled[:, None]
        yield scaled if chunk.ndim == 2 else np.moveaxis(scaled, 1, -1).reshape(-1, scaled.shape[1])
