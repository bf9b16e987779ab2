"""Checkpoints: resumed runs are the uninterrupted ones, and damage is named."""

import signal
import subprocess
import sys
from pathlib import Path

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
    "gce": Recipe(epochs=4, optimizer="adam", learning_rate=0.01, batch_size=50, schedule="one-cycle"),
}
OTHERS = Recipe(epochs=4, optimizer="adam", learning_rate=0.01, batch_size=50)


def run(method, path=None, **options):
    data = synthetic_data()
    built = build_method(method, [[0.8, 0.2], [0.3, 0.7]], n_classes=2, n_samples=len(data.train.labels))
    networks = [small_network(seed=k) for k in range(built.n_networks)]
    return train(networks, built, data, RECIPES.get(method, OTHERS), checkpoint=path, **options)


@pytest.mark.parametrize("method", METHODS)
def test_interrupted_and_resumed_is_uninterrupted(method, tmp_path):
    path = tmp_path / "run.safetensors"

    def interrupt(record):
        if record.epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(method, path, on_epoch=interrupt)
    seen = []
    resumed = run(method, path, resume=True, on_epoch=lambda record: seen.append(record.epoch))
    whole = run(method)
    assert seen == [2, 3]
    assert_same_weights(weights_of(resumed.networks), weights_of(whole.networks))
    assert_same_weights(resumed.method.state_dict().values(), whole.method.state_dict().values())
    without_time = [{**vars(r), "seconds": 0} for r in resumed.records]
    assert without_time == [{**vars(r), "seconds": 0} for r in whole.records]


# A process that has loaded everything forks one for each method, which is killed in its third epoch.
KILLED = """
import os, signal, sys
import torch._dynamo  # as every optimizer does
sys.path.insert(0, {folder!r})
from test_checkpoint import METHODS, run

def kill_in_the_third_epoch(method):
    calls, views = 0, 1.5 if method == "dividemix" else 1  # DivideMix warms up for one epoch
    def kill(x, rng):
        nonlocal calls
        calls += 1
        if calls == 10 * views * 2 + 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return x
    run(method, sys.argv[1] + "/" + method + ".safetensors", augment=kill)

for method in METHODS:
    child = os.fork()
    if not child:
        kill_in_the_third_epoch(method)
        sys.exit()
    print(method, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    script = KILLED.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script, str(folder)], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [word for method in METHODS for word in (method, str(-signal.SIGKILL))], done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_killed_in_the_middle_of_an_epoch(method, killed):
    """Ten batches per epoch, two views of each in DivideMix after its warm-up: killed in the third epoch of four."""
    path = killed / f"{method}.safetensors"
    before = [EpochRecord(*row) for row in zip(*read_tensors(path)[1]["history"].values(), strict=True)]
    seen = []
    resumed = run(method, path, resume=True, on_epoch=lambda record: seen.append(record.epoch), augment=unchanged)
    whole = run(method, augment=unchanged)
    assert seen == [2, 3]
    assert_same_weights(weights_of(resumed.networks), weights_of(whole.networks))
    assert_same_weights(resumed.method.state_dict().values(), whole.method.state_dict().values())
    assert resumed.records[:2] == before, "what the first part took counts"
    assert resumed.seconds == sum(record.seconds for record in (*before, *resumed.records[2:]))


def unchanged(x, rng):
    return x


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
