"""The two Gaussians against scipy's multivariate normal densities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dualt.datasets import load_dataset
from dualt.datasets.synthetic import clean_posterior, noisy_posterior
from dualt.errors import TransitionError
from dualt.noise import pair


def reference_posterior(x):
    densities = [multivariate_normal(np.full(10, mean)).logpdf(x) for mean in (0.0, 2.0)]
    logs = np.stack(densities, axis=-1)
    return np.exp(logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True))


def test_the_clean_posterior_is_bayes_rule():
    x = np.random.default_rng(0).normal(1, 2, size=(500, 10))
    np.testing.assert_allclose(clean_posterior(x), reference_posterior(x), rtol=1e-9, atol=0)


def test_the_posterior_of_far_points_keeps_its_digits():
    x = np.array([[-10.0] * 10, [20.0] * 10, [1e4] * 10])
    posterior = clean_posterior(x)
    assert np.isfinite(posterior).all()
    assert posterior[0, 1] == pytest.approx(np.exp(-220), rel=1e-12)
    assert posterior[2].tolist() == [0, 1]


def test_the_noisy_posterior_mixes_rows():
    x = np.random.default_rng(1).normal(1, 1, size=(50, 10))
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    expected = [[p0 * 0.8 + p1 * 0.3, p0 * 0.2 + p1 * 0.7] for p0, p1 in reference_posterior(x)]
    np.testing.assert_allclose(noisy_posterior(x, transition), expected, rtol=1e-9)


def test_samples_have_the_papers_moments():
    data = load_dataset("synthetic", n_samples=40_000, n_test=100, random_state=3)
    assert data.train_x.shape == (40_000, 10)
    assert data.test_x.shape == (100, 10)
    for label, mean in ((0, 0.0), (1, 2.0)):
        members = data.train_x[data.train_y == label]
        # Five standard errors: 1/√20,000 for a mean, √2 times that for a variance.
        np.testing.assert_allclose(members.mean(axis=0), mean, atol=5 * 0.0071)
        np.testing.assert_allclose(np.cov(members.T), np.eye(10), atol=5 * 0.0101)
    assert abs(data.train_y.mean() - 0.5) < 5 * 0.0025


def test_seeds_and_parts_are_independent():
    first, again, other = (load_dataset("synthetic", n_samples=50, n_test=50, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.train_x, again.train_x)
    assert not np.isin(first.train_x, other.train_x).any()
    assert not np.isin(first.train_x, first.test_x).any()


def test_bad_arguments_are_refused():
    with pytest.raises(TransitionError, match="2×2"):
        noisy_posterior(np.zeros((3, 10)), pair(3, 0.1))
