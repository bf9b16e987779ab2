"""VolMinNet: network and matrix learned together, the matrix of the smallest volume that explains the labels."""

import torch
from torch import Tensor

from dualt.nn.methods.base import LearningMethod


class VolMinNet(LearningMethod):
    """−log (softmax(f(x)) @ transition)[label] + volume_weight · log |det transition|, the transition learned.

    Many matrices explain the given labels equally well. Among them the one whose rows span the smallest volume
    holds the clean posteriors most tightly, and is the true one if these are scattered well enough.

    Li et al., Provably end-to-end label-noise learning without anchor points, ICML 2021.
    """

    def __init__(self, n_classes: int, *, volume_weight: float = 1e-4) -> None:
        super().__init__(n_classes, volume_weight)

    def penalty(self, logits: Tensor, log_transition: Tensor) -> Tensor:
        volume: Tensor = torch.linalg.slogdet(log_transition.exp()).logabsdet
        return volume
