"""Trains a few networks in this process, or in its share of the processes that torchrun started."""

import sys

from safetensors.torch import save_file
from training_samples import small_network, synthetic_data

from dualt.nn.distributed import joined_world
from dualt.nn.loop import train
from dualt.nn.methods import build_method
from dualt.nn.recipe import Recipe

# Batches of 37 out of 480 divide unevenly among two processes, and so does the last one of 36.
RECIPE = Recipe(epochs=2, learning_rate=0.05, momentum=0.9, batch_size=37)


def train_all():
    """Return the weights after training with methods that look at whole batches, or have a memory per sample."""
    weights = {}
    for name in ("ce", "mixup", "decoupling", "co-teaching", "revision", "dividemix"):
        method = build_method(name, [[0.8, 0.2], [0.3, 0.7]])
        networks = [small_network(seed=k, dropout=0.0) for k in range(method.n_networks)]
        weights |= tensors_of(name, train(networks, method, synthetic_data(), RECIPE))
    return weights


def tensors_of(name, trained):
    networks = {f"{name}.{k}.{key}": v for k, net in enumerate(trained.networks) for key, v in net.state_dict().items()}
    return networks | {f"{name}.method.{key}": value for key, value in trained.method.state_dict().items()}


if __name__ == "__main__":
    with joined_world() as rank:
        result = train_all()
        if rank == 0:
            save_file(result, sys.argv[1])
