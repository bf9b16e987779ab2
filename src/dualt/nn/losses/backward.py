"""Backward correction: an unbiased estimate of the clean loss."""

from __future__ import annotations

import torch
from torch import Tensor

from dualt.errors import TransitionError
from dualt.nn.losses.matrix import Reduction, reduce


def backward_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Σ_j (transition⁻¹)[label, j] · (−log softmax(logits)[j]).

    Its expectation over the noise is the cross entropy on the clean label; single values may be
    negative.

    References
    ----------
    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    """
    return backward_loss_from(logits, labels, invert(transition).to(logits), reduction)


def invert(transition: Tensor) -> Tensor:
    """Return the inverse in double precision, or refuse a singular matrix."""
    matrix = transition.detach().double()
    if torch.linalg.matrix_rank(matrix) < len(matrix):
        raise TransitionError(
            "Expected a matrix that can be inverted, got a singular one: two classes leave the same labels."
            " Use forward_loss, which needs no inverse."
        )
    inverse: Tensor = torch.linalg.inv(matrix)
    return inverse


def backward_loss_from(logits: Tensor, labels: Tensor, inverse: Tensor, reduction: Reduction) -> Tensor:
    """`backward_loss` with the inverse prepared."""
    losses = -(inverse.index_select(0, labels) * logits.log_softmax(1)).sum(1)
    return reduce(losses, reduction)
