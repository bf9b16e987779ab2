"""A data set: samples, labels and class names; and its parts in an experiment with noisy labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.datasets.images import LazyImages
from dualt.errors import InputError
from dualt.labels import LabelCoder, as_label_array
from dualt.noise import corrupt
from dualt.rng import stream
from dualt.validation import check_fraction, check_transition

Samples: TypeAlias = "NDArray[Any] | LazyImages"
Labels: TypeAlias = "NDArray[np.int64]"

# Images that are decoded on demand: compute the moments from this many, evenly spaced.
_LAZY_SAMPLE = 2_000
_CHUNK = 1_024


class Moments(NamedTuple):
    """Mean and standard deviation, never zero, per channel of images (of x/255 if uint8) or feature of vectors."""

    mean: Sequence[float] | NDArray[np.float64]
    std: Sequence[float] | NDArray[np.float64]


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

    @cached_property
    def moments(self) -> Moments:
        """The published mean and standard deviation, else those of the training part."""
        return self.published or compute_moments(self.train_x)


def compute_moments(samples: Samples) -> Moments:
    """Return mean and standard deviation per channel or feature; one where a feature is constant."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    for table in _tables(samples):
        scaler.partial_fit(table)
    return Moments(scaler.mean_, scaler.scale_)


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
        uint8 images stay bytes, other images become float32, vectors keep their precision. Channels go first.
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
    train, test = samples[0].shape[1:], samples[-1].shape[1:]
    if test != train:
        raise InputError(f"Expected test samples like the training ones, of shape {train} each, got {test}.")
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
    check_finite(array, name)
    return array


def check_finite(samples: NDArray[Any], name: str) -> None:
    """Refuse samples with numbers that are not finite or do not fit float32."""
    finite = (np.abs(samples) <= np.finfo(np.float32).max).reshape(len(samples), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"Expected finite numbers that fit float32 in {name}, got others in row {row}. Drop that row.")


def channels_first(samples: NDArray[Any]) -> NDArray[Any]:
    """Return images whose channels come last with channels first, and other samples as they are."""
    last = samples.ndim == 4 and samples.shape[3] in (1, 3) and samples.shape[1] not in (1, 3)
    return np.moveaxis(samples, 3, 1) if last else samples


@dataclass(frozen=True, eq=False)
class Split:
    """Noisy training and validation parts, and the data set's clean test part.

    Clean labels are `None` if unknown. `train_index` and `val_index` are rows of the data set's training part, and
    `transition` is the noise that was applied, or `None`.
    """

    train_x: Samples
    train_noisy: Labels
    train_clean: Labels | None
    train_index: NDArray[np.int64]
    val_x: Samples
    val_noisy: Labels
    val_clean: Labels | None
    val_index: NDArray[np.int64]
    test_x: Samples | None
    test_y: Labels | None
    class_names: tuple[str, ...]
    transition: NDArray[np.float64] | None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def clean_labels(self) -> Labels | None:
        """Of the training part followed by the validation part; `None` if unknown."""
        if self.train_clean is None or self.val_clean is None:
            return None
        return np.concatenate([self.train_clean, self.val_clean])


def split_dataset(
    dataset: Dataset,
    transition: ArrayLike | None = None,
    *,
    random_state: int = 0,
    validation_fraction: float = 0.2,
    n_samples: int | None = None,
    n_train: int | None = None,
) -> Split:
    """Draw `n_samples`, corrupt their labels, and set `validation_fraction` of them aside.

    Training and validation labels are noisy, the test part stays clean. The three draws are independent: another noise
    gives the same parts, and smaller subsamples are subsets of larger ones.

    `transition` is the noise, of shape (n_classes, n_classes); `None` keeps the labels. `n_samples` is the size of both
    parts together, by default all; `n_train` cuts only the training part, afterwards, as in the paper's released code.
    """
    if transition is not None:
        transition = check_transition(transition, dataset.n_classes)
        if dataset.noisy:
            raise InputError(
                f"Expected no transition: the labels of {dataset.name!r} are noisy already, and noise on top"
                " of unknown noise has no known matrix. Pass transition=None."
            )
    fraction = check_fraction(validation_fraction, "validation_fraction")
    index = _subsample(len(dataset.train_y), n_samples, random_state, "n_samples")
    given = dataset.train_y[index]
    noisy = given if transition is None else corrupt(given, transition, stream(random_state, "noise"))
    if len(index) < 2:
        raise InputError(f"Expected at least two samples to split, got {len(index)}.")
    order = stream(random_state, "split").permutation(len(index))
    n_validation = min(max(round(fraction * len(index)), 1), len(index) - 1)  # neither part is empty
    train, val = np.sort(order[n_validation:]), np.sort(order[:n_validation])
    if n_train is not None:
        train = train[_subsample(len(train), n_train, random_state, "n_train")]
    samples = dataset.train_x
    take = samples.subset if isinstance(samples, LazyImages) else samples.__getitem__
    parts = (
        (take(index[rows]), noisy[rows], None if dataset.noisy else given[rows], index[rows]) for rows in (train, val)
    )
    return Split(*next(parts), *next(parts), dataset.test_x, dataset.test_y, dataset.class_names, transition)


def _subsample(total: int, size: int | None, seed: int, name: str) -> NDArray[np.int64]:
    if size is None:
        return np.arange(total)
    if not 2 <= size <= total:
        raise InputError(f"Expected {name} from 2 to {total:,}, the size of the training part, got {size:,}.")
    return np.sort(stream(seed, "subsample").permutation(total)[:size])
