import itertools
import pickle

import numpy as np
import pytest

from dualt import noise
from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.dual_t import dual_t
from dualt.estimators.joint import DECAY, DISTANCE, HIDDEN, JointModel, joint
from dualt.rows import as_posterior


def overlapping(transition, n, rng, spread=1.5):
    """Exact noisy posteriors of Gaussian classes, some examples clear and some not, and drawn labels."""
    n_classes = len(transition)
    means = spread * np.linalg.qr(rng.normal(size=(n_classes, n_classes)))[0] * np.sqrt(2)
    clean = rng.integers(0, n_classes, n)
    x = means[clean] + rng.normal(size=(n, n_classes))
    clean_posterior = np.exp(-((x[:, None] - means) ** 2).sum(axis=2) / 2)
    clean_posterior /= clean_posterior.sum(axis=1, keepdims=True)
    return clean_posterior @ transition, noise.corrupt(clean, transition, rng), clean


def mean_row_error(transition, truth):
    return np.abs(transition - truth).sum() / len(truth)


def loss_by_loops(vector, probs, labels):
    """The loss with its weight decay, one example at a time."""
    n_classes = probs.shape[1]
    cuts = np.cumsum([(n_classes + 1) * HIDDEN, (HIDDEN + 1) * n_classes, 1])
    inward, outward, scale, logits = np.split(vector, cuts)
    inward, outward = inward.reshape(-1, HIDDEN), outward.reshape(-1, n_classes)
    transition = np.exp(logits.reshape(n_classes, n_classes))
    transition /= transition.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(probs, 1e-6))
    standardised = (logs - logs.mean(axis=0)) / logs.std(axis=0)
    posteriors, likelihood = [], 0.0
    for row, p, label in zip(standardised, probs, labels, strict=True):
        hidden = [max(0.0, inward[:-1, unit] @ row + inward[-1, unit]) for unit in range(HIDDEN)]
        score = np.array(
            [scale[0] * np.log(max(p[k], 1e-4)) + outward[:-1, k] @ hidden + outward[-1, k] for k in range(n_classes)]
        )
        q = np.exp(score - score.max())
        q /= q.sum()
        posteriors.append(q)
        likelihood += np.log(q @ transition[:, label]) / len(labels)
    distance = np.mean([np.abs(a - b).sum() for a, b in itertools.pairwise(posteriors)])
    squares = (inward[:-1] ** 2).sum() + (outward[:-1] ** 2).sum()
    return -likelihood - DISTANCE / 2 * distance + DECAY / (2 * len(labels)) * squares


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_equal_a_loop_and_its_finite_differences(seed):
    rng = np.random.default_rng(seed)
    probs, labels = rng.dirichlet(np.ones(3), 7), rng.integers(0, 3, 7)
    model = JointModel(probs, labels, noise.symmetric(3, 0.3), rng)
    # Away from the start, where the outer weights are zero and hide the inner gradient.
    vector = model.vector + rng.normal(0, 0.1, len(model.vector))
    loss, gradient = model.objective(vector)
    assert loss == pytest.approx(loss_by_loops(vector, probs, labels))
    for place in range(len(vector)):
        step = np.zeros(len(vector))
        step[place] = 1e-6
        above, below = (loss_by_loops(vector + sign * step, probs, labels) for sign in (1, -1))
        assert gradient[place] == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-8)


def test_a_new_model_returns_the_probabilities_and_the_start():
    truth = noise.pair(4, 0.3)
    probs = np.maximum(np.random.default_rng(0).dirichlet(np.ones(4), 20), 2e-4)
    probs /= probs.sum(axis=1, keepdims=True)
    model = JointModel(probs, np.zeros(20, int), truth, np.random.default_rng(0))
    _, posterior, transition = model.forward(model.vector)
    np.testing.assert_allclose(posterior, probs, atol=1e-5)
    np.testing.assert_allclose(transition, truth, atol=3e-3)


@pytest.mark.parametrize(("name", "bound"), [("sym-0.2", 0.1), ("pair-0.45", 0.06)])
def test_exact_posteriors_of_overlapping_classes_are_recovered(name, bound):
    rng = np.random.default_rng(0)
    truth = noise.from_name(name, 4)
    probs, labels, _ = overlapping(truth, 4000, rng)
    posterior = as_posterior(probs, labels)
    error = mean_row_error(joint(posterior).transition, truth)
    assert error < bound
    assert error < 0.25 * mean_row_error(dual_t(posterior).transition, truth)
    assert error < mean_row_error(confident_joint(posterior).transition, truth)


def test_clean_labels_are_called_clean():
    probs, labels, _ = overlapping(np.eye(3), 3000, np.random.default_rng(1))
    assert mean_row_error(joint(as_posterior(probs, labels)).transition, np.eye(3)) < 0.03


@pytest.fixture(scope="module")
def small():
    truth = noise.random_diagonal_dominant(4, 0.3, 0)
    probs, labels, _ = overlapping(truth, 800, np.random.default_rng(2))
    return probs, labels, joint(as_posterior(probs, labels))


def test_a_seed_settles_the_result(small):
    probs, labels, fit = small
    posterior = as_posterior(probs, labels)
    np.testing.assert_array_equal(joint(posterior, random_state=0).transition, fit.transition)
    other = joint(posterior, random_state=1).transition
    assert 0 < mean_row_error(other, fit.transition) < 0.1


def test_bands_are_no_wider_than_those_of_counting(small):
    """Resamples of row k scatter at most like the shares among Σ q_k labels, and survive pickling."""
    _, labels, fit = small
    assert fit.support.sum() == pytest.approx(len(labels), abs=8)
    rng = np.random.default_rng(0)
    resample = pickle.loads(pickle.dumps(fit.resample))
    drawn = np.array([resample(rng) for _ in range(400)])
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    rates = 1 - np.diagonal(fit.transition)
    np.testing.assert_allclose(1 - np.diagonal(drawn.mean(axis=0)), rates, atol=0.02)
    share = np.diagonal(drawn.std(axis=0)) / np.sqrt(rates * (1 - rates) / fit.support)
    assert ((share > 0.5) & (share < 1.15)).all()


def test_a_sample_stands_for_many_rows(small, monkeypatch):
    probs, labels, fit = small
    monkeypatch.setattr("dualt.estimators.joint._ROWS", 400)
    sampled = joint(as_posterior(probs, labels))
    assert sampled.support.sum() == pytest.approx(len(labels), abs=8)
    assert 0 < mean_row_error(sampled.transition, fit.transition) < 0.3


def test_a_single_row_and_labels_of_one_class_are_survived():
    assert joint(as_posterior([[0.7, 0.3]], [0])).transition.shape == (2, 2)
    fit = joint(as_posterior([[0.7, 0.2, 0.1]] * 5, [1] * 5))
    np.testing.assert_allclose(fit.transition.sum(axis=1), 1)
