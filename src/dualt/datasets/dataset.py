"""A data set: samples, labels and class names; from arrays with `from_arrays`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.images import LazyImages
from dualt.errors import InputError
from dualt.labels import LabelCoder, as_label_array

Samples: TypeAlias = "NDArray[Any] | LazyImages"
Labels: TypeAlias = "NDArray[np.int64]"

# Images that are decoded on demand: compute the moments from this many, evenly spaced.
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
        uint8 images (n, H, W) or (n, C, H, W), or vectors (n, d); `LazyImages` if they do not fit in memory.
    train_y : (n,)
        Class numbers: the clean ones, unless `noisy`.
    test_x, test_y
        The clean test part, or `None`.
    class_names
    noisy
        The training labels are noisy already; the clean ones are unknown.
    published
        Mean and standard deviation used in the literature; computed if `None`.
    ids
        Id or file path of each training sample, if there is one.
    feature_names
        Column names of the table that the samples come from, if it has some.
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


def from_arrays(
    x: Any,
    y: Any,
    x_test: Any = None,
    y_test: Any = None,
    *,
    name: str = "arrays",
    class_names: Sequence[Any] | None = None,
    noisy: bool = False,
) -> Dataset:
    """Return a data set of the samples `x` and labels `y`, with a clean test part if given.

    Parameters
    ----------
    x, x_test : (n, d), (n, H, W), (n, C, H, W) or (n, H, W, C)
        uint8 images stay bytes, everything else becomes float32. Channels go first.
    y, y_test : (n,)
        Numbers, names or one-hot rows. The classes are the values that occur, in sorted order, unless
        `class_names` says otherwise.
    name, class_names, noisy
        As in `Dataset`.

    Examples
    --------
    >>> data = from_arrays([[0.0, 1.0], [2.0, 3.0]], ["no", "yes"])
    >>> data.class_names, data.train_y.tolist(), data.train_x.dtype
    (('no', 'yes'), [0, 1], dtype('float64'))
    """
    if (x_test is None) != (y_test is None):
        raise InputError("Expected both samples and labels to test on, or neither, got one of them.")
    samples, labels = [_as_samples(x, "X")], [as_label_array(y)]
    if x_test is not None:
        samples, labels = [*samples, _as_samples(x_test, "X_test")], [*labels, as_label_array(y_test)]
        if samples[1].shape[1:] != samples[0].shape[1:]:
            raise InputError(
                f"Expected test samples like the training ones, of shape {samples[0].shape[1:]} each,"
                f" got {samples[1].shape[1:]}."
            )
    for own, given, part in zip(samples, labels, ("training", "test"), strict=False):
        if len(own) != len(given):
            raise InputError(
                f"Expected one label per {part} sample, got {len(own):,} samples and {len(given):,} labels."
            )
    if class_names is not None:
        coder = LabelCoder.for_labels(labels[0], len(class_names), class_names)
    else:
        coder = LabelCoder.found_in(labels[0] if labels[0].ndim == 2 else np.concatenate(labels))
    codes = [coder.encode(given).astype(np.int64) for given in labels]
    test_x, test_y = (None, None) if x_test is None else (samples[1], codes[1])
    return Dataset(name, samples[0], codes[0], test_x, test_y, coder.names, noisy)


def _as_samples(x: Any, name: str) -> NDArray[Any]:
    array = np.asarray(x.to_numpy() if hasattr(x, "to_numpy") else x)
    if array.dtype.kind not in "biuf":
        raise InputError(f"Expected numbers in {name}, got an array of dtype {array.dtype}.")
    if array.ndim not in (2, 3, 4) or array.size == 0:
        raise InputError(
            f"Expected {name} of shape (n, features), (n, height, width) or (n, channels, height, width),"
            f" got {array.shape}."
        )
    array = channels_first(array)
    if array.dtype == np.uint8 and array.ndim > 2:
        return np.ascontiguousarray(array)
    # Features keep their precision: float32 might merge different values.
    features = np.result_type(array.dtype, np.float32) if array.ndim == 2 else np.float32
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, features)
    finite = (np.abs(array) <= np.finfo(np.float32).max).reshape(len(array), -1).all(axis=1)
    if not finite.all():
        raise InputError(
            f"Expected finite numbers in {name}, got NaN or infinity in row {int(np.argmin(finite))}."
            " Fill or drop that row."
        )
    return array


def channels_first(samples: NDArray[Any]) -> NDArray[Any]:
    """Return images whose channels come last with channels first, and other samples as they are."""
    last = samples.ndim == 4 and samples.shape[3] in (1, 3) and samples.shape[1] not in (1, 3)
    return np.moveaxis(samples, 3, 1) if last else samples
