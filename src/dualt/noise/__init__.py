"""How labels get corrupted: by a transition matrix of known structure, or by noise that depends on the example."""

from dualt.noise.corruption import corrupt
from dualt.noise.instance_dependent import InstanceNoise, expected_transition, part_dependent, weak_annotators
from dualt.noise.structures import asymmetric, from_name, pair, random_diagonal_dominant, symmetric

__all__ = [
    "InstanceNoise",
    "asymmetric",
    "corrupt",
    "expected_transition",
    "from_name",
    "pair",
    "part_dependent",
    "random_diagonal_dominant",
    "symmetric",
    "weak_annotators",
]
