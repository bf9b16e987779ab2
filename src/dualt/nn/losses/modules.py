"""The losses as modules: they check and prepare the matrix once, and move with `.to(device)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import InputError
from dualt.kernels.losses import mean_revised_loss, mean_reweighted_loss
from dualt.nn.losses.backward import backward_loss_from, invert
from dualt.nn.losses.forward import forward_loss_from
from dualt.nn.losses.matrix import Reduction, as_matrix, log_columns, weight_tables
from dualt.nn.losses.revised import Rows, revised_loss, revised_transition
from dualt.nn.losses.reweighted import reweighted_loss_from


class _TransitionLoss(nn.Module):
    """Holds the matrix and the reduction, and compares the number of classes."""

    transition: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        matrix = as_matrix(transition)
        self.register_buffer("transition", matrix, persistent=False)
        self.n_classes = len(matrix)
        self.reduction: Reduction = reduction

    def _check(self, logits: Tensor) -> Tensor:
        if logits.shape[-1] != self.n_classes:
            raise InputError(
                f"Expected logits of {self.n_classes} classes, as the transition matrix has, got {logits.shape[-1]}."
            )
        # Under autocast logits come in half precision, too coarse for a logarithm of the matrix.
        return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


class ForwardLoss(_TransitionLoss):
    """`forward_loss` with a fixed matrix: an array, a tensor or a `TransitionEstimate`.

    Examples
    --------
    >>> import dualt, torch
    >>> loss = ForwardLoss(dualt.noise.symmetric(2, 0.2))
    >>> loss(torch.tensor([[20.0, 0.0]]), torch.tensor([1]))
    tensor(1.6094)
    """

    columns: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.register_buffer("columns", log_columns(self.transition), persistent=False)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of (n, C) logits and (n,) given labels."""
        return forward_loss_from(self._check(logits), labels, self.columns, self.reduction)


class BackwardLoss(_TransitionLoss):
    """`backward_loss` with a fixed matrix, which must be invertible."""

    inverse: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.register_buffer("inverse", invert(self.transition).float(), persistent=False)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of (n, C) logits and (n,) given labels."""
        return backward_loss_from(self._check(logits), labels, self.inverse, self.reduction)


class ReweightedLoss(_TransitionLoss):
    """`reweighted_loss` with a fixed matrix."""

    columns: Tensor
    negative_inverse: Tensor

    def __init__(self, transition: Any, *, max_weight: float | None = None, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.max_weight = max_weight
        columns, inverse = weight_tables(self.transition)
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("negative_inverse", -inverse, persistent=False)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of (n, C) logits and (n,) given labels."""
        logits, columns, bound = self._check(logits), self.columns, self.max_weight
        loss = mean_reweighted_loss(logits, labels, columns, bound) if self.reduction == "mean" else None
        if loss is not None:
            return loss
        inverse = self.negative_inverse.to(logits.dtype)
        return reweighted_loss_from(logits, labels, columns, inverse, bound, self.reduction)


class RevisedLoss(_TransitionLoss):
    """`revised_loss` with a learned `slack`: give `loss.parameters()` to the optimizer as well."""

    def __init__(self, transition: Any, *, rows: Rows = "simplex", reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.rows: Rows = rows
        self.slack = nn.Parameter(torch.zeros_like(self.transition))

    @property
    def revised(self) -> Tensor:
        """The matrix as revised so far."""
        return revised_transition(self.transition, self.slack.detach(), rows=self.rows)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of (n, C) logits and (n,) given labels."""
        logits, transition, slack = self._check(logits), self.transition, self.slack
        known = self.rows == "simplex" and self.reduction == "mean"
        loss = mean_revised_loss(logits, labels, transition, slack) if known else None
        if loss is not None:
            return loss
        return revised_loss(logits, labels, transition, slack, rows=self.rows, reduction=self.reduction)
