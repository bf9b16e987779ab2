"""When a matrix is not to be used."""

from __future__ import annotations

import numpy as np

import dualt
from dualt.results.credibility import distrust

RNG = np.random.default_rng(0)
CLEAN = RNG.integers(4, size=2_000)


def sure_probs(classes):
    return (0.97 * np.eye(4) + 0.01)[classes] / 1.01


def estimate(probs, labels, estimator="clean-count"):
    return dualt.estimate_transition(probs, labels, estimator)


def test_a_network_that_has_learned_is_trusted():
    given = dualt.noise.corrupt(CLEAN, dualt.noise.symmetric(4, 0.2))
    probs = (sure_probs(CLEAN) @ dualt.noise.symmetric(4, 0.2)).astype(np.float32)
    assert distrust(estimate(probs, given), probs, given) is None


def test_one_that_guesses_is_not():
    probs = sure_probs(RNG.integers(4, size=2_000)).astype(np.float32)
    assert "learned too little" in distrust(estimate(probs, CLEAN), probs, CLEAN)


def test_a_matrix_that_claims_more_than_is_contradicted_is_not():
    """dual-T of exact probabilities counts the noise twice."""
    given = dualt.noise.corrupt(CLEAN, dualt.noise.symmetric(4, 0.2))
    probs = (sure_probs(CLEAN) @ dualt.noise.symmetric(4, 0.2)).astype(np.float32)
    assert "contradicts only" in distrust(estimate(probs, given, "dual-t"), probs, given)


def test_of_few_examples_the_network_is_not_blamed():
    few = np.arange(8) % 2
    probs = np.eye(2, dtype=np.float32)[few] * 0.9 + 0.05
    assert "of 8 that may be chance" in distrust(estimate(probs, few), probs, few)
