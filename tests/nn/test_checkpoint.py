"""Checkpoints: resumed runs are the uninterrupted ones, and damage is named."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from training_samples import assert_same_weights, small_network, synthetic_data, weights_of

from dualt.errors import FileError, InputError
from dualt.nn.loop import EpochRecord, train
from dualt.nn.methods import METHODS, build_method
from dualt.nn.networks import build_network
from dualt.nn.recipe import Recipe
from dualt.nn.storage import read_tensors

RECIPES = {
    "ce": Recipe(epochs=4, learning_rate=0.1, momentum=0.9, batch_size=50, milestones=(2,)),
    "co-teaching": Recipe(
        epochs=4, optimizer="adam", learning_rate=0.01, linear_from=2, batch_size=50, report="last-ten"
    ),
    "dividemix": Recipe(epochs=4, learning_rate=0.02, momentum=0.9, batch_size=50, ramp=3),
    "mixup": Recipe(epochs=4, optimizer="adam", learning_rate=0.01, batch_size=50, schedule="one-cycle"),
}
OTHERS = Recipe(epochs=4, optimizer="adam", learning_rate=0.01, batch_size=50)


def run(method, path=None, **options):
    data = synthetic_data()
    built = build_method(method, [[0.8, 0.2], [0.3, 0.7]])
    networks = [small_network(seed=k) for k in range(built.n_networks)]
    return train(networks, built, data, RECIPES.get(method, OTHERS), checkpoint=path, **options)


def unchanged(x, rng):
    return x


@pytest.mark.parametrize("method", METHODS)
def test_stopped_in_the_middle_of_an_epoch_and_resumed_it_is_the_uninterrupted_run(method, tmp_path):
    path, calls, seen = tmp_path / "run.safetensors", [], []

    def stop(x, rng):
        """Stop in the third epoch of ten batches; DivideMix sees each twice after a first epoch of warm-up."""
        calls.append(x)
        if len(calls) == (35 if method == "dividemix" else 25):
            raise KeyboardInterrupt
        return x

    with pytest.raises(KeyboardInterrupt):
        run(method, path, augment=stop)
    before = [EpochRecord(*row) for row in zip(*read_tensors(path)[1]["history"].values(), strict=True)]
    resumed = run(method, path, resume=True, on_epoch=lambda record: seen.append(record.epoch), augment=unchanged)
    whole = run(method, augment=unchanged)
    assert seen == [2, 3]
    assert_same_weights(weights_of(resumed.networks), weights_of(whole.networks))
    assert_same_weights(resumed.method.state_dict().values(), whole.method.state_dict().values())
    without_time = [{**vars(record), "seconds": 0} for record in resumed.records]
    assert without_time == [{**vars(record), "seconds": 0} for record in whole.records]
    assert resumed.records[:2] == before, "what the first part took counts"
    assert resumed.seconds == sum(record.seconds for record in (*before, *resumed.records[2:]))


def test_damage_is_named(tmp_path):
    path = tmp_path / "run.safetensors"
    run("ce", path)
    whole = path.read_bytes()
    for cut in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(FileError, match="truncated, damaged"):
            run("ce", path, resume=True)
    save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(FileError, match="Expected a checkpoint of dualt"):
        run("ce", path, resume=True)


def test_another_training_is_refused(tmp_path):
    path, matrix, recipe = tmp_path / "run.safetensors", [[0.8, 0.2], [0.3, 0.7]], OTHERS
    run("revision", path)
    same, ce, data = build_method("revision", matrix), build_method("ce"), synthetic_data()
    other = build_network("mlp", (10,), 2, hidden=(8, 8))
    cases = [
        ("another architecture", other, same, data, recipe),
        ("made with learning_rate = 0.01, not 0.5", small_network(), same, data, recipe.changed(learning_rate=0.5)),
        ("made with n_samples = 480, not 240", small_network(), same, synthetic_data(300), recipe),
        ("made with method = 'Revision', not 'CrossEntropy'", small_network(), ce, data, recipe),
    ]
    for message, network, method, samples, own in cases:
        with pytest.raises(InputError, match=message):
            train([network], method, samples, own, checkpoint=path, resume=True)
    names = {"now.networks.0.1.weight", "best.networks.0.1.weight", "now.method.slack", "optimizer.0.exp_avg"}
    assert names <= set(load_file(path))
