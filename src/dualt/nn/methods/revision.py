"""Revision: reweighting through a matrix whose correction is learned along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dualt.nn.losses import revised_loss, revised_transition
from dualt.nn.methods.base import Batch, Network, TransitionMethod
from dualt.nn.recipe import Recipe


class Revision(TransitionMethod):
    """Reweighting with transition + slack, the slack learned; starts from the Reweighting network.

    References
    ----------
    Xia et al., Are anchor points really indispensable in label-noise learning?, NeurIPS 2019.
    """

    recipe = Recipe(epochs=200, optimizer="adam", learning_rate=5e-7)
    starts_from = "reweighting"

    def __init__(self, transition: Any) -> None:
        super().__init__(transition)
        self.slack = nn.Parameter(torch.zeros_like(self.transition))

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean revised loss of the batch."""
        return [revised_loss(networks[0](batch.x), batch.labels, self.transition, self.slack)]

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return probs @ (transition + slack)."""
        return probs @ self.learned_transition

    @property
    def learned_transition(self) -> Tensor:
        """The matrix as revised so far."""
        return revised_transition(self.transition, self.slack.detach())
