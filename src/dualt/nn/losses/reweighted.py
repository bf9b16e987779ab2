"""Importance reweighting: cross entropy on given labels, weighted by how likely each is the true one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.nn.losses.matrix import Reduction, reduce, weight_tables


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
    columns, inverse = weight_tables(transition.to(logits))
    return reweighted_loss_from(logits, labels, columns, -inverse, max_weight, reduction)


def importance_weights(
    logits: Tensor, labels: Tensor, transition: Tensor, *, max_weight: float | None = None
) -> Tensor:
    """β = p_y / (p @ transition)_y for every sample, without gradient."""
    columns, inverse = weight_tables(transition.to(logits))
    return _weights(logits.detach(), labels, columns, -inverse, max_weight)


def reweighted_loss_from(
    logits: Tensor,
    labels: Tensor,
    columns: Tensor,
    negative_inverse: Tensor,
    max_weight: float | None,
    reduction: Reduction,
) -> Tensor:
    """`reweighted_loss` with the tables of `weight_tables(transition)` prepared, the second negated."""
    weights = _weights(logits.detach(), labels, columns, negative_inverse, max_weight)
    losses = F.cross_entropy(logits, labels, reduction="none")
    if reduction == "mean":  # One product instead of two steps: at the size of a batch, steps are what costs.
        return torch.dot(weights.div_(len(labels)), losses)
    return reduce(weights * losses, reduction)


def _weights(
    logits: Tensor, labels: Tensor, columns: Tensor, negative_inverse: Tensor, max_weight: float | None
) -> Tensor:
    """β = P(true=y | x, given y) / transition[y, y], the numerator a softmax of logits + log transition[:, y]."""
    posterior = (logits + columns.index_select(0, labels)).softmax(1)
    # This picks −posterior[y] times the weight of class y; the weights are negative, so β comes out.
    weights = F.nll_loss(posterior, labels, negative_inverse, reduction="none")
    return weights if max_weight is None else weights.clamp_(max=max_weight)
