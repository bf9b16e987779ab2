"""Forward correction: fit softmax(logits) @ transition to the given labels."""

from __future__ import annotations

from torch import Tensor

from dualt.nn.losses.matrix import Reduction, log_columns, reduce


def forward_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """−log (softmax(logits) @ transition)[label].

    Computed in log space, so that neither a certain network nor a zero in the matrix gives infinity. A
    label that the matrix calls impossible costs a constant and moves nothing. No gradient flows to
    `transition`.

    References
    ----------
    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.

    Examples
    --------
    >>> import torch
    >>> transition = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
    >>> forward_loss(torch.tensor([[20.0, 0.0]]), torch.tensor([1]), transition)  # −log 0.2
    tensor(1.6094)
    """
    return forward_loss_from(logits, labels, log_columns(transition.to(logits)), reduction)


def forward_loss_from(logits: Tensor, labels: Tensor, columns: Tensor, reduction: Reduction) -> Tensor:
    """`forward_loss` with `columns = log_columns(transition)` prepared."""
    # log Σ_i p_i T_iy = logsumexp(z + log T_·y) − logsumexp(z): the softmax is never formed.
    joint = logits + columns.index_select(0, labels)
    return reduce(logits.logsumexp(1) - joint.logsumexp(1), reduction)
