"""A transition matrix as a tensor, and its logarithm."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from dualt.errors import InputError
from dualt.validation import check_transition

Reduction: TypeAlias = Literal["mean", "sum", "none"]

# Stands for log 0: far below any logit, so that exp of it vanishes, yet finite, so that no difference is NaN.
LOG_ZERO = -1e3
# The same for a diagonal entry: a class never labelled right has no bound on its weight 1/T_yy, which must
# yet be a number.
_LOG_ZERO_DIAGONAL = -50.0


def as_matrix(transition: Any) -> Tensor:
    """Return a checked matrix, given as array, tensor or anything with a `.transition`, as float32."""
    transition = getattr(transition, "transition", transition)
    array = transition.detach().cpu().numpy() if isinstance(transition, Tensor) else transition
    return torch.from_numpy(check_transition(array)).float()


def log_columns(transition: Tensor) -> Tensor:
    """Return log transitionᵀ: row j holds the logarithms of P(given j | true i) over i."""
    columns = transition.detach().t()
    possible = columns > 0
    return torch.where(possible, columns, 1.0).log().masked_fill(~possible, LOG_ZERO).contiguous()


def weight_tables(transition: Tensor) -> tuple[Tensor, Tensor]:
    """Return `log_columns` with a bounded diagonal, and 1 / transition[y, y] per class to match it."""
    columns = log_columns(transition)
    diagonal = columns.diagonal().clamp_(min=_LOG_ZERO_DIAGONAL)
    return columns, torch.exp(-diagonal)


def reduce(losses: Tensor, reduction: Reduction) -> Tensor:
    """Return the mean, the sum, or the losses themselves."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction == "none":
        return losses
    raise InputError(f"Expected reduction 'mean', 'sum' or 'none', got {reduction!r}.")
