"""The networks of the paper, each a plain `nn.Module` from a batch to logits."""

from dualt.networks.registry import NETWORKS, build_network, seeded
from dualt.networks.weights import load_weights

__all__ = ["NETWORKS", "build_network", "load_weights", "seeded"]
