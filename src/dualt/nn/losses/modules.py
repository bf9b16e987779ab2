"""The corrected losses as modules, which check the matrix once and hold it as a buffer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import InputError
from dualt.nn.losses.corrected import (
    Reduction,
    backward_losses,
    forward_loss,
    invert,
    reduce_losses,
    revised_loss,
    revised_transition,
    reweighted_loss,
)
from dualt.validation import check_transition


def as_matrix(transition: Any) -> Tensor:
    """Return a checked matrix, given as array, tensor or anything with a `.transition`, as float32."""
    transition = getattr(transition, "transition", transition)
    array = transition.detach().cpu().numpy() if isinstance(transition, Tensor) else transition
    return torch.from_numpy(check_transition(array)).float()


def _check_labels(labels: Tensor, n_classes: int) -> None:
    """Refuse labels outside the classes, such as −100, which torch's cross entropy ignores."""
    outside = ((labels < 0) | (labels >= n_classes)).flatten().nonzero()
    if len(outside):
        place = int(outside[0])
        label = labels.flatten()[place].item()
        without = "Leave samples without a label out: loss(logits[labels >= 0], labels[labels >= 0])."
        raise InputError(
            f"Expected labels from 0 to {n_classes - 1}, got {label} at place {place}."
            f" {without if label < 0 else 'Count the classes from 0.'}"
        )


class _TransitionLoss(nn.Module):
    """Holds the matrix and the reduction, and compares the number of classes."""

    transition: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("transition", as_matrix(transition))
        self.reduction: Reduction = reduction

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of (n, C) logits and (n,) given labels."""
        n_classes = len(self.transition)
        if logits.shape[-1] != n_classes:
            raise InputError(
                f"Expected logits of {n_classes} classes, as the transition matrix has, got {logits.shape[-1]}."
            )
        # Under autocast logits are in half precision, too coarse for logarithms of the matrix.
        exact = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        try:
            losses = self._losses(exact, labels)
        except (IndexError, RuntimeError):  # torch checks every label anyway; checking before would slow down each step
            _check_labels(labels, n_classes)
            raise
        return reduce_losses(losses, self.reduction)

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of every sample."""
        raise NotImplementedError


class ForwardLoss(_TransitionLoss):
    """`forward_loss` with a fixed matrix: an array, a tensor or a `TransitionEstimate`.

    Examples
    --------
    >>> import dualt, torch
    >>> loss = ForwardLoss(dualt.noise.symmetric(2, 0.2))
    >>> loss(torch.tensor([[20.0, 0.0]]), torch.tensor([1]))
    tensor(1.6094)
    """

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return forward_loss(logits, labels, self.transition, reduction="none")


class BackwardLoss(_TransitionLoss):
    """`backward_loss` with a fixed matrix, which must be invertible."""

    inverse: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.register_buffer("inverse", invert(self.transition).float())

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return backward_losses(logits, labels, self.inverse)


class ReweightedLoss(_TransitionLoss):
    """`reweighted_loss` with a fixed matrix."""

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return reweighted_loss(logits, labels, self.transition, reduction="none")


class RevisedLoss(_TransitionLoss):
    """`revised_loss` with a learned `slack`: give `loss.parameters()` to the optimizer as well."""

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.slack = nn.Parameter(torch.zeros_like(self.transition))

    @property
    def revised(self) -> Tensor:
        """The matrix as revised so far."""
        return revised_transition(self.transition, self.slack.detach())

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        return revised_loss(logits, labels, self.transition, self.slack, reduction="none")
