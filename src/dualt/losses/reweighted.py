"""Importance reweighting: cross entropy on given labels, weighted by how likely each is the true one."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.losses.matrix import Reduction, reduce, weight_tables


def reweighted_loss(
    logits: Tensor,
    labels: Tensor,
    transition: Tensor,
    *,
    max_weight: float | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """β · cross entropy, with β = p_y / (p @ transition)_y held constant.

    Parameters
    ----------
    logits : (n, C)
    labels : (n,)
    transition : (C, C)
    max_weight
        Largest β allowed. β is at most 1 / transition[y, y], which is large for a class that is rarely
        labelled right.

    References
    ----------
    Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016.

    Examples
    --------
    >>> import torch
    >>> transition = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
    >>> logits, labels = torch.tensor([[0.0, 0.0]]), torch.tensor([1])
    >>> importance_weights(logits, labels, transition), reweighted_loss(logits, labels, transition)
    (tensor([1.]), tensor(0.6931))
    """
    return reweighted_loss_from(logits, labels, weight_tables(transition.to(logits)), max_weight, reduction)


def importance_weights(
    logits: Tensor, labels: Tensor, transition: Tensor, *, max_weight: float | None = None
) -> Tensor:
    """β = p_y / (p @ transition)_y for every sample, without gradient."""
    columns, inverse = weight_tables(transition.to(logits))
    weights = _chance_right(logits.detach(), labels, columns).mul_(inverse.index_select(0, labels))
    return weights if max_weight is None else weights.clamp_(max=max_weight)


def reweighted_loss_from(
    logits: Tensor, labels: Tensor, tables: tuple[Tensor, Tensor], max_weight: float | None, reduction: Reduction
) -> Tensor:
    """`reweighted_loss` with `tables = weight_tables(transition)` prepared."""
    columns, inverse = tables[0], tables[1].to(logits.dtype)
    weights = _chance_right(logits.detach(), labels, columns)
    if max_weight is None and reduction == "mean":
        # The factor 1/T_yy rides along as a class weight, and one product replaces two steps: at the size
        # of a batch it is the number of steps that costs.
        return torch.dot(weights.mul_(1 / len(labels)), F.cross_entropy(logits, labels, inverse, reduction="none"))
    weights = weights.mul_(inverse.index_select(0, labels)).clamp_(max=max_weight or math.inf)
    return reduce(weights * F.cross_entropy(logits, labels, reduction="none"), reduction)


def _chance_right(logits: Tensor, labels: Tensor, columns: Tensor) -> Tensor:
    """P(true=y | x, given y) = β · transition[y, y]: a softmax of the logits shifted by log transition[:, y]."""
    return F.cross_entropy(logits + columns.index_select(0, labels), labels, reduction="none").neg_().exp_()
