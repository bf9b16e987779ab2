"""Revision: reweighting through a matrix whose correction is learned along."""

from typing import Any

import torch
from torch import Tensor, nn

from dualt.nn.losses import revised_loss, revised_transition
from dualt.nn.methods.base import Batch, Losses, Networks, TransitionMethod
from dualt.nn.recipe import Recipe


class Revision(TransitionMethod):
    """Reweighting with transition + slack, the slack learned; starts from the Reweighting network.

    Xia et al., Are anchor points really indispensable in label-noise learning?, NeurIPS 2019.
    """

    recipe = Recipe(epochs=200, optimizer="adam", learning_rate=5e-7)
    starts_from = "reweighting"

    def __init__(self, transition: Any) -> None:
        super().__init__(transition)
        self.slack = nn.Parameter(torch.zeros_like(self.transition))

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        return [revised_loss(networks[0](batch.x), batch.labels, self.transition, self.slack)]

    @property
    def learned_transition(self) -> Tensor:
        return revised_transition(self.transition, self.slack.detach())
