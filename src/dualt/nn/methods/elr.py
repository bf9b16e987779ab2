"""ELR: early predictions of a network keep it from memorising wrong labels later."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.recipe import Recipe

# The agreement between target and prediction stays this far from 1. The authors clip the predictions instead.
_MARGIN = 1e-4


class EarlyLearning(Method):
    """Cross entropy + weight · log(1 − ⟨target, softmax(f(x))⟩), the target a running mean of the sample's predictions.

    `weight` and `memory` are λ and β of the paper. Checkpoints keep the targets.

    Liu et al., Early-learning regularization prevents memorization of noisy labels, NeurIPS 2020.
    """

    recipe = Recipe(epochs=120, learning_rate=0.02, momentum=0.9, weight_decay=1e-3, milestones=(40, 80))
    targets: Tensor

    def __init__(self, n_samples: int, n_classes: int, *, weight: float = 3.0, memory: float = 0.7) -> None:
        super().__init__()
        if not (weight >= 0 and 0 <= memory < 1):
            raise InputError(f"Expected weight ≥ 0 and 0 ≤ memory < 1, got {weight!r} and {memory!r}.")
        self.weight, self.memory = weight, memory
        self.register_buffer("targets", torch.zeros(n_samples, n_classes))

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        logits = networks[0](batch.x)
        # The running mean of the sample's probabilities (Eq. 9).
        targets = torch.lerp(logits.detach().softmax(1), self.targets[batch.rows], self.memory)
        self.targets[batch.rows] = targets
        return [early_learning_loss(logits, batch.labels, targets, self.weight)]


def early_learning_loss(logits: Tensor, labels: Tensor, targets: Tensor, weight: float = 3.0) -> Tensor:
    """Return the mean of −log p_y + weight · log(1 − ⟨target, p⟩) (Eq. 6)."""
    disagreement = torch.linalg.vecdot((_MARGIN - 1) * targets, logits.softmax(1))
    return torch.add(F.cross_entropy(logits, labels), torch.log1p(disagreement).mean(), alpha=weight)
