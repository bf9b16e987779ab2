"""Arrays as a data set: checked once, labels of any kind turned into class numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.dataset import Dataset, Labels
from dualt.errors import InputError
from dualt.label_arrays import as_label_array
from dualt.labels import LabelCoder


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
    samples, labels = _as_samples(x, "X"), as_label_array(y)
    parts = [labels] if y_test is None else [labels, as_label_array(y_test)]
    coder = _coder(parts, class_names)
    dataset = Dataset(name, samples, _encode(coder, labels, samples, "training"), None, None, coder.names, noisy)
    if y_test is None:
        return dataset
    test_x = _as_samples(x_test, "X_test")
    if test_x.shape[1:] != samples.shape[1:]:
        raise InputError(
            f"Expected test samples like the training ones, of shape {samples.shape[1:]} each, got {test_x.shape[1:]}."
        )
    return replace(dataset, test_x=test_x, test_y=_encode(coder, parts[1], test_x, "test"))


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
    # Features in the precision they have: float32 may not tell them apart.
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


def _coder(parts: Sequence[NDArray[Any]], class_names: Sequence[Any] | None) -> LabelCoder:
    labels = parts[0]
    if class_names is not None:
        return LabelCoder.for_labels(labels, len(class_names), class_names)
    if labels.ndim == 2:
        return LabelCoder.found_in(labels)
    return LabelCoder.found_in(np.concatenate(parts))


def _encode(coder: LabelCoder, labels: NDArray[Any], samples: NDArray[Any], part: str) -> Labels:
    if len(labels) != len(samples):
        raise InputError(
            f"Expected one label per {part} sample, got {len(samples):,} samples and {len(labels):,} labels."
        )
    return coder.encode(labels).astype(np.int64)
