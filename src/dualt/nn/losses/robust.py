"""Losses that resist wrong labels without a matrix: generalised cross entropy and early-learning regularisation.

They take any number of axes in front of samples and classes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dualt import kernels
from dualt.errors import InputError
from dualt.nn.losses.corrected import cross_entropies, mean_cross_entropy

# The agreement of target and prediction stays this far from 1. The authors clip the predictions by as much instead.
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
    disagreement = torch.linalg.vecdot((_MARGIN - 1) * targets.detach(), logits.softmax(-1))
    return torch.add(mean_cross_entropy(logits, labels), torch.log1p(disagreement).mean(-1), alpha=weight)


@torch.no_grad()
def updated_targets(targets: Tensor, probs: Tensor, memory: float = 0.7) -> Tensor:
    """Return memory · target + (1 − memory) · p, the running mean of a sample's probabilities (Eq. 9)."""
    return torch.lerp(probs, targets, memory)


def remembered_loss(
    logits: Tensor, labels: Tensor, rows: Tensor, targets: Tensor, weight: float, memory: float
) -> Tensor:
    """Update the targets (…, n_samples, C) of the batch's `rows` in place, and return its `early_learning_loss`.

    Compiled where it can be: a dozen small operations of torch cost a small network a sixth of its step.
    """
    if kernels.library and logits.is_cpu and (logits.dtype, labels.dtype) == (torch.float32, torch.int64):
        loss: Tensor = _Compiled.apply(logits, labels, rows, targets, weight, memory)  # type: ignore[no-untyped-call]
        return loss
    places = rows.unsqueeze(-1).expand(logits.shape)
    updated = updated_targets(targets.gather(-2, places), logits.detach().softmax(-1), memory)
    targets.scatter_(-2, places, updated)
    return early_learning_loss(logits, labels, updated, weight)


class _Compiled(torch.autograd.Function):
    """`remembered_loss` by the kernel, which gives the gradient along with the loss.

    With s = 1 − target and r = ⟨s, p⟩, log r has the gradient p·s / r − p, since that of p_j is p_j (e_j − p). So the
    loss has p − e_y + weight · (p·s / r − p), divided by the size of the batch.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, rows: Tensor, targets: Tensor, weight: float, memory: float
    ) -> Tensor:
        logits, labels, rows = logits.contiguous(), labels.contiguous(), rows.contiguous()
        *runs, n, n_classes = logits.shape
        n_rows = targets.shape[-2]
        losses, ctx.gradient = logits.new_empty(runs), torch.empty_like(logits)
        fits = labels.shape == rows.shape == (*runs, n) and targets.shape == (*runs, n_rows, n_classes)
        # fmt: off
        if not fits or not kernels.library.early_learning(  # type: ignore[union-attr]
            logits.data_ptr(), labels.data_ptr(), rows.data_ptr(), losses.numel(), n, n_classes, n_rows,
            weight, memory, 1 - _MARGIN, targets.data_ptr(), losses.data_ptr(), ctx.gradient.data_ptr(),
        ):
            raise InputError(
                f"Expected labels and rows of the batch within a memory of {tuple(targets.shape)} targets,"
                f" got logits {tuple(logits.shape)}, labels up to {labels.max()} and rows up to {rows.max()}."
            )
        # fmt: on
        return losses

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        (grad,) = grads
        return ctx.gradient * grad.view(*grad.shape, 1, 1), None, None, None, None, None
