"""Losses that resist wrong labels without a matrix: generalised cross entropy and early-learning regularisation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses.corrected import cross_entropies

# The agreement between target and prediction stays this far from 1. The authors clip the predictions instead.
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
    # p^q = exp(q log p): in log space even a tiny p has a gradient.
    return -torch.expm1(-q * cross_entropies(logits, labels)).mean() / q


def early_learning_loss(logits: Tensor, labels: Tensor, targets: Tensor, weight: float = 3.0) -> Tensor:
    """Return the mean of −log p_y + weight · log(1 − ⟨target, p⟩); no gradient flows to the targets.

    References
    ----------
    Liu et al., Early-learning regularization prevents memorization of noisy labels, NeurIPS 2020, Eq. 6.
    """
    disagreement = torch.linalg.vecdot((_MARGIN - 1) * targets.detach(), logits.softmax(1))
    return torch.add(F.cross_entropy(logits, labels), torch.log1p(disagreement).mean(), alpha=weight)


@torch.no_grad()
def updated_targets(targets: Tensor, probs: Tensor, memory: float = 0.7) -> Tensor:
    """Return memory · target + (1 − memory) · p, the running mean of a sample's probabilities (Eq. 9)."""
    return torch.lerp(probs, targets, memory)
