"""Two opinions on a label: what the matrix says, and what the probabilities say without it."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import dualt
from dualt import noise
from dualt.issues.opinions import BayesScorer, PooledScorer
from dualt.rows import as_posterior
from dualt.transition import EarlyPosterior


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(4, 0.4), 3000)
    clean = (probs.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(0, 3)
    truth = noise.pair(4, 0.3)
    return probs @ truth, noise.corrupt(clean, truth, random_state=1), clean, truth


def test_full_trust_is_bayes_rule(data):
    probs, labels, _, truth = data
    bayes = BayesScorer(EarlyPosterior(truth))
    pooled = PooledScorer.of(bayes, 1.0, as_posterior(probs, labels).summary)
    by_rule, by_pool = bayes(probs, labels)[1], pooled(probs, labels)[1]
    np.testing.assert_array_equal(np.argsort(by_rule)[:50], np.argsort(by_pool)[:50])
    np.testing.assert_allclose(by_pool, by_rule, atol=0.02)


def test_without_trust_the_probabilities_rank(data):
    probs, labels, _, truth = data
    pooled = PooledScorer.of(BayesScorer(EarlyPosterior(truth)), 0.0, as_posterior(probs, labels).summary)
    right = pooled(probs, labels)[1]
    rows = np.arange(len(labels))
    others = probs.copy()
    others[rows, labels] = 0
    plain = 1.25 * np.log(probs[rows, labels] + 0.075) - 0.25 * np.log(others.max(axis=1) + 0.075)
    np.testing.assert_array_equal(np.argsort(right, kind="stable"), np.argsort(plain, kind="stable"))


@pytest.mark.parametrize("trust", [0.0, 0.3, 0.7])
def test_probabilities_are_those_of_bayes_rule_in_another_order(data, trust):
    probs, labels, _, truth = data
    bayes = BayesScorer(EarlyPosterior(truth))
    pooled = PooledScorer.of(bayes, trust, as_posterior(probs, labels).summary)
    _, right, suggested, probability = pooled(probs, labels)
    np.testing.assert_allclose(np.sort(right), np.sort(bayes(probs, labels)[1]), atol=0.02)
    assert ((probability >= 0) & (probability <= 1)).all()
    kept = suggested == labels
    np.testing.assert_array_equal(probability[kept], right[kept])
    assert (right[~kept] + probability[~kept] <= 1 + 1e-9).all()
    assert (probability[~kept] > right[~kept]).all()


def test_a_ranking_through_an_unsupported_matrix_is_no_worse_than_without():
    """Sixty classes, a weak classifier: what is counted of T's structure is chance."""
    rng = np.random.default_rng(0)
    n_classes, n = 60, 9000
    clean = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), clean] += rng.exponential(2.5, n)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = noise.symmetric(n_classes, 0.2)
    labels = noise.corrupt(clean, truth, random_state=0)
    probs = probs @ truth
    found = dualt.find_label_issues(probs, labels)
    wrong = labels != clean
    plain = average_precision_score(wrong, -probs[np.arange(n), labels])
    assert average_precision_score(wrong, -found.probability_right) > plain - 0.01
