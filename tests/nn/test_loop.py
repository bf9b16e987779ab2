"""The loop: it equals a loop written out by hand, repeats itself, stops, and says why it stopped."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812
from training_samples import assert_same_weights, small_network, synthetic_data, weights_of

from dualt.errors import InputError, TrainingError
from dualt.nn.loop import train
from dualt.nn.methods import build_method
from dualt.nn.networks import build_network, predict_probs, seeded
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part, TrainingData, as_inputs
from dualt.rng import stream, stream_seed

RECIPE = Recipe(epochs=4, learning_rate=0.1, momentum=0.9, batch_size=50, milestones=(2,), report="last-ten")


def run(recipe=RECIPE, *, seed=0, method="ce", data=None, **options):
    networks = [small_network(seed=k) for k in range(2 if method in ("decoupling", "co-teaching") else 1)]
    matrix = [[0.8, 0.2], [0.2, 0.8]]
    return train(networks, build_method(method, matrix), data or synthetic_data(), recipe, random_state=seed, **options)


def test_equals_a_loop_written_out_by_hand():
    data = synthetic_data()
    network = small_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    inputs = data.train.inputs.take(torch.arange(len(data.train.labels)))
    for epoch in range(4):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 if epoch < 2 else 0.01
        order = torch.from_numpy(stream(0, f"batches/{epoch}").permutation(len(inputs)))
        with seeded(stream_seed(0, f"dropout/{epoch}")):
            for start in range(0, len(inputs), 50):
                index = order[start : start + 50]
                optimizer.zero_grad()
                F.cross_entropy(network(inputs[index]), data.train.labels[index]).backward()
                optimizer.step()
    trained = run()
    for expected, actual in zip(network.parameters(), trained.networks[0].parameters(), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_learns_and_keeps_the_epoch_with_the_best_noisy_validation():
    data = synthetic_data(n_samples=1500)
    trained = run(Recipe(epochs=8, learning_rate=0.1, batch_size=50), data=data)
    assert trained.test_accuracy > 0.97
    assert trained.test_accuracy == trained.records[trained.best_epoch].test_accuracy
    probs = predict_probs(trained.networks, data.test.inputs)
    assert (probs.argmax(1) == data.test.labels).float().mean().item() == pytest.approx(trained.test_accuracy)
    torch.testing.assert_close(probs.sum(1), torch.ones(len(probs)))
    assert trained.networks[0].training


@pytest.mark.parametrize("method", ["ce", "mixup", "co-teaching"])
def test_a_seed_fixes_everything_whatever_the_global_generators_do(method):
    torch.manual_seed(1)
    first = run(method=method)
    torch.manual_seed(2)
    np.random.default_rng()
    state = torch.random.get_rng_state()
    second = run(method=method)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert_same_weights(weights_of(first.networks), weights_of(second.networks))
    other = run(method=method, seed=5)
    assert not torch.equal(weights_of(first.networks)[0], weights_of(other.networks)[0])


def test_a_training_stops_before_the_end_of_its_schedule_where_told(tmp_path):
    whole, path = run(), tmp_path / "run.safetensors"
    data = TrainingData(synthetic_data().train)  # nothing chooses an epoch but what was asked for
    trained = run(n_epochs=3, data=data, checkpoint=path)
    told = [(record.loss, record.learning_rate) for record in whole.records]
    assert [(record.loss, record.learning_rate) for record in trained.records] == told[:3]
    again = run(n_epochs=3, data=data, checkpoint=path, resume=True, on_epoch=lambda _: pytest.fail("goes on"))
    assert_same_weights(weights_of(again.networks), weights_of(trained.networks))
    with pytest.raises(InputError, match="n_epochs"):
        run(n_epochs=2, data=data, checkpoint=path, resume=True)


def test_a_loss_that_is_not_finite_is_named(tmp_path):
    recipe = Recipe(epochs=3, learning_rate=0.01, batch_size=50)
    path = tmp_path / "run.safetensors"
    calls = 0

    def poison(x, rng):
        nonlocal calls
        calls += 1
        return x * float("nan") if calls == 13 else x

    with pytest.raises(TrainingError, match="loss is nan in epoch 1, batch 2"):
        run(recipe, augment=poison, checkpoint=path)
    resumed = run(recipe, checkpoint=path, resume=True)
    assert_same_weights(weights_of(resumed.networks), weights_of(run(recipe).networks))


def test_a_single_sample_left_over_joins_the_batch_before():
    network = build_network("resnet-vector", (10,), 2, width=0.2)
    data = synthetic_data()
    x = data.train.inputs.take(torch.arange(101))
    part = Part(as_inputs(x.numpy()), data.train.labels[:101])
    trained = train([network], build_method("ce"), TrainingData(part), Recipe(epochs=1, batch_size=50))
    assert len(trained.records) == 1
    assert trained.test_accuracy is None


def test_batches_without_disagreement_are_skipped():
    networks = [small_network(dropout=0), small_network(dropout=0)]  # Twins: they never disagree.
    before = weights_of(networks)
    trained = train(networks, build_method("decoupling"), synthetic_data(), Recipe(epochs=1))
    assert_same_weights(before, weights_of(networks))
    assert trained.records[0].loss == 0
