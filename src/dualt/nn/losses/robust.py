"""Losses that resist wrong labels without a matrix: generalised cross entropy and early-learning regularisation.

They take any number of axes in front of samples and classes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dualt.nn.losses.corrected import cross_entropies

# Probabilities that a target is made of stay this far from 0 and 1, as in the authors' code.
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


def early_learning_loss(logits: Tensor, labels: Tensor, targets: Tensor, weight: float = 3.0) -> Tensor:
    """Return the mean of −log p_y + weight · log(1 − ⟨target, p⟩); no gradient flows to the targets.

    References
    ----------
    Liu et al., Early-learning regularization prevents memorization of noisy labels, NeurIPS 2020, Eq. 6.
    """
    probs = logits.softmax(-1).clamp(_MARGIN, 1 - _MARGIN)
    agreement = (targets.detach() * probs).sum(-1)
    return cross_entropies(logits, labels).mean(-1) + weight * (1 - agreement).clamp_min(_MARGIN).log().mean(-1)


@torch.no_grad()
def updated_targets(targets: Tensor, logits: Tensor, memory: float = 0.7) -> Tensor:
    """Return memory · target + (1 − memory) · p, the running mean of a sample's probabilities (Eq. 9)."""
    probs = logits.softmax(-1).clamp(_MARGIN, 1 - _MARGIN)
    return memory * targets + (1 - memory) * probs / probs.sum(-1, keepdim=True)
