"""Known facts about the real data sets, where they are on this machine."""

import numpy as np
import pytest

from dualt.datasets import REGISTRY, load_dataset
from dualt.datasets.dataset import compute_moments

pytestmark = pytest.mark.data


def load_or_skip(name):
    if not REGISTRY[name].is_present():
        pytest.skip(f"{name} is not on this machine: dualt data get {name}")
    return load_dataset(name)


@pytest.mark.parametrize(
    ("name", "shape", "first_labels", "counts"),
    [
        ("mnist", (28, 28), [5, 0, 4, 1, 9], [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        ("fashion-mnist", (28, 28), [9, 0, 0, 3, 0], [6000] * 10),
        ("cifar10", (3, 32, 32), [6, 9, 9, 4, 1], [5000] * 10),
        ("cifar100", (3, 32, 32), [19, 29, 0, 11, 1], [500] * 100),
    ],
)
def test_known_facts(name, shape, first_labels, counts):
    data = load_or_skip(name)
    assert data.train_x.shape == (sum(counts), *shape)
    assert data.test_x.shape == (10_000, *shape)
    assert data.train_y[:5].tolist() == first_labels
    assert np.bincount(data.train_y).tolist() == counts
    assert set(data.test_y) == set(range(data.n_classes))
    moments = compute_moments(data.train_x[:, ::4, ::4] if data.train_x.ndim == 3 else data.train_x[::10])
    # A part of the pixels is enough to see that the published moments belong to these images.
    np.testing.assert_allclose(moments / 255, data.moments / 255, atol=0.03)
