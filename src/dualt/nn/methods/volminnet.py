"""VolMinNet: network and matrix learned together, the matrix of the smallest volume that explains the labels."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.losses import forward_losses
from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.recipe import Recipe
from dualt.validation import check_n_classes


class VolMinNet(Method):
    """−log (softmax(f(x)) @ transition)[label] + volume_weight · log |det transition|, the transition learned.

    Many matrices explain the given labels equally well. Among them the one whose rows span the smallest volume
    holds the clean posteriors most tightly, and is the true one if these are scattered well enough.

    Row i of the matrix is 1 at i and σ(√C·weight − log C) elsewhere, divided by its sum. So the diagonal entry is
    the largest of its row, and classes do not swap. Where the weights are zero, at the start and where weight decay
    pulls them, the matrix is half-way between the identity and uniform noise.

    Li et al., Provably end-to-end label-noise learning without anchor points, ICML 2021.
    """

    recipe = Recipe(epochs=80, learning_rate=0.01, momentum=0.9, milestones=(30, 60))

    def __init__(self, n_classes: int, *, volume_weight: float = 1e-4) -> None:
        super().__init__()
        if not (isinstance(volume_weight, (int, float)) and 0 <= volume_weight < math.inf):
            raise InputError(f"Expected a volume_weight of at least 0, got {volume_weight!r}.")
        self.volume_weight = volume_weight
        self.weight = nn.Parameter(torch.zeros(check_n_classes(n_classes), n_classes))

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        log_transition = self._log_transition()
        misfit = forward_losses(networks[0](batch.x), batch.labels, log_transition).mean()
        return [misfit + self.volume_weight * torch.linalg.slogdet(log_transition.exp()).logabsdet]

    def _log_transition(self) -> Tensor:
        n_classes = len(self.weight)
        # Each row learns from one C-th of the samples: √C makes its steps as large as if it learned from all of them.
        others = F.logsigmoid(math.sqrt(n_classes) * self.weight - math.log(n_classes))
        diagonal = torch.eye(n_classes, dtype=torch.bool, device=self.weight.device)
        return others.masked_fill(diagonal, 0).log_softmax(1)

    @property
    def learned_transition(self) -> Tensor:
        return self._log_transition().detach().exp()
