"""A data set of samples, labels and class names, and its split for an experiment with noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.datasets.images import LazyImages
from dualt.errors import InputError
from dualt.labels import LabelCoder, as_label_array
from dualt.noise import corrupt
from dualt.rng import stream
from dualt.validation import as_array, check_fraction, check_same_length, check_transition

Samples: TypeAlias = "NDArray[Any] | LazyImages"
Labels: TypeAlias = "NDArray[np.int64]"

# Images that are decoded on demand: compute the moments from this many, evenly spaced.
_LAZY_SAMPLE = 2_000
_CHUNK = 1_024


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples, labels as class numbers, and class names; the test part, if there is one, is clean."""

    name: str
    # uint8 images (n, H, W) or (n, C, H, W), or vectors (n, d); `LazyImages` if they do not fit in memory.
    train_x: Samples
    train_y: Labels
    test_x: Samples | None
    test_y: Labels | None
    class_names: tuple[str, ...]
    noisy: bool = False  # the training labels are noisy as they come, and the clean ones unknown
    published: NDArray[np.float64] | None = None  # `moments` as used in the literature, in the units of the samples
    ids: tuple[str, ...] | None = None  # id or file path of each training sample
    feature_names: tuple[str, ...] | None = None  # columns of the table that the samples come from

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, train_x={self.train_x.shape}, n_classes={self.n_classes})"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """Mean and standard deviation per channel or feature, of shape (2, n): published, or of the training part."""
        return compute_moments(self.train_x) if self.published is None else self.published


def compute_moments(samples: Samples) -> NDArray[np.float64]:
    """Return mean and standard deviation per channel or feature, which is one where a feature is constant."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    step = -(-len(samples) // _LAZY_SAMPLE) if isinstance(samples, LazyImages) else 1
    for start in range(0, len(samples), _CHUNK * step):
        chunk = samples[start : start + _CHUNK * step : step]
        images = chunk[:, None] if chunk.ndim == 3 else chunk
        # Every pixel is a row of channels.
        rows = np.moveaxis(images, 1, -1).reshape(-1, images.shape[1])
        scaler.partial_fit(rows.astype(np.float64))
    return np.stack([scaler.mean_, scaler.scale_])


def from_arrays(x: Any, y: Any, *, name: str = "arrays") -> Dataset:
    """Return a data set of the samples `x` and labels `y`.

    Parameters
    ----------
    x : (n, d), (n, H, W), (n, C, H, W) or (n, H, W, C)
        uint8 images stay bytes, other images become float32, vectors keep their precision. Channels go first.
    y : (n,)
        Numbers, names or one-hot rows. The classes are the values that occur, in sorted order.

    Examples
    --------
    >>> data = from_arrays([[0.0, 1.0], [2.0, 3.0]], ["no", "yes"])
    >>> data.class_names, data.train_y.tolist(), data.train_x.dtype
    (('no', 'yes'), [0, 1], dtype('float64'))
    """
    array, labels = as_array(x, "numbers in X", InputError), as_label_array(y)
    if array.dtype.kind not in "biuf":
        raise InputError(f"Expected numbers in X, got an array of dtype {array.dtype}.")
    if array.ndim not in (2, 3, 4) or array.size == 0:
        shapes = "(n, features), (n, height, width) or (n, channels, height, width)"
        raise InputError(f"Expected X of shape {shapes}, got {array.shape}.")
    check_same_length(len(array), len(labels))
    array = channels_first(array)
    if array.dtype != np.uint8 or array.ndim == 2:
        # Features keep their precision: float32 might merge different values.
        dtype = np.result_type(array.dtype, np.float32) if array.ndim == 2 else np.float32
        with np.errstate(over="ignore"):
            array = array.astype(dtype)
        check_finite(array, "X")
    coder = LabelCoder.found_in(labels)
    codes = coder.encode(labels).astype(np.int64)
    return Dataset(name, np.ascontiguousarray(array), codes, None, None, coder.names)


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
    """The training part of a data set, divided into one to train and one to validate on, both with noisy labels."""

    dataset: Dataset
    train_index: NDArray[np.int64]  # rows of the data set's training part
    train_noisy: Labels
    val_index: NDArray[np.int64]
    val_noisy: Labels
    transition: NDArray[np.float64] | None  # the noise that was applied, if any

    @property
    def clean_labels(self) -> Labels | None:
        """Of the rows to train on, then of those to validate on; `None` if unknown."""
        index = np.concatenate([self.train_index, self.val_index])
        return None if self.dataset.noisy else np.asarray(self.dataset.train_y[index])


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
    noisy = dataset.train_y[index]
    if transition is not None:
        noisy = corrupt(noisy, transition, stream(random_state, "noise"))
    if len(index) < 2:
        raise InputError(f"Expected at least two samples to split, got {len(index)}.")
    order = stream(random_state, "split").permutation(len(index))
    n_validation = min(max(round(fraction * len(index)), 1), len(index) - 1)  # neither part is empty
    train, val = np.sort(order[n_validation:]), np.sort(order[:n_validation])
    if n_train is not None:
        train = train[_subsample(len(train), n_train, random_state, "n_train")]
    return Split(dataset, index[train], noisy[train], index[val], noisy[val], transition)


def _subsample(total: int, size: int | None, seed: int, name: str) -> NDArray[np.int64]:
    if size is None:
        return np.arange(total)
    if not 2 <= size <= total:
        raise InputError(f"Expected {name} from 2 to {total:,}, the size of the training part, got {size:,}.")
    return np.sort(stream(seed, "subsample").permutation(total)[:size])
