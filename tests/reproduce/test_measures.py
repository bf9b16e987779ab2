"""Δ1, Δ2, Δ3 against loops and laws, and the logistic loss against its formula."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from dualt.datasets import load_dataset
from dualt.datasets.synthetic import noisy_posterior
from dualt.errors import InputError
from dualt.nn.networks import build_network
from dualt.noise import corrupt, symmetric
from dualt.reproduce.measuring import counting_error, fitting_error, posterior_error, with_logistic_loss

N_CLASSES = 3


def labels(seed, n=400):
    return np.random.default_rng(seed).integers(N_CLASSES, size=n)


def test_fitting_error_as_a_loop():
    clean, middle, noisy = labels(0), labels(1), labels(2)
    expected = 0.0
    for i in range(N_CLASSES):
        for j in range(N_CLASSES):
            for l in range(N_CLASSES):  # noqa: E741
                both = (clean == i) & (middle == l)
                given_both = (noisy[both] == j).mean()
                given_middle = (noisy[middle == l] == j).mean()
                expected += abs(given_both - given_middle) * both.sum() / (clean == i).sum() / N_CLASSES**2
    assert fitting_error(clean, middle, noisy, N_CLASSES) == pytest.approx(expected)


def test_fitting_error_vanishes_where_the_noisy_label_is_learned_by_heart():
    noisy = labels(2)
    assert fitting_error(labels(0), noisy, noisy, N_CLASSES) == 0
    # A class that is never predicted adds nothing.
    assert fitting_error(np.zeros(4, int), np.zeros(4, int), np.array([0, 1, 0, 1]), N_CLASSES) == 0


def test_counting_error_as_a_loop():
    truth = np.random.default_rng(3).dirichlet(np.ones(N_CLASSES), 400)
    middle, noisy = labels(1), labels(2)
    errors = [
        abs(truth[middle == l, j].mean() - (noisy[middle == l] == j).mean())
        for l in range(N_CLASSES)  # noqa: E741
        for j in range(N_CLASSES)
    ]
    assert counting_error(truth, middle, noisy) == pytest.approx(np.mean(errors))
    assert np.isfinite(counting_error(truth, np.zeros(400, int), noisy))


def test_the_exact_posterior_has_no_error_and_counting_a_small_one():
    data = load_dataset("synthetic", n_samples=20_000, n_test=10)
    transition = symmetric(2, 0.2)
    truth = noisy_posterior(data.train_x, transition)
    noisy = corrupt(data.train_y, transition, 0)
    assert posterior_error(truth, truth) == 0
    # Four standard deviations of a share among 10,000.
    assert counting_error(truth, truth.argmax(1), noisy) < 4 * 0.4 / 100
    assert posterior_error(np.array([[1.0, 0.0]]), np.array([[0.75, 0.25]])) == 0.25


def test_one_logit_gives_the_logistic_loss():
    network = build_network(with_logistic_loss("resnet-vector"), (10,), 2, width=0.1).eval()
    x, y = torch.randn(8, 10), torch.tensor([0, 1] * 4)
    logits = network(x)
    assert logits.shape == (8, 2)
    expected = F.softplus(-(2 * y - 1) * logits[:, 1]).mean()
    torch.testing.assert_close(F.cross_entropy(logits, y), expected)
    with pytest.raises(InputError, match="two classes"):
        build_network(with_logistic_loss("mlp"), (10,), 3)
