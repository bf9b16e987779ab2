"""Losses that resist wrong labels without a matrix: generalised cross entropy and early-learning regularisation.

They take any number of axes in front of samples and classes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dualt.nn.losses.corrected import cross_entropies, mean_cross_entropy

# The agreement of target and prediction stays this far from 1. The authors clip the predictions by as much instead,
# which costs a step of a small network 5 % more.
_MARGIN = 1e-4


def generalized_cross_entropy(logits: Tensor, labels: Tensor, q: float = 0.7) -> Tensor:
    """Return the mean of (1 − p_y^q) / q.

    References
    ----------
    Zhang and Sabuncu, Generalized cross entropy loss for training deep neural networks with noisy labels, NeurIPS 2018.

    Examples
    --------
    >>> import torch
    >>> generalized_cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]), q=1.0)
    tensor(0.5000)
    """
    # p^q = exp(q log p): in log space a tiny p has a gradient yet.
    return -torch.expm1(-q * cross_entropies(logits, labels)).mean(-1) / q


def early_learning_loss(
    logits: Tensor, labels: Tensor, targets: Tensor, weight: float = 3.0, probs: Tensor | None = None
) -> Tensor:
    """Return the mean of −log p_y + weight · log(1 − ⟨target, p⟩); no gradient flows to the targets.

    Pass `probs`, the softmax of the logits, where it is known.

    References
    ----------
    Liu et al., Early-learning regularization prevents memorization of noisy labels, NeurIPS 2020, Eq. 6.
    """
    # The margin goes to the targets, which have no gradient to be kept track of.
    disagreement = torch.linalg.vecdot((_MARGIN - 1) * targets.detach(), logits.softmax(-1) if probs is None else probs)
    return torch.add(mean_cross_entropy(logits, labels), torch.log1p(disagreement).mean(-1), alpha=weight)


@torch.no_grad()
def updated_targets(targets: Tensor, probs: Tensor, memory: float = 0.7) -> Tensor:
    """Return memory · target + (1 − memory) · p, the running mean of a sample's probabilities (Eq. 9)."""
    return torch.lerp(probs, targets, memory)
