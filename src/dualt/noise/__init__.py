"""Noise for experiments: by a transition matrix of known structure, or dependent on the example."""

from dualt.noise.by_example import InstanceNoise, expected_transition, part_dependent, weak_annotators
from dualt.noise.matrices import asymmetric, corrupt, from_name, pair, random_diagonal_dominant, symmetric

__all__ = [
    "InstanceNoise", "asymmetric", "corrupt", "expected_transition", "from_name", "pair", "part_dependent",
    "random_diagonal_dominant", "symmetric", "weak_annotators",
]  # fmt: skip
