import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import noise
from dualt.estimators._counts import match_rows
from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.dual_t import dual_t
from dualt.estimators.joint import (
    _DISTANCE_WEIGHT,
    _HIDDEN,
    _WEIGHT_DECAY,
    Examples,
    JointModel,
    _finalists,
    _sample,
    _winner,
    cluster_counts,
    joint,
    starting_points,
    top_counts,
)
from dualt.rows import as_posterior
from tests.strategies import transitions


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


def loss_by_loops(vector, probs, labels, n_examples):
    """The objective and the weight decay of a parameter vector, one example at a time, in double precision."""
    n_classes = probs.shape[1]
    cuts = np.cumsum([_HIDDEN * (n_classes + 1), n_classes * (_HIDDEN + 1), 1])
    inward, outward, scale, logits = np.split(np.asarray(vector, np.float64), cuts)
    inward, outward = inward.reshape(_HIDDEN, -1), outward.reshape(n_classes, -1)
    transition = np.exp(logits.reshape(n_classes, n_classes))
    transition /= transition.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(probs, 1e-6))
    standardised = (logs - logs.mean(axis=0)) / logs.std(axis=0)
    posteriors, likelihood = [], 0.0
    for row, p, label in zip(standardised, probs, labels, strict=True):
        hidden = [max(0.0, weights[:-1] @ row + weights[-1]) for weights in inward]
        score = np.array(
            [scale[0] * np.log(max(p[k], 1e-4)) + outward[k, :-1] @ hidden + outward[k, -1] for k in range(n_classes)]
        )
        q = np.exp(score - score.max())
        q /= q.sum()
        posteriors.append(q)
        likelihood += np.log(q @ transition[:, label]) / len(labels)
    distance = np.mean([np.abs(a - b).sum() for a, b in itertools.pairwise(posteriors)])
    objective = -likelihood - _DISTANCE_WEIGHT * 0.5 * distance
    squares = (inward[:, :-1] ** 2).sum() + (outward[:, :-1] ** 2).sum()
    return objective, objective + _WEIGHT_DECAY / (2 * n_examples) * squares


def small_model(seed=0, n=7, n_classes=3):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(n_classes), n).astype(np.float32)
    labels = rng.integers(0, n_classes, n)
    model = JointModel(noise.symmetric(n_classes, 0.3), 50, rng)
    # Away from the start, where the outer weights are zero and hide the inner gradient.
    model._vector += rng.normal(0, 0.1, len(model._vector)).astype(np.float32)
    return model, probs, labels


def test_the_objective_equals_a_loop():
    model, probs, labels = small_model()
    expected, _ = loss_by_loops(model._vector, probs.astype(np.float64), labels, 50)
    assert model.objective(Examples.of(probs, labels)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_equals_finite_differences_of_the_loop(seed):
    model, probs, labels = small_model(seed)
    found = model.differentiate(Examples.of(probs, labels))
    vector, double = model._vector.astype(np.float64), probs.astype(np.float64)
    chosen = np.random.default_rng(seed).choice(len(vector) - 10, 60, replace=False)
    for place in (*chosen, *range(len(vector) - 10, len(vector))):  # the last are the scale and the matrix
        step = np.zeros(len(vector))
        step[place] = 1e-6
        above, below = (loss_by_loops(vector + sign * step, double, labels, 50)[1] for sign in (1, -1))
        assert found[place] == pytest.approx((above - below) / 2e-6, rel=2e-3, abs=2e-5)


def test_adam_is_the_textbook_s():
    model, _, _ = small_model()
    rng = np.random.default_rng(1)
    expected = model._vector.astype(np.float64)
    mean, square = np.zeros_like(expected), np.zeros_like(expected)
    for step, rate in enumerate([1.0, 0.7, 0.1], 1):
        gradient = rng.normal(size=len(expected))
        model._gradient[:] = gradient
        model._adam(rate)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        corrected = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        expected -= rate * np.where(np.arange(len(expected)) < len(expected) - 9, 5e-3, 1e-2) * corrected
    np.testing.assert_allclose(model._vector, expected, atol=1e-5)


def test_a_new_model_returns_the_probabilities_and_the_start():
    truth = noise.pair(4, 0.3)
    probs = np.random.default_rng(0).dirichlet(np.ones(4), 20).astype(np.float32)
    probs = np.maximum(probs, 2e-4)
    probs /= probs.sum(axis=1, keepdims=True)
    model = JointModel(truth, 20, np.random.default_rng(0))
    np.testing.assert_allclose(model.posterior(Examples.of(probs, np.zeros(20, int))).T, probs, atol=1e-5)
    np.testing.assert_allclose(model.transition, truth, atol=3e-3)


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


def test_relabelling_classes_permutes_the_estimate(small):
    probs, labels, fit = small
    order = np.array([2, 0, 3, 1])
    permuted = joint(as_posterior(probs[:, order], np.argsort(order)[labels]))
    np.testing.assert_allclose(permuted.transition, fit.transition[np.ix_(order, order)], atol=1e-6)
    np.testing.assert_array_equal(permuted.support, fit.support[order])


def test_pooling_draws_rows_together(small):
    probs, labels, fit = small
    plain = joint(as_posterior(probs, labels), pool=False).transition
    np.testing.assert_allclose(np.diagonal(plain), np.diagonal(fit.transition), atol=0.05)
    off = ~np.eye(4, dtype=bool)
    assert np.ptp(fit.transition[off]) < np.ptp(plain[off])


def test_bands_are_those_of_counting(small):
    """Resamples of row k scatter like the shares among Σ q_k labels, and survive pickling."""
    probs, labels, _ = small
    fit = joint(as_posterior(probs, labels), pool=False)
    assert fit.support.sum() == pytest.approx(len(labels), abs=8)
    rng = np.random.default_rng(0)
    resample = pickle.loads(pickle.dumps(fit.resample))
    drawn = np.array([resample(rng) for _ in range(400)])
    np.testing.assert_allclose(drawn.sum(axis=2), 1)
    rates = 1 - np.diagonal(fit.transition)
    np.testing.assert_allclose(1 - np.diagonal(drawn.mean(axis=0)), rates, atol=0.02)
    np.testing.assert_allclose(np.diagonal(drawn.std(axis=0)), np.sqrt(rates * (1 - rates) / fit.support), rtol=0.15)


def test_many_rows_are_sampled_across_chunks(monkeypatch):
    monkeypatch.setattr("dualt.estimators.joint._MOST_ROWS", 5_000)
    n = 300_000
    first = (np.arange(n) + 0.5) / n
    number = np.arange(n)
    posterior = as_posterior(np.column_stack([first, 1 - first]), (number % 2))
    probs, labels = _sample(posterior, np.random.default_rng(0))
    found = np.floor(probs[:, 0].astype(np.float64) * n + 0.01).astype(int)
    assert len(np.unique(found)) == 5_000
    assert (np.diff(found) > 0).all()
    # float32 holds 300,000 steps only to within one: compare where it is exact.
    exact = first[found].astype(np.float32) == probs[:, 0]
    assert exact.mean() > 0.9
    np.testing.assert_array_equal(labels[exact], found[exact] % 2)
    assert abs(found.mean() / n - 0.5) < 5 / np.sqrt(12 * 5_000)


def test_a_single_row_and_labels_of_one_class_are_survived():
    assert joint(as_posterior([[0.7, 0.3]], [0])).transition.shape == (2, 2)
    fit = joint(as_posterior([[0.7, 0.2, 0.1]] * 5, [1] * 5))
    np.testing.assert_allclose(fit.transition.sum(axis=1), 1)


@given(transitions(max_classes=5), st.integers(0, 100))
def test_rows_are_matched_to_the_best_permutation(transition, seed):
    transition = 0.9 * transition + 0.1 / len(transition)
    shuffled = transition[np.random.default_rng(seed).permutation(len(transition))]
    matched, order = match_rows(shuffled)
    np.testing.assert_array_equal(matched, shuffled[order])
    best = max(
        np.log(np.diagonal(shuffled[list(rows)])).sum() for rows in itertools.permutations(range(len(transition)))
    )
    assert np.log(np.diagonal(matched)).sum() == pytest.approx(best)


@given(st.integers(0, 1000), st.sampled_from([0.5, 0.2, 0.05]))
def test_top_counts_equal_a_loop(seed, share):
    rng = np.random.default_rng(seed)
    probs, labels = rng.dirichlet(np.full(4, 0.4), 90), rng.integers(0, 4, 90)
    expected = np.zeros((4, 4), int)
    for k in range(4):
        members = sorted((i for i in range(90) if probs[i].argmax() == k), key=lambda i, k=k: -probs[i, k])
        for i in members[: int(np.ceil(share * len(members)))]:
            expected[k, labels[i]] += 1
    np.testing.assert_array_equal(top_counts(probs, labels, share), expected)


def cluster_by_loops(probs, labels, transition, share):
    """One round of the clusters."""
    n, n_classes = probs.shape
    divergence = np.array(
        [[sum(p[j] * np.log(p[j] / row[j]) for j in range(n_classes)) for row in transition] for p in probs]
    )
    counts = np.zeros((n_classes, n_classes), int)
    for k in range(n_classes):
        margin = {i: np.sort(divergence[i])[1] - divergence[i, k] for i in range(n) if divergence[i].argmin() == k}
        for i in sorted(margin, key=margin.get, reverse=True)[: int(np.ceil(share * len(margin)))]:
            counts[k, labels[i]] += 1
    return counts


def test_a_round_of_clusters_equals_a_loop(monkeypatch):
    monkeypatch.setattr("dualt.estimators.joint._CLUSTER_ROUNDS", 1)
    rng = np.random.default_rng(0)
    truth = noise.random_diagonal_dominant(3, 0.3, rng)
    probs, labels, _ = overlapping(truth, 300, rng)
    start = noise.symmetric(3, 0.2)
    counts, clusters = cluster_counts(probs, labels, start, 0.5)
    expected = cluster_by_loops(probs, labels, start, 0.5)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_allclose(clusters, (expected + 0.5 * start) / (expected.sum(axis=1, keepdims=True) + 0.5))


def test_clusters_find_the_rows_of_clear_examples():
    rng = np.random.default_rng(0)
    truth = noise.pair(4, 0.45)
    probs, labels, _ = overlapping(truth, 6000, rng)
    _, clusters = cluster_counts(probs, labels, noise.symmetric(4, 0.3), 0.5)
    assert mean_row_error(clusters, truth) < 0.1


def test_thin_starts_are_left_out():
    rng = np.random.default_rng(0)
    probs, labels, _ = overlapping(noise.symmetric(3, 0.2), 2000, rng)
    first = noise.symmetric(3, 0.1)
    plenty = list(starting_points(probs, labels, first))
    few = list(starting_points(probs[:200], labels[:200], first))
    assert len(few) == 1 < len(plenty) <= 9
    np.testing.assert_array_equal(few[0], first)
    for start in plenty:
        np.testing.assert_allclose(start.sum(axis=1), 1)
        assert (start.argmax(axis=1) == np.arange(3)).all()


def test_the_first_start_stays_unless_another_is_clearly_better():
    assert _finalists([5.0, 1.0, 2.0, 3.0, 4.0], 10) == [0, 1, 2, 3]
    assert _finalists([5.0, 1.0, 2.0, 3.0, 4.0], 21) == [0, 1, 2]
    assert _finalists([1.0], 10) == [0]
    margin = 0.5 * 10 * 9 / (2 * 1000)
    assert _winner([1.0, 1.0 - 0.9 * margin], (1000, 10)) == 0
    assert _winner([1.0, 1.0 - 1.1 * margin], (1000, 10)) == 1
