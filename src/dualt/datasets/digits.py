"""The small handwritten digits that come with scikit-learn."""

from __future__ import annotations

import numpy as np

from dualt.datasets.dataset import Dataset
from dualt.rng import stream

_TEST_SIZE = 360


def load_digits() -> Dataset:
    """Handwritten digits: 1,437 + 360 grey images of 8×8, from scikit-learn; nothing to download."""
    from sklearn import datasets

    digits = datasets.load_digits()
    # Sixteen shades become bytes, the one scale that all images share.
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    labels = digits.target.astype(np.int64)
    # The same test part whatever the seed of an experiment. Shuffled: the last writers differ from the first.
    order = stream(0, "digits-test").permutation(len(labels))
    test, train = order[:_TEST_SIZE], order[_TEST_SIZE:]
    names = tuple(map(str, range(10)))
    return Dataset("digits", images[train], labels[train], images[test], labels[test], names)
