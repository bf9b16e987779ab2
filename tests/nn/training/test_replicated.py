"""Every replica is its own serial run, up to floating point."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from training_samples import synthetic_data

from dualt.errors import InputError, TrainingError
from dualt.nn.methods import build_method
from dualt.nn.networks import build_network
from dualt.nn.training import Recipe, train
from dualt.nn.training.replicated import Replica, train_replicated


def network(seed, dropout):
    return build_network("mlp", (10,), 2, random_state=seed, hidden=(12, 12), dropout=dropout)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("report", ["best-validation", "last-ten"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_replicas_equal_serial_runs(dropout, report, optimizer):
    recipe = Recipe(epochs=4, optimizer=optimizer, learning_rate=0.01, batch_size=53, milestones=(2,), report=report)
    # Two seeds on the same data, and another noise and another sample.
    cases = [(0, synthetic_data(rate=0.2)), (1, synthetic_data(rate=0.2)), (2, synthetic_data(rate=0.4, seed=3))]
    replicas = [Replica(network(seed, dropout), data, seed) for seed, data in cases]
    train_replicated(replicas, recipe)
    for replica, (seed, data) in zip(replicas, cases, strict=True):
        alone = train([network(seed, dropout)], build_method("ce"), data, recipe, random_state=seed)
        for a, b in zip(replica.network.parameters(), alone.networks[0].parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
        for a, b in zip(replica.history.records, alone.history.records, strict=True):
            assert a.loss == pytest.approx(b.loss, rel=1e-3)
            assert a.test_accuracy == pytest.approx(b.test_accuracy, abs=0.01)
            assert a.validation_loss == pytest.approx(b.validation_loss, rel=1e-3)


def test_bad_requests_are_named():
    data, recipe = synthetic_data(), Recipe(epochs=1)
    with pytest.raises(InputError, match="perceptrons of one shape"):
        train_replicated([Replica(nn.Sequential(nn.Conv2d(1, 1, 1)), data, 0)], recipe)
    uneven = [Replica(network(0, 0), data, 0), Replica(network(1, 0), synthetic_data(n_samples=500), 1)]
    with pytest.raises(InputError, match="the same sizes"):
        train_replicated(uneven, recipe)
    broken = network(1, 0)
    with torch.no_grad():
        broken[1].weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match="replica 1 is not finite in epoch 0, batch 0"):
        train_replicated([Replica(network(0, 0), data, 0), Replica(broken, data, 1)], recipe)
