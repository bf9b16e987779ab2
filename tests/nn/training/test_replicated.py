"""Every replica is its own serial run, up to floating point."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn
from training_samples import synthetic_data

from dualt import noise
from dualt.errors import InputError, TrainingError
from dualt.nn.methods import METHODS, build_method
from dualt.nn.networks import build_network
from dualt.nn.training import Recipe, train
from dualt.nn.training.replicated import Replica, train_replicated
from dualt.nn.training.stacking import run_stacked, stack_modules

REPLICABLE = [name for name, entry in METHODS.items() if entry.build.replicable]
# Two seeds on the same data, and another noise and another sample.
CASES = [(0, 0.2, 0), (1, 0.2, 0), (2, 0.4, 3)]


def network(seed, **options):
    return build_network("mlp", (10,), 2, random_state=seed, **{"hidden": (12, 12), "dropout": 0.0, **options})


drawn = cache(synthetic_data)


def replica(seed, rate, sample, name="ce", path=None, **options):
    data = drawn(rate=rate, seed=sample)
    method = build_method(name, noise.pair(2, rate), n_classes=2, n_samples=len(data.train.labels))
    networks = [network(10 * seed + number, **options) for number in range(method.n_networks)]
    return Replica(networks, method, data, seed, path)


def alone(one, recipe, **options):
    return train(one.networks, one.method, one.data, recipe, random_state=one.random_state, **options)


def assert_same(together, single):
    for a, b in zip([*together.networks, together.method], [*single.networks, single.method], strict=True):
        for name, value in a.state_dict().items():
            torch.testing.assert_close(value, b.state_dict()[name], rtol=1e-3, atol=1e-5)
    for a, b in zip(together.history.records, single.history.records, strict=True):
        assert a.loss == pytest.approx(b.loss, rel=1e-3)
        assert a.learning_rate == b.learning_rate
        assert a.validation_accuracy == pytest.approx(b.validation_accuracy, abs=0.01)
        assert a.validation_loss == pytest.approx(b.validation_loss, rel=1e-3)
        assert a.test_accuracy == pytest.approx(b.test_accuracy, abs=0.01)


def assert_replicas_equal_serial_runs(name, recipe, **options):
    together = train_replicated([replica(*case, name, **options) for case in CASES], recipe)
    for trained, case in zip(together, CASES, strict=True):
        assert_same(trained, alone(replica(*case, name, **options), recipe))


def test_the_methods_of_table_1_can_be_batched():
    table = {"ce", "mixup", "decoupling", "mentornet", "co-teaching", "forward", "reweighting", "revision"}
    assert table < set(REPLICABLE)


@pytest.mark.parametrize("name", REPLICABLE)
def test_every_method_has_replicas_that_equal_serial_runs(name):
    recipe = METHODS[name].recipe.changed(3, batch_size=53, learning_rate=0.01)
    assert_replicas_equal_serial_runs(name, recipe, dropout=0.4)


# Not Adam with batch norm: a bias before it has no gradient but rounding errors, which Adam scales up.
@pytest.mark.parametrize(
    ("optimizer", "options"),
    [("sgd", {}), ("adam", {}), ("sgd", {"batch_norm": True}), ("sgd", {"batch_norm": True, "dropout": 0.2})],
)
def test_networks_and_optimizers(options, optimizer):
    recipe = Recipe(epochs=3, optimizer=optimizer, momentum=0.9, batch_size=53, max_batches=7, milestones=(2,))
    assert_replicas_equal_serial_runs("ce", recipe, **options)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_features", [5, 300])
def test_the_gradient_of_a_stacked_layer_is_that_of_each(share, n_features):
    draw = torch.Generator().manual_seed(0)
    x, weight, bias, chosen = (
        torch.randn(shape, generator=draw) for shape in ((3, 20, n_features), (3, 4, n_features), (3, 4), (3, 20, 1))
    )
    chosen = torch.rand(chosen.shape, generator=draw) < share
    layers = [nn.Linear(n_features, 4) for _ in x]
    for layer, own, shift in zip(layers, weight, bias, strict=True):
        layer.weight.data, layer.bias.data = own.clone(), shift.clone()
    stack = nn.Sequential(stack_modules(layers))
    (run_stacked(stack, x, []).square() * chosen).sum().backward()
    for layer, own, samples, rows in zip(layers, range(3), x, chosen, strict=True):
        layer.zero_grad()
        (layer(samples).square() * rows).sum().backward()
        torch.testing.assert_close(stack[0].weight.grad[own], layer.weight.grad, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(stack[0].bias.grad[own], layer.bias.grad, rtol=1e-4, atol=1e-4)


def test_a_replica_without_disagreement_is_left_as_it_is():
    recipe = Recipe(epochs=2, optimizer="adam", batch_size=53)
    replicas = [replica(*case, "decoupling") for case in CASES]
    for one in replicas[1].networks:
        one.load_state_dict(replicas[1].networks[0].state_dict())
    before = [value.clone() for value in replicas[1].networks[0].parameters()]
    together = train_replicated(replicas, recipe)
    assert all(torch.equal(a, b) for a, b in zip(before, together[1].networks[0].parameters(), strict=True))
    assert_same(together[0], alone(replica(*CASES[0], "decoupling"), recipe))


def test_shared_samples_are_read_where_they_are():
    whole = synthetic_data().train
    taken = []
    take = whole.inputs.take
    object.__setattr__(whole.inputs, "take", lambda index: taken.append(index.shape) or take(index))
    parts = [
        whole.subset(torch.randperm(480, generator=torch.Generator().manual_seed(k))[:200].numpy()) for k in (0, 1)
    ]
    recipe = Recipe(epochs=2, batch_size=50)

    def replicas():
        data = [synthetic_data()._replace(train=part) for part in parts]
        return [Replica([network(k)], build_method("ce"), own, k) for k, own in enumerate(data)]

    together = train_replicated(replicas(), recipe)
    assert taken.count((100,)) == 8
    for trained, one in zip(together, replicas(), strict=True):
        assert_same(trained, alone(one, recipe))


@pytest.mark.parametrize("name", ["co-teaching", "revision", "elr"])
def test_an_interrupted_group_goes_on_where_each_replica_was(name, tmp_path):
    recipe = Recipe(epochs=5, optimizer="adam", batch_size=53, ramp=3)
    paths = [tmp_path / f"{number}.safetensors" for number in range(3)]

    def replicas():
        return [replica(*case, name, path, dropout=0.3) for case, path in zip(CASES, paths, strict=True)]

    def interrupt(number, record):
        if (number, record.epoch) == (1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_replicated(replicas(), recipe, checkpoint_every=1, on_epoch=interrupt)
    # The first two had written three epochs when the third had written two.
    seen = []
    resumed = train_replicated(
        replicas(), recipe, resume=True, on_epoch=lambda k, record: seen.append((record.epoch, k))
    )
    assert seen == [(2, 2), *((epoch, k) for epoch in (3, 4) for k in range(3))]
    for trained, case in zip(resumed, CASES, strict=True):
        assert_same(trained, alone(replica(*case, name, dropout=0.3), recipe))
    # The file is that of a serial run, and finished.
    last = replica(*CASES[2], name, dropout=0.3)
    assert_same(alone(last, recipe, checkpoint=paths[2], resume=True), resumed[2])


def test_replicas_stop_when_their_own_patience_is_over():
    recipe = Recipe(epochs=9, learning_rate=0.5, batch_size=53, patience=1)
    together = train_replicated([replica(*case) for case in CASES], recipe)
    lengths = [len(trained.history) for trained in together]
    assert len(set(lengths)) > 1
    assert lengths == [len(alone(replica(*case), recipe).history) for case in CASES]


def test_bad_requests_are_named():
    recipe = Recipe(epochs=1)
    first, data = replica(*CASES[0]), synthetic_data()
    with pytest.raises(InputError, match="perceptrons of one shape"):
        train_replicated([Replica([nn.Sequential(nn.Conv2d(1, 1, 1))], build_method("ce"), data)], recipe)
    with pytest.raises(InputError, match="of one shape"):
        train_replicated([first, Replica([network(0, hidden=(12, 13))], build_method("ce"), data)], recipe)
    uneven = Replica([network(1)], build_method("ce"), synthetic_data(n_samples=500))
    with pytest.raises(InputError, match="the same sizes"):
        train_replicated([first, uneven], recipe)
    with pytest.raises(InputError, match="one method with the same options"):
        train_replicated([first, Replica([network(1)], build_method("gce"), data)], recipe)
    with pytest.raises(InputError, match="DivideMix: train one by one"):
        train_replicated([replica(*CASES[0], "dividemix")], recipe)
    broken = replica(*CASES[1])
    with torch.no_grad():
        broken.networks[0][1].weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match="replica 1 is nan in epoch 0, batch 0"):
        train_replicated([replica(*CASES[0]), broken], recipe)
