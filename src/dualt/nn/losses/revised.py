"""Revision: importance reweighting through transition + slack, with the slack learned."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.losses.matrix import Reduction, reduce

Rows: TypeAlias = Literal["simplex", "published"]


def revised_loss(
    logits: Tensor,
    labels: Tensor,
    transition: Tensor,
    slack: Tensor,
    *,
    rows: Rows = "simplex",
    reduction: Reduction = "mean",
) -> Tensor:
    """β · cross entropy with β = p_y / (p @ (transition + slack))_y; gradients flow through β too.

    The slack is added once, not once more for every sample of the batch.

    Parameters
    ----------
    logits : (n, C)
    labels : (n,)
    transition, slack : (C, C)
    rows
        `"simplex"` keeps the revised rows non-negative and their sum at one; `"published"` takes the
        sum as it comes, so that weights may turn negative.

    References
    ----------
    Xia et al., Are anchor points really indispensable in label-noise learning?, NeurIPS 2019.
    """
    revised = revised_transition(transition.to(logits), slack, rows=rows)
    log_probs = logits.log_softmax(1)
    given = (log_probs.exp() * revised.t().index_select(0, labels)).sum(1)
    losses = F.nll_loss(log_probs, labels, reduction="none")
    # Far from zero, so that the division's gradient stays finite where a label has no probability at all.
    weights = torch.exp(-losses) / torch.where(given.abs() < 1e-30, 1e-30, given)
    return reduce(weights * losses, reduction)


def revised_transition(transition: Tensor, slack: Tensor, *, rows: Rows = "simplex") -> Tensor:
    """Return transition + slack, by default clipped at zero and with rows that sum to one."""
    total = transition + slack
    if rows == "published":
        return total
    if rows != "simplex":
        raise InputError(f"Expected rows 'simplex' or 'published', got {rows!r}.")
    positive = total.clamp_min(0)
    sums = positive.sum(1, keepdim=True)
    # A row that the slack has wiped out says nothing: the given one stands.
    return torch.where(sums > 0, positive / sums.clamp_min(1e-30), transition)
