"""How labels get corrupted: the shapes of noise, and drawing from them."""

from dualt.noise.corruption import corrupt
from dualt.noise.structures import asymmetric, from_name, pair, random_diagonal_dominant, symmetric

__all__ = ["asymmetric", "corrupt", "from_name", "pair", "random_diagonal_dominant", "symmetric"]
