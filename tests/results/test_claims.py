"""What may be claimed: by checked labels, by the classifier, and by estimators that claim nothing."""

import numpy as np
import pytest

import dualt
from dualt import noise
from dualt.results import claims


def drawn(n_rows, n_classes, sharpness, transition):
    """Return noisy posteriors with errors of the classifier, given labels and true ones."""
    rng = np.random.default_rng(0)
    clean = rng.choice(n_classes, n_rows)
    posterior = np.exp(sharpness * np.eye(n_classes)[clean] + rng.normal(size=(n_rows, n_classes)))
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior @ transition, noise.corrupt(clean, transition, rng), clean


CASES = {
    "two classes": drawn(3000, 2, 5, noise.symmetric(2, 0.2)),
    "strong": drawn(5000, 10, 10, noise.symmetric(10, 0.3)),
}


def test_verified_labels_give_an_upper_end():
    probs, given, clean = CASES["strong"]
    rows = np.random.default_rng(0).choice(len(given), 200, replace=False)
    estimate = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
    assert estimate.noise_rate_interval(0.9)[1] < 1
    assert estimate.summary.endswith("%).")
    assert "90% interval" in claims.headline(estimate, 0.9)
    assert estimate.doubt is None
    assert "checked labels" in claims.footnote(estimate)


@pytest.mark.parametrize("estimator", [None, "spade", "dual-t"])
def test_at_chance_no_rate_is_claimed(estimator):
    probs = np.eye(3)[np.arange(20) % 3] * 0.9 + 0.1 / 3
    estimate = dualt.estimate_transition(probs, np.full(20, 2), estimator)
    assert "always giving the most frequent one" in estimate.doubt
    assert estimate.summary == f"No noise rate can be claimed: {estimate.doubt}."
    assert dualt.estimate_transition(probs, np.full(20, 2), "oracle", clean_labels=np.full(20, 2)).doubt is None


def test_predictions_without_probabilities_claim_no_rate():
    """A tree's errors looked like wrong labels: 24 % at least, where 13 % were."""
    predicted = np.arange(300) % 3
    given = np.where(np.arange(300) % 10 < 4, (predicted + 1) % 3, predicted)
    estimate = dualt.estimate_transition(np.eye(3)[predicted], given)
    assert estimate.summary.startswith("No noise rate can be claimed: all probabilities are 0 or 1")
    assert [notice.code for notice in estimate.warnings] == ["hard-predictions"]
    assert dualt.estimate_transition(np.eye(3)[predicted], given, "spade").doubt is None


def test_the_classifier_is_judged_by_rows_it_has_not_seen():
    probs, given, _ = CASES["two classes"]
    estimate = dualt.estimate_transition(probs, given)
    assert claims.doubt(estimate) is None
    chance = np.random.default_rng(0).dirichlet(np.ones(2), 500)
    assert "most frequent" in claims.doubt(estimate, (chance, np.arange(500) % 2))


def test_only_what_is_claimed_is_an_interval():
    probs, given, clean = CASES["strong"]
    assert dualt.estimate_transition(probs, given, "spade").noise_rate_interval() == (0, 1)
    assert "look wrong by spade" in dualt.estimate_transition(probs, given, "spade").summary
    oracle = dualt.estimate_transition(probs, given, "oracle", clean_labels=clean)
    assert oracle.noise_rate_interval() == pytest.approx(((given != clean).mean(),) * 2, abs=1e-6)
