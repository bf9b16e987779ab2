"""Subsample a data set, corrupt its labels, and set a validation part aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.datasets.dataset import Dataset, Labels, Samples
from dualt.datasets.images import LazyImages
from dualt.errors import InputError
from dualt.noise import corrupt
from dualt.rng import stream
from dualt.validation import check_fraction, check_transition


@dataclass(frozen=True, eq=False)
class Split:
    """Noisy training and validation parts, and a clean test part.

    Attributes
    ----------
    train_x, train_noisy, train_clean
        The training part; clean labels are `None` if unknown.
    val_x, val_noisy, val_clean
        The validation part.
    test_x, test_y
        The clean test part, or `None`.
    train_index, val_index
        Row of each sample in the data set's training part.
    transition
        The noise that was applied, or `None`.
    """

    train_x: Samples
    train_noisy: Labels
    train_clean: Labels | None
    val_x: Samples
    val_noisy: Labels
    val_clean: Labels | None
    test_x: Samples | None
    test_y: Labels | None
    train_index: NDArray[np.int64]
    val_index: NDArray[np.int64]
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

    Parameters
    ----------
    dataset
    transition : (n_classes, n_classes)
        The noise; `None` keeps the labels.
    random_state
    validation_fraction
        Share of the samples to validate on.
    n_samples
        Size of training and validation part together; `None` takes all.
    n_train
        Size to which only the training part is cut afterwards, as in the paper's released code.
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
    return Split(
        train_x=take(index[train]),
        train_noisy=noisy[train],
        train_clean=None if dataset.noisy else given[train],
        val_x=take(index[val]),
        val_noisy=noisy[val],
        val_clean=None if dataset.noisy else given[val],
        test_x=dataset.test_x,
        test_y=dataset.test_y,
        train_index=index[train],
        val_index=index[val],
        class_names=dataset.class_names,
        transition=transition,
    )


def _subsample(total: int, size: int | None, seed: int, name: str) -> NDArray[np.int64]:
    if size is None:
        return np.arange(total)
    if not 2 <= size <= total:
        raise InputError(f"Expected {name} from 2 to {total:,}, the size of the training part, got {size:,}.")
    return np.sort(stream(seed, "subsample").permutation(total)[:size])
