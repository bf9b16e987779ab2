import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from dualt import noise
from dualt.errors import InputError
from dualt.estimators import estimate_transition
from dualt.estimators import hoc as hoc_module
from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.hoc import count_triples, hoc, match_consensus, misfit
from dualt.rows import as_posterior


def clusters(transition, n, rng, separation=5.0):
    """Features in tight clusters, one a class, labels drawn by `transition`, and hardly informative probabilities."""
    n_classes = len(transition)
    clean = rng.integers(0, n_classes, n)
    features = separation * np.eye(n_classes)[clean] + 0.3 * rng.normal(size=(n, n_classes))
    noisy = noise.corrupt(clean, transition, rng)
    probs = rng.dirichlet(np.ones(n_classes), n) + 0.6 * np.eye(n_classes)[clean]
    return features, probs / probs.sum(axis=1, keepdims=True), noisy, clean


def consensus(prior, transition):
    return np.einsum("i,ia,ib,ic->abc", prior, transition, transition, transition)


@pytest.mark.parametrize("name", ["sym-0.2", "sym-0.5", "pair-0.45", "random-0.3"])
def test_exact_consensus_gives_the_matrix_back(name):
    rng = np.random.default_rng(0)
    truth, prior = noise.from_name(name, 5, rng), rng.dirichlet(np.full(5, 10.0))
    found_prior, found = match_consensus(consensus(prior, truth), noise.symmetric(5, 0.4))
    np.testing.assert_allclose(found, truth, atol=2e-3)
    np.testing.assert_allclose(found_prior, prior, atol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_misfit_and_its_gradient(seed):
    rng = np.random.default_rng(seed)
    n_classes = 3
    vector = rng.normal(size=(n_classes + 1) * n_classes)
    cube = consensus(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3))
    value, gradient = misfit(vector, cube)
    shares = np.exp(vector.reshape(4, 3))
    shares /= shares.sum(axis=1, keepdims=True)
    expected = 0.0
    for order in (1, 2, 3):
        for labels in itertools.product(range(n_classes), repeat=order):
            model = sum(shares[0, i] * np.prod([shares[1 + i, label] for label in labels]) for i in range(n_classes))
            expected += (model - cube[labels].sum()) ** 2
    assert value == pytest.approx(hoc_module._SCALE * expected)
    numeric = approx_fprime(vector, lambda v: misfit(v, cube)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-2)


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_triples_equal_a_loop(seed):
    rng = np.random.default_rng(seed)
    space, labels = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    expected = np.zeros((3, 3, 3))
    for i in range(30):
        distance = [np.inf if k == i else np.hypot(*(space[k] - space[i])) for k in range(30)]
        for order in itertools.permutations(labels[[i, *np.argsort(distance)[:2]]]):
            expected[order] += 1 / 6
    np.testing.assert_allclose(count_triples(space, labels, 3), expected)


@pytest.mark.parametrize(("name", "bound"), [("sym-0.2", 0.06), ("pair-0.45", 0.06), ("random-0.3", 0.1)])
def test_clusterable_features_give_the_matrix(name, bound):
    """Also where the probabilities alone are of little use."""
    rng = np.random.default_rng(0)
    truth = noise.from_name(name, 4, rng)
    features, probs, noisy, _ = clusters(truth, 4000, rng)
    posterior = as_posterior(probs, noisy)
    error = np.abs(hoc(posterior, features=features).transition - truth).sum() / 4
    assert error < bound
    assert error < np.abs(confident_joint(posterior).transition - truth).sum() / 4


def test_probabilities_serve_as_features():
    rng = np.random.default_rng(0)
    truth = noise.pair(4, 0.3)
    clean = rng.integers(0, 4, 4000)
    probs = rng.dirichlet(np.ones(4), 4000) * 0.1 + 0.9 * np.eye(4)[clean]
    fit = hoc(as_posterior(probs, noise.corrupt(clean, truth, rng)))
    assert np.abs(fit.transition - truth).sum() / 4 < 0.08


def test_support_and_band():
    rng = np.random.default_rng(0)
    features, probs, noisy, clean = clusters(noise.symmetric(3, 0.2), 1500, rng)
    fit = hoc(as_posterior(probs, noisy), features=features)
    np.testing.assert_allclose(fit.support, np.bincount(clean), rtol=0.15)
    drawn = pickle.loads(pickle.dumps(fit.resample))(np.random.default_rng(1))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    assert np.abs(drawn - fit.transition).max() < 0.1


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(hoc_module, "_MOST_ROWS", 1500)
    rng = np.random.default_rng(0)
    truth = noise.pair(3, 0.3)
    features, probs, noisy, _ = clusters(truth, 4000, rng)
    posterior = as_posterior(probs, noisy)
    fit = hoc(posterior, features=features)
    assert np.abs(fit.transition - truth).sum() / 3 < 0.1
    np.testing.assert_array_equal(hoc(posterior, features=features).transition, fit.transition)
    assert fit.support.sum() == pytest.approx(4000, abs=5)


def test_refusals_say_what_was_expected(monkeypatch):
    posterior = as_posterior([[0.7, 0.3]] * 3, [0, 1, 0])
    with pytest.raises(InputError, match="at least three rows for hoc, got 2"):
        hoc(as_posterior([[0.7, 0.3]] * 2, [0, 1]))
    with pytest.raises(InputError, match="4 rows and 3 labels"):
        hoc(posterior, features=np.zeros((4, 2)))
    monkeypatch.setattr(hoc_module, "_MOST_CLASSES", 2)
    assert hoc(posterior).transition.shape == (2, 2)
    with pytest.raises(InputError, match="at most 2 classes for hoc, got 3"):
        hoc(as_posterior(np.full((3, 3), 1 / 3), [0, 1, 2]))


@pytest.mark.parametrize("estimator", ["hoc", "oracle"])
def test_rows_without_a_label_have_features_and_clean_labels_too(estimator):
    features, probs, noisy, clean = clusters(noise.symmetric(3, 0.2), 90, np.random.default_rng(0))
    there = np.arange(90) % 9 != 4
    given = np.where(there, noisy, np.nan)
    options = {"hoc": ("features", features), "oracle": ("clean_labels", clean)}
    name, values = options[estimator]
    found = estimate_transition(probs, given, estimator, **{name: values})
    expected = estimate_transition(probs[there], noisy[there], estimator, **{name: values[there]})
    np.testing.assert_array_equal(found.transition, expected.transition)
