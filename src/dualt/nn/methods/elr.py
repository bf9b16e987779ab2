"""ELR: what a network said of a sample early on keeps it from memorising a wrong label later."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dualt.errors import InputError
from dualt.nn.losses.robust import remembered_loss
from dualt.nn.training import Batch, Method, Network, Recipe

RECIPE = Recipe(epochs=120, learning_rate=0.02, momentum=0.9, weight_decay=1e-3, milestones=(40, 80))


class EarlyLearning(Method):
    """Cross entropy + weight · log(1 − ⟨target, softmax(f(x))⟩), the target a running mean of the sample's predictions.

    Parameters
    ----------
    n_samples, n_classes
        Size of the memory of targets, which checkpoints keep.
    weight, memory
        λ and β of the paper.

    References
    ----------
    Liu et al., Early-learning regularization prevents memorization of noisy labels, NeurIPS 2020.
    """

    replicable = True
    targets: Tensor

    def __init__(self, n_samples: int, n_classes: int, *, weight: float = 3.0, memory: float = 0.7) -> None:
        super().__init__()
        if not weight >= 0:
            raise InputError(f"Expected a weight from 0 on, got {weight!r}.")
        if not 0 <= memory < 1:
            raise InputError(f"Expected a memory from 0 on and below 1, got {memory!r}.")
        self.weight, self.memory = weight, memory
        self.register_buffer("targets", torch.zeros(n_samples, n_classes))

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor]:
        """Return the mean loss of the batch, and remember its predictions."""
        if batch.rows is None:
            raise InputError("Expected the rows of the batch's samples, which ELR remembers, got none.")
        logits, rows = networks[0](batch.x), batch.rows
        return [remembered_loss(logits, batch.labels, rows, self.targets, self.weight, self.memory)]
