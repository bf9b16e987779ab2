"""The answers that belong to the version numbers: where one changes, its number in `spec.VERSIONS` has to rise."""

import numpy as np
import pytest
import torch

import dualt
from dualt.estimators import ESTIMATORS, estimate_posterior
from dualt.nn.methods import METHODS, build_method
from dualt.nn.training import Part, Recipe, TrainingData, as_inputs, train
from dualt.reproduce.spec import VERSIONS
from dualt.rows import as_posterior

# By name: version, and the diagonal of the matrix that it gives below.
ESTIMATES = {
    "t": (1, [0.75, 0.75, 0.75]),
    "dual-t": (1, [0.5864, 0.5198, 0.5649]),
    "spade": (1, [0.7713, 0.6825, 0.7444]),
    "confident-joint": (1, [0.7924, 0.7012, 0.7729]),
    "clean-count": (1, [0.7666, 0.7499, 0.7623]),
    "selective": (1, [0.8023, 0.7831, 0.7917]),
    "joint": (1, [0.8043, 0.7344, 0.8011]),
    "hoc": (1, [0.7806, 0.6399, 0.7779]),
    "oracle": (1, [0.7979, 0.7196, 0.7713]),
}
# By name: version, and the mean loss of its second epoch below.
LOSSES = {
    "ce": (1, 0.7916),
    "mixup": (1, 0.9255),
    "decoupling": (1, 1.0549),
    "mentornet": (1, 0.379),
    "co-teaching": (1, 0.4096),
    "forward": (1, 0.8023),
    "reweighting": (1, 0.6234),
    "revision": (1, 0.5419),
    "gce": (1, 0.5489),
    "elr": (1, -0.1007),
    "dividemix": (1, 1.0701),
    "volminnet": (1, 0.8953),
    "total-variation": (1, 0.8516),
}


def problem(n=600):
    """Three classes, their features and probabilities, and labels of which a quarter are wrong."""
    rng = np.random.default_rng(0)
    clean = rng.integers(3, size=n)
    features = (3 * np.eye(3)[clean] + rng.standard_normal((n, 3))).astype(np.float32)
    noisy = dualt.noise.corrupt(clean, dualt.noise.pair(3, 0.25), np.random.default_rng(1))
    scores = np.exp(2 * features)
    return features, scores / scores.sum(axis=1, keepdims=True) @ dualt.noise.pair(3, 0.25), noisy, clean


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_answers_as_its_version_did(name):
    _, probs, noisy, clean = problem()
    options = {"clean_labels": clean} if ESTIMATORS[name].needs_clean_labels else {}
    diagonal = estimate_posterior(as_posterior(probs, noisy, out_of_fold=True), name, **options).transition.diagonal()
    version, expected = ESTIMATES[name]
    same = np.allclose(diagonal, expected, atol=2e-3)
    assert same, f"{name} answers otherwise: raise its number in VERSIONS, and write {diagonal.round(4).tolist()} here"
    assert VERSIONS.get(name, 1) == version


@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_as_its_version_did(name):
    features, _, noisy, _ = problem(128)
    part = Part(as_inputs(features), torch.from_numpy(noisy))
    method = build_method(name, dualt.noise.pair(3, 0.25), n_classes=3, n_samples=128)
    networks = [torch.nn.Linear(3, 3) for _ in range(method.n_networks)]
    for number, network in enumerate(networks):
        torch.nn.init.constant_(network.bias, 0.0)
        network.weight.data = 0.3 * torch.eye(3) + 0.25 * number * torch.eye(3).roll(1, 0)
    trained = train(networks, method, TrainingData(part, part), Recipe(epochs=2, learning_rate=0.1, batch_size=32))
    loss = trained.history.records[-1].loss
    version, expected = LOSSES[name]
    same = loss == pytest.approx(expected, abs=2e-3)
    assert same, f"{name} learns otherwise: raise its number in VERSIONS, and write {loss:.4f} here"
    assert VERSIONS.get(name, 1) == version
