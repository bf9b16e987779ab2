"""Small data and networks that the tests of training share."""

import torch

from dualt import noise
from dualt.datasets import load_dataset, split_dataset
from dualt.nn.networks import build_network
from dualt.nn.run import training_data


def synthetic_data(n_samples=600, rate=0.2, seed=0):
    dataset = load_dataset("synthetic", n_samples=n_samples, n_test=300, random_state=seed)
    return training_data(split_dataset(dataset, noise.symmetric(2, rate), random_state=seed))


def small_network(seed=0, dropout=0.2):
    return build_network("mlp", (10,), 2, random_state=seed, hidden=(16, 16), dropout=dropout)


def weights_of(networks):
    return [value.clone() for network in networks for value in network.state_dict().values()]


def assert_same_weights(first, second):
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
