"""The mean revised loss and its gradients in closed form, for batches on the CPU.

At the size of a batch it is the calls that cost, not the arithmetic, and a call of NumPy costs a fraction of
one that autograd records. Samples are columns here: arrays are (C, n).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

Array = NDArray[np.float32]


def mean_revised_loss(logits: Tensor, labels: Tensor, transition: Tensor, slack: Tensor) -> Tensor:
    """Return `revised_loss(logits, labels, transition, slack)` of float32 tensors on the CPU."""
    loss: Tensor = _MeanRevisedLoss.apply(logits, labels, transition, slack)  # type: ignore[no-untyped-call]
    return loss


class _MeanRevisedLoss(torch.autograd.Function):
    """Computes the gradients along with the value, since they share all of their parts."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, transition: Tensor, slack: Tensor) -> Tensor:
        log_probs = np.ascontiguousarray(torch.log_softmax(logits, 1).numpy().T)
        loss, *gradients = _closed_form(log_probs, labels.numpy(), transition.numpy(), slack.numpy())
        ctx.gradients = [torch.from_numpy(gradient) for gradient in gradients]
        return torch.tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, Tensor]:
        by_logits, by_slack = ctx.gradients
        return grads[0] * by_logits, None, None, grads[0] * by_slack


def _closed_form(log_probs: Array, labels: NDArray[Any], transition: Array, slack: Array) -> tuple[Any, Array, Array]:
    """Return the loss Σ β·ℓ / n and its gradients by logits (n, C) and slack (C, C).

    With s = Σ_i p_i T'_iy and r_i = p_i T'_iy / s: β = p_y / s, ∂β/∂z = β(δ_y − r), ∂ℓ/∂z = p − δ_y, and
    ∂β/∂T'_iy = −β p_i / s. The rows T' = max(T + ΔT, 0) / sum pass on g − Σ g·T', divided by the sum.
    """
    n_classes, n = log_probs.shape
    ones, eye, columns = _constants(n_classes, n)
    revised = transition + slack
    kept = revised >= 0
    revised *= kept
    sums = revised @ ones
    wiped_out = None if sums.all() else sums == 0
    if wiped_out is not None:
        revised[wiped_out], sums[wiped_out] = transition[wiped_out], 1
    revised /= sums[:, None]

    probs = np.exp(log_probs)
    factor = revised.take(labels, 1)
    given = np.maximum(ones @ (probs * factor), 1e-30)
    place = labels * n + columns
    weights = probs.take(place)
    weights /= given
    weights /= n
    # Minus the weighted losses: log p_y is negative.
    products = weights * log_probs.take(place)
    loss = -products.sum()

    hot = eye.take(labels, 1)
    slopes = products / given
    by_rows = (probs * slopes) @ hot.T
    by_rows -= ((by_rows * revised) @ ones)[:, None]
    by_rows /= sums[:, None]
    by_rows *= kept
    if wiped_out is not None:
        by_rows[wiped_out] = 0

    factor *= slopes
    factor += weights
    factor *= probs
    products += weights
    hot *= products
    factor -= hot
    return loss, factor.T, by_rows


@lru_cache(maxsize=8)
def _constants(n_classes: int, n: int) -> tuple[Array, Array, NDArray[np.int64]]:
    return np.ones(n_classes, np.float32), np.eye(n_classes, dtype=np.float32), np.arange(n)
