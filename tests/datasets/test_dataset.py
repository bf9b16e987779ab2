"""What every data set offers: class counts and moments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dualt.datasets import Dataset, from_arrays, load_dataset
from dualt.datasets.dataset import compute_moments


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 2_500), st.integers(1, 3)),
        elements=st.floats(-100, 100, width=32),
        fill=st.nothing() | st.just(0.5),
    )
)
def test_moments_of_vectors_are_per_feature(x):
    mean, scale = compute_moments(x)
    np.testing.assert_allclose(mean, x.mean(axis=0, dtype=np.float64), atol=1e-9)
    std = x.std(axis=0, dtype=np.float64)
    np.testing.assert_allclose(scale, np.where(std > 0, std, 1), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("shape", "axes"), [((1_500, 4, 5), (0, 1, 2)), ((1_500, 3, 4, 5), (0, 2, 3))])
def test_moments_of_bytes_are_per_channel(shape, axes):
    x = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    expected = np.stack([np.atleast_1d(x.mean(axis=axes)), np.atleast_1d(x.std(axis=axes))])
    np.testing.assert_allclose(compute_moments(x), expected)


def test_published_moments_come_first():
    x, y = np.ones((2, 2), np.float32), np.array([0, 1])
    data = Dataset("d", x, y, None, None, ("a", "b"), published=np.array([[3.0], [4.0]]))
    np.testing.assert_array_equal(data.moments, [[3.0], [4.0]])
    np.testing.assert_array_equal(from_arrays(x, y).moments, np.ones((2, 2)))


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    reference = load_digits()
    data = load_dataset("digits")
    assert data.train_x.shape == (1437, 8, 8)
    assert data.test_x.shape == (360, 8, 8)
    everything = np.concatenate([data.train_x, data.test_x]).reshape(1797, -1)
    shades = np.rint(everything / 255 * 16).astype(int)
    labelled = np.column_stack([shades, np.concatenate([data.train_y, data.test_y])])
    expected = np.column_stack([reference.data.astype(int), reference.target])
    assert sorted(map(tuple, labelled)) == sorted(map(tuple, expected))
    assert np.bincount(data.test_y).min() >= 20


def test_a_data_set_shows_its_name_and_shape_and_no_pixels():
    assert repr(load_dataset("digits")) == "Dataset('digits', train_x=(1437, 8, 8), n_classes=10)"
