"""Generalised cross entropy: between cross entropy, which learns fast, and absolute error, which noise moves less."""

import torch

from dualt.errors import InputError
from dualt.nn.losses import cross_entropies
from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.recipe import Recipe


class GeneralizedCrossEntropy(Method):
    """(1 − softmax(f(x))[label]^q) / q; q → 0 is cross entropy, q = 1 absolute error.

    The recipe is the published one for CIFAR-10, without its pruning of samples half-way.

    Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, NeurIPS 2018.
    """

    recipe = Recipe(epochs=120, learning_rate=0.01, momentum=0.9, milestones=(40, 80))

    def __init__(self, q: float = 0.7) -> None:
        super().__init__()
        if not 0 < q <= 1:
            raise InputError(f"Expected q above 0 and up to 1, got {q!r}.")
        self.q = q

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        # p^q = exp(q log p): in log space even a tiny p has a gradient.
        return [-torch.expm1(-self.q * cross_entropies(networks[0](batch.x), batch.labels)).mean() / self.q]
