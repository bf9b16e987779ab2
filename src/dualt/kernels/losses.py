"""Mean losses whose gradients come along with the value: one call where torch makes many.

At the size of a batch it is the calls that cost, not the arithmetic. Each function returns None where its twin in
`dualt.nn.losses` has to do it: no library, another device or type, a label that is no class, a loss that is traced.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from dualt import kernels
from dualt.errors import TrainingError


def mean_reweighted_loss(logits: Tensor, labels: Tensor, columns: Tensor, max_weight: float | None) -> Tensor | None:
    """Return `reweighted_loss` through the matrix of which `columns` are the `log_columns`."""
    if kernels.library is None or not _are_plain(logits, labels, columns):
        return None
    loss, gradient = logits.new_empty(()), torch.empty_like(logits)
    unknown = kernels.library.mean_reweighted_loss(
        logits.data_ptr(),
        labels.data_ptr(),
        *logits.shape,
        columns.data_ptr(),
        math.inf if max_weight is None else max_weight,
        loss.data_ptr(),
        gradient.data_ptr(),
    )
    return None if unknown else _attach(loss, (gradient,), logits)


def mean_revised_loss(logits: Tensor, labels: Tensor, transition: Tensor, slack: Tensor) -> Tensor | None:
    """Return `revised_loss(logits, labels, transition, slack)`."""
    if kernels.library is None or not _are_plain(logits, labels, transition, slack):
        return None
    loss, by_logits, by_slack = logits.new_empty(()), torch.empty_like(logits), torch.empty_like(slack)
    unknown = kernels.library.mean_revised_loss(
        logits.data_ptr(),
        labels.data_ptr(),
        *logits.shape,
        transition.data_ptr(),
        slack.data_ptr(),
        loss.data_ptr(),
        by_logits.data_ptr(),
        by_slack.data_ptr(),
    )
    return None if unknown else _attach(loss, (by_logits, by_slack), logits, slack)


def _attach(loss: Tensor, gradients: tuple[Tensor, ...], *inputs: Tensor) -> Tensor:
    """Return the loss as a function of the inputs."""
    attached: Tensor = _Known.apply((loss, gradients), *inputs)  # type: ignore[no-untyped-call]
    return attached


class _Known(torch.autograd.Function):
    """A loss whose gradients are known. It comes in a tuple, since one that came as an input would be copied."""

    @staticmethod
    def forward(ctx: Any, known: tuple[Tensor, tuple[Tensor, ...]], *inputs: Tensor) -> Tensor:
        del inputs
        loss, ctx.gradients = known
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise TrainingError(
                "Expected first derivatives of the compiled loss, got create_graph=True, which asks for more."
                " Use reduction='none' and take the mean yourself: torch differentiates that as often as you like."
            )
        return None, *(grads[0] * gradient for gradient in ctx.gradients)


def _are_plain(logits: Tensor, labels: Tensor, *matrices: Tensor) -> bool:
    """Tell whether the memory behind a batch and its (C, C) matrices is what the library reads."""
    if torch.compiler.is_compiling() or torch._C._is_tracing() or torch._C._are_functorch_transforms_active():
        return False
    shape = logits.shape
    return (
        len(shape) == 2
        and _is_plain(labels, torch.int64, shape[:1])
        and _is_plain(logits, torch.float32, shape)
        and all(_is_plain(matrix, torch.float32, (shape[1], shape[1])) for matrix in matrices)
    )


def _is_plain(tensor: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> bool:
    return (
        tensor.dtype is dtype
        and tensor.shape == shape
        and tensor.is_cpu
        and tensor.is_contiguous()
        and type(tensor) in (Tensor, nn.Parameter)
    )
