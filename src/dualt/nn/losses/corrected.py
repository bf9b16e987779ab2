"""Losses corrected for label noise, as pure functions: forward, backward, reweighted and revised."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError, TransitionError

Reduction: TypeAlias = Literal["mean", "sum", "none"]

# Stands for log 0: far below any logit, so that its exp vanishes, yet finite, so that no difference is NaN.
_LOG_ZERO = -1e3
# The weight 1 / transition[y, y] is unbounded where a class is never labelled correctly; cap its logarithm.
_LARGEST_LOG_WEIGHT = 50.0
# Above this, exp overflows float32. Terms that are multiplied by zero matter only through their gradient, which may be
# multiplied by another weight, so they get a lower cap.
_LARGEST_LOG, _LARGEST_LOG_OF_ZEROS = 80.0, 30.0
# torch ignores samples with this label (by default −100). We ignore none: a label outside the classes is an error.
_IGNORED = -(2**62)


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return −log softmax(logits)[label] for every sample, (n,)."""
    return F.cross_entropy(logits, labels, reduction="none", ignore_index=_IGNORED)


def forward_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """−log (softmax(logits) @ transition)[label].

    Computed in log space, so that neither a confident network nor a zero in the matrix gives infinity. A label that is
    impossible under the matrix costs a constant and has no gradient. No gradient flows to `transition`.

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
    return forward_loss_from(logits, labels, _log_columns(transition, labels, logits), reduction)


def forward_loss_from(logits: Tensor, labels: Tensor, log_columns: Tensor, reduction: Reduction = "mean") -> Tensor:
    """`forward_loss` with log transition[:, label] for every sample, (n, C), through which gradients flow."""
    losses = cross_entropies(logits, labels) + _log_weights(logits, labels, log_columns)
    return reduce_losses(losses, reduction)


def _log_columns(transition: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
    return columns_of(transition.detach().to(logits).log().clamp_min(_LOG_ZERO), labels)


def columns_of(matrix: Tensor, labels: Tensor) -> Tensor:
    """Return matrix[:, label] for every sample, (n, C)."""
    return matrix.T.index_select(0, labels)


def _log_weights(logits: Tensor, labels: Tensor, log_columns: Tensor) -> Tensor:
    """Return log β = log p_y − log (p @ transition)_y = z_y − log Σ_i exp(z_i + log T_iy), without a softmax."""
    own = log_columns.gather(1, labels[:, None]).squeeze(1)
    return -cross_entropies(logits + log_columns, labels) - own


def backward_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Σ_j (transition⁻¹)[label, j] · (−log softmax(logits)[j]).

    Its expectation over the noise is the cross entropy with the clean label; single values may be negative.

    References
    ----------
    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    """
    return reduce_losses(backward_losses(logits, labels, invert(transition)), reduction)


def backward_losses(logits: Tensor, labels: Tensor, inverse: Tensor) -> Tensor:
    """`backward_loss` of every sample, given the inverse."""
    return -(inverse.to(logits).index_select(0, labels) * logits.log_softmax(1)).sum(1)


def invert(transition: Tensor) -> Tensor:
    """Return the inverse in double precision; a singular matrix is refused."""
    matrix = transition.detach().double()
    if torch.linalg.matrix_rank(matrix) < len(matrix):
        raise TransitionError(
            "Expected an invertible matrix, got a singular one: two classes have the same noisy labels."
            " Use forward_loss, which needs no inverse."
        )
    inverse: Tensor = torch.linalg.inv(matrix)
    return inverse


def reweighted_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """β · cross entropy, with β = p_y / (p @ transition)_y held constant.

    References
    ----------
    Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016.

    Examples
    --------
    >>> import torch
    >>> transition = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
    >>> reweighted_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]), transition)
    tensor(0.6931)
    """
    weights = importance_weights(logits, labels, transition)
    return reduce_losses(weights * cross_entropies(logits, labels), reduction)


@torch.no_grad()
def importance_weights(logits: Tensor, labels: Tensor, transition: Tensor) -> Tensor:
    """β = p_y / (p @ transition)_y for every sample, without gradient."""
    log_weights = _log_weights(logits, labels, _log_columns(transition, labels, logits))
    return log_weights.clamp_max(_LARGEST_LOG_WEIGHT).exp()


def revised_loss(
    logits: Tensor, labels: Tensor, transition: Tensor, slack: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """β · cross entropy with β = p_y / (p @ `revised_transition`)_y; gradients flow through β too.

    References
    ----------
    Xia et al., Are anchor points really indispensable in label-noise learning?, NeurIPS 2019.
    """
    revised = revised_transition(transition.to(logits), slack)
    weights = _revised_weights(logits, labels, columns_of(revised, labels))
    return reduce_losses(weights * cross_entropies(logits, labels), reduction)


def _revised_weights(logits: Tensor, labels: Tensor, columns: Tensor) -> Tensor:
    """Return β = exp(z_y − m) / Σ_i exp(z_i − m) T_iy, which is the same for every m.

    No softmax is formed, in which p_y may underflow. Unlike `_log_weights` this does not take logarithms, because
    gradients must flow to entries that are zero. With m = max_i z_i + log T_iy, the largest term is 1.
    """
    top = (logits + columns.log()).detach().amax(1, keepdim=True)
    limits = torch.where(columns == 0, _LARGEST_LOG_OF_ZEROS, _LARGEST_LOG).to(logits)
    terms = torch.minimum(logits - top, limits).exp()
    own = (logits.gather(1, labels[:, None]) - top).squeeze(1)
    given = (terms * columns).sum(1)
    # Away from zero, so that the gradient stays finite where a label is impossible.
    given = torch.where(given < 1e-30, 1.0, given)
    return own.clamp_max(_LARGEST_LOG_WEIGHT).exp() / given


def revised_transition(transition: Tensor, slack: Tensor) -> Tensor:
    """Return transition + slack, clipped at zero, with rows that sum to one."""
    positive = (transition + slack).clamp_min(0)
    sums = positive.sum(1, keepdim=True)
    # A row that the slack has reduced to zero keeps its given values.
    return torch.where(sums > 0, positive / sums.clamp_min(1e-30), transition)


def reduce_losses(losses: Tensor, reduction: Reduction) -> Tensor:
    """Return the mean or the sum over samples, or the losses themselves."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise InputError(f"Expected reduction 'mean', 'sum' or 'none', got {reduction!r}.")
    return losses.mean() if reduction == "mean" else losses.sum()
