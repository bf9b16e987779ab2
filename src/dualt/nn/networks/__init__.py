"""The networks of the paper, each a plain `nn.Module` from a batch to logits."""

from dualt.nn.networks.build import NETWORKS, build_network, seeded
from dualt.nn.networks.weights import load_weights

__all__ = ["NETWORKS", "build_network", "load_weights", "seeded"]
