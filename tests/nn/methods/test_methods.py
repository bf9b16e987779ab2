"""Each method's batch loss against one written out in loops, and each learns."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dualt import noise
from dualt.datasets import load_dataset, split_dataset
from dualt.errors import InputError, TransitionError, UnknownNameError
from dualt.nn.methods import METHODS, build_method
from dualt.nn.networks import build_network
from dualt.nn.training import Batch, Part, TrainingData, as_inputs, train

N_CLASSES = 4
MATRIX = noise.random_diagonal_dominant(N_CLASSES, 0.4, 3)


class Scripted:
    """A network that answers with prepared logits, or a linear function of its input."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(6, N_CLASSES, generator=generator, dtype=torch.float64)

    def __call__(self, x):
        return x @ self.weight


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(12, 6)))
    return Batch(
        x, torch.from_numpy(rng.integers(N_CLASSES, size=12)), epoch=5, rng=np.random.default_rng(1), ramp=5 / 9
    )


def probabilities(network, x):
    rows = []
    for row in network(x).tolist():
        weights = [math.exp(value) for value in row]
        rows.append([weight / sum(weights) for weight in weights])
    return rows


def losses_of(network, batch):
    return [-math.log(p[y]) for p, y in zip(probabilities(network, batch.x), batch.labels.tolist(), strict=True)]


def test_ce(batch):
    (loss,) = build_method("ce")([Scripted(0)], batch)
    assert loss.item() == pytest.approx(np.mean(losses_of(Scripted(0), batch)))


def test_mixup(batch):
    (loss,) = build_method("mixup")([Scripted(0)], batch)
    rng = np.random.default_rng(1)
    share, partner = rng.beta(1, 1), rng.permutation(12)
    total = 0.0
    for row in range(12):
        mixed = share * batch.x[row] + (1 - share) * batch.x[partner[row]]
        (p,) = probabilities(Scripted(0), mixed[None])
        own, other = batch.labels[row].item(), batch.labels[partner[row]].item()
        total -= share * math.log(p[own]) + (1 - share) * math.log(p[other])
    assert loss.item() == pytest.approx(total / 12)


def test_decoupling(batch):
    networks = [Scripted(0), Scripted(1)]
    losses = build_method("decoupling")(networks, batch)
    first, second = (np.argmax(probabilities(network, batch.x), axis=1) for network in networks)
    chosen = [row for row in range(12) if first[row] != second[row]]
    assert 0 < len(chosen) < 12
    for network, loss in zip(networks, losses, strict=True):
        each = losses_of(network, batch)
        assert loss.item() == pytest.approx(np.mean([each[row] for row in chosen]))


def kept_of(losses, rate):
    n_kept = max(1, math.floor((1 - rate) * len(losses) + 1e-6))
    return sorted(range(len(losses)), key=lambda row: losses[row])[:n_kept]


def test_mentornet(batch):
    method = build_method("mentornet", MATRIX)
    (loss,) = method([Scripted(0)], batch)
    each = losses_of(Scripted(0), batch)
    rate = (1 - np.diagonal(MATRIX).mean()) * 5 / 9
    assert loss.item() == pytest.approx(np.mean([each[row] for row in kept_of(each, rate)]))


def test_co_teaching(batch):
    networks = [Scripted(0), Scripted(1)]
    first, second = build_method("co-teaching", MATRIX)(networks, batch)
    rate = (1 - np.diagonal(MATRIX).mean()) * 5 / 9
    mine, theirs = losses_of(networks[0], batch), losses_of(networks[1], batch)
    assert first.item() == pytest.approx(np.mean([mine[row] for row in kept_of(theirs, rate)]))
    assert second.item() == pytest.approx(np.mean([theirs[row] for row in kept_of(mine, rate)]))


def test_the_forget_rate_rises_over_ten_epochs(batch):
    method, recipe = build_method("co-teaching", noise.symmetric(4, 0.45)), METHODS["co-teaching"].recipe
    rates = [method.forget_rate(batch._replace(ramp=recipe.ramp_at(epoch))) for epoch in (0, 3, 9, 10, 199)]
    assert rates == pytest.approx([0, 0.15, 0.45, 0.45, 0.45])


def test_forward(batch):
    (loss,) = build_method("forward", MATRIX)([Scripted(0)], batch)
    total = 0.0
    for p, y in zip(probabilities(Scripted(0), batch.x), batch.labels.tolist(), strict=True):
        total -= math.log(sum(p[i] * MATRIX[i, y] for i in range(N_CLASSES)))
    assert loss.item() == pytest.approx(total / 12)


@pytest.mark.parametrize("name", ["reweighting", "revision"])
def test_reweighting_and_revision_at_its_start(name, batch):
    (loss,) = build_method(name, MATRIX)([Scripted(0)], batch)
    total = 0.0
    for p, y in zip(probabilities(Scripted(0), batch.x), batch.labels.tolist(), strict=True):
        total -= p[y] / sum(p[i] * MATRIX[i, y] for i in range(N_CLASSES)) * math.log(p[y])
    assert loss.item() == pytest.approx(total / 12, rel=1e-6)


def test_revision_validates_through_the_revised_matrix():
    method = build_method("revision", MATRIX)
    with torch.no_grad():
        method.slack += 0.1 * torch.eye(N_CLASSES)
    probs = torch.eye(N_CLASSES)
    expected = (MATRIX + 0.1 * np.eye(N_CLASSES)) / 1.1
    np.testing.assert_allclose(method.to_noisy(probs), expected, rtol=1e-6)
    np.testing.assert_allclose(build_method("forward", MATRIX).to_noisy(probs), MATRIX, rtol=1e-6)
    assert torch.equal(build_method("ce").to_noisy(probs), probs)


def data_of(name, transition):
    dataset = load_dataset(name, **({"n_samples": 2000, "n_test": 500} if name == "synthetic" else {}))
    split = split_dataset(dataset, transition, random_state=0)

    def part(samples, labels):
        return Part(as_inputs(samples, dataset.mean, dataset.std), torch.from_numpy(labels))

    return TrainingData(
        part(split.train_x, split.train_noisy), part(split.val_x, split.val_noisy), part(split.test_x, split.test_y)
    )


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dataset", ["synthetic", "digits"])
def test_every_method_beats_chance_by_far(name, dataset):
    n_classes, shape = (2, (10,)) if dataset == "synthetic" else (10, (1, 8, 8))
    transition = noise.symmetric(n_classes, 0.2)
    data = data_of(dataset, transition)
    method = build_method(name, transition, n_classes=n_classes, n_samples=len(data.train.labels))
    networks = [build_network("mlp", shape, n_classes, random_state=k, dropout=0.0) for k in range(method.n_networks)]
    recipe = METHODS[name].recipe.changed(epochs=10, batch_size=32, learning_rate=0.05)
    if recipe.optimizer == "adam":
        recipe = recipe.changed(learning_rate=2e-3)
    trained = train(networks, method, data, recipe)
    assert trained.test_accuracy > (0.9 if dataset == "synthetic" else 0.75)


def test_bad_requests_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'co-teaching'"):
        build_method("coteaching")
    with pytest.raises(InputError, match="'forward' needs a transition matrix"):
        build_method("forward")
    with pytest.raises(TransitionError, match="square"):
        build_method("forward", np.ones((2, 3)) / 3)


def test_the_floor_of_forward_is_the_entropy_of_the_noise():
    matrix = noise.pair(4, 0.3)
    expected = -sum(value * np.log(value) for row in matrix for value in row if value > 0) / 4
    method = build_method("forward", matrix, floor=True)
    assert method.floor == pytest.approx(expected, rel=1e-5)
    labels = torch.arange(4)
    memorised = Batch(torch.eye(4) * 20, labels, 0, np.random.default_rng(0))
    plain = build_method("forward", matrix)([lambda x: x], memorised)[0]
    floored = method([lambda x: x], memorised)[0]
    assert plain < expected
    assert floored.item() == pytest.approx(2 * expected - plain.item(), rel=1e-5)
