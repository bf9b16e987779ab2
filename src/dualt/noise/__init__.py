"""How labels get corrupted: transition matrices of known structure, and noisy labels drawn from them."""

from dualt.noise.corruption import corrupt
from dualt.noise.structures import asymmetric, from_name, pair, random_diagonal_dominant, symmetric

__all__ = ["asymmetric", "corrupt", "from_name", "pair", "random_diagonal_dominant", "symmetric"]
