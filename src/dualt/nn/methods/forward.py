"""Forward: the network predicts the clean class, and the given label through the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dualt.nn.losses import forward_loss
from dualt.nn.methods.base import Batch, Network, TransitionMethod
from dualt.nn.recipe import Recipe

RECIPE = Recipe(epochs=200, learning_rate=0.01, milestones=(50, 100, 150))


class Forward(TransitionMethod):
    """−log (softmax(f(x)) @ transition)[label].

    With `floor=True` the loss of a batch is pushed up where it falls below what a network that knows every clean class
    would reach, the mean entropy of the matrix's rows (with equally frequent classes). Below it the network
    memorises.

    References
    ----------
    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    Toner and Storkey, Label noise: correcting the forward-correction, 2023 (the floor).
    """

    def __init__(self, transition: Any, *, floor: bool = False) -> None:
        super().__init__(transition)
        self.has_floor = floor

    @property
    def floor(self) -> Tensor:
        """The mean entropy of the matrix's rows."""
        floor: Tensor = torch.special.entr(self.transition).sum(1).mean()
        return floor

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean forward loss of the batch."""
        loss = forward_loss(networks[0](batch.x), batch.labels, self.transition)
        return [(loss - self.floor).abs() + self.floor if self.has_floor else loss]
