"""Losses for noisy labels: pure functions of tensors, and modules that hold a matrix for a loop of your own.

Everywhere `logits` are (n, C), `labels` the given class numbers (n,), and `transition` is (C, C) with
`transition[i, j] = P(given j | true i)`.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError, TransitionError
from dualt.validation import check_fraction, check_transition

Reduction: TypeAlias = Literal["mean", "sum", "none"]

# Stands for log 0: far below any logit, so that its exp vanishes, yet finite, so that no difference is NaN.
_LOG_ZERO = -1e3
# The weight 1 / transition[y, y] is unbounded where a class is never labelled correctly; cap its logarithm.
_LARGEST_LOG_WEIGHT = 50.0
# Above this, exp overflows float32. Terms that are multiplied by zero matter only through their gradient, which may be
# multiplied by another weight, so they get a lower cap.
_LARGEST_LOG, _LARGEST_LOG_OF_ZEROS = 80.0, 30.0


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return −log softmax(logits)[label] for every sample, (n,)."""
    return F.cross_entropy(logits, labels, reduction="none")


def forward_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """−log (softmax(logits) @ transition)[label].

    Computed in log space, so that neither a confident network nor a zero in the matrix gives infinity. A label that is
    impossible under the matrix costs a constant and has no gradient. No gradient flows to `transition`.

    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    """
    return reduce_losses(cross_entropies(logits, labels) + _log_weights(logits, labels, transition), reduction)


def _log_weights(logits: Tensor, labels: Tensor, transition: Tensor) -> Tensor:
    """Return log β = log p_y − log (p @ transition)_y = z_y − log Σ_i exp(z_i + log T_iy), without a softmax."""
    log_columns = transition.detach().to(logits).log().clamp_min(_LOG_ZERO).T.index_select(0, labels)
    own = log_columns.gather(1, labels[:, None]).squeeze(1)
    return -cross_entropies(logits + log_columns, labels) - own


def backward_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """Σ_j (transition⁻¹)[label, j] · (−log softmax(logits)[j]).

    Its expectation over the noise is the cross entropy with the clean label; single values may be negative.

    Patrini et al., Making deep neural networks robust to label noise, CVPR 2017.
    """
    return _backward_loss(logits, labels, _inverse(transition), reduction)


def _backward_loss(logits: Tensor, labels: Tensor, inverse: Tensor, reduction: Reduction) -> Tensor:
    return reduce_losses(-(inverse.to(logits).index_select(0, labels) * logits.log_softmax(1)).sum(1), reduction)


def _inverse(transition: Tensor) -> Tensor:
    matrix = transition.detach().double()
    if torch.linalg.matrix_rank(matrix) < len(matrix):
        raise TransitionError(
            "Expected an invertible matrix, got a singular one: two classes have the same noisy labels."
            " Use forward_loss, which needs no inverse."
        )
    return torch.as_tensor(torch.linalg.inv(matrix))


def reweighted_loss(logits: Tensor, labels: Tensor, transition: Tensor, *, reduction: Reduction = "mean") -> Tensor:
    """β · cross entropy, with β = p_y / (p @ transition)_y held constant.

    Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016.
    """
    log_weights = _log_weights(logits.detach(), labels, transition)
    weights = log_weights.clamp_max(_LARGEST_LOG_WEIGHT).exp()
    return reduce_losses(weights * cross_entropies(logits, labels), reduction)


def revised_loss(
    logits: Tensor, labels: Tensor, transition: Tensor, slack: Tensor, *, reduction: Reduction = "mean"
) -> Tensor:
    """β · cross entropy with β = p_y / (p @ `revised_transition`)_y; gradients flow through β too.

    Xia et al., Are anchor points really indispensable in label-noise learning?, NeurIPS 2019.
    """
    columns = revised_transition(transition.to(logits), slack).T.index_select(0, labels)
    # β = exp(z_y − m) / Σ_i exp(z_i − m) T_iy is the same for every m; with this m the largest term is 1. No softmax is
    # formed, in which p_y may underflow, and no logarithm taken: gradients must flow to entries that are zero.
    top = (logits + columns.log()).detach().amax(1, keepdim=True)
    limits = torch.where(columns == 0, _LARGEST_LOG_OF_ZEROS, _LARGEST_LOG).to(logits)
    given = (torch.minimum(logits - top, limits).exp() * columns).sum(1)
    # Away from zero, so that the gradient stays finite where a label is impossible.
    given = torch.where(given < 1e-30, 1.0, given)
    own = (logits.gather(1, labels[:, None]) - top).squeeze(1)
    weights = own.clamp_max(_LARGEST_LOG_WEIGHT).exp() / given
    return reduce_losses(weights * cross_entropies(logits, labels), reduction)


def revised_transition(transition: Tensor, slack: Tensor) -> Tensor:
    """Return transition + slack, clipped at zero, with rows that sum to one."""
    positive = (transition + slack).clamp_min(0)
    sums = positive.sum(1, keepdim=True)
    # A row that the slack has reduced to zero keeps its given values.
    return torch.where(sums > 0, positive / sums.clamp_min(1e-30), transition)


def reduce_losses(losses: Tensor, reduction: Reduction) -> Tensor:
    """Return the mean or the sum over samples, or the losses themselves."""
    if reduction not in ("mean", "sum", "none"):
        raise InputError(f"Expected reduction 'mean', 'sum' or 'none', got {reduction!r}.")
    return losses if reduction == "none" else getattr(losses, reduction)()


def small_loss_selection(losses: Tensor, forget_rate: float) -> Tensor:
    """Return the indices of the (1 − forget_rate)·n samples with the smallest losses, at least one."""
    check_fraction(forget_rate, "forget_rate", inclusive=True)
    # A thousandth more, because 1 − 0.9 is slightly less than 0.1 in floating point.
    n_kept = max(1, int((1 - forget_rate) * len(losses) + 1e-3))
    return torch.argsort(losses.detach(), stable=True)[:n_kept]


def as_matrix(transition: Any) -> Tensor:
    """Return a checked matrix, given as array, tensor or anything with a `.transition`, as float32."""
    return torch.from_numpy(check_transition(getattr(transition, "transition", transition))).float()


class _TransitionLoss(nn.Module):
    """Holds the matrix as a buffer, and checks the number of classes and the labels."""

    function: ClassVar[Callable[..., Tensor]]
    transition: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("transition", as_matrix(transition))
        self.reduction: Reduction = reduction

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of (n, C) logits and (n,) given labels."""
        n_classes = len(self.transition)
        if logits.shape[-1] != n_classes:
            raise InputError(f"Expected logits of {n_classes} classes, as in the matrix, got {logits.shape[-1]}.")
        # Under autocast logits are in half precision, too coarse for logarithms of the matrix.
        exact = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        try:
            return self._loss(exact, labels)
        except (IndexError, RuntimeError):  # torch checks every label anyway; checking before would slow down each step
            outside = ((labels < 0) | (labels >= n_classes)).flatten().nonzero()
            if not len(outside):
                raise
            place = int(outside[0])
            raise InputError(
                f"Expected labels from 0 to {n_classes - 1}, got {labels.flatten()[place].item()} at place {place}."
                " Leave out samples without a label: loss(logits[labels >= 0], labels[labels >= 0])."
            ) from None

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self.function(logits, labels, self.transition, reduction=self.reduction)


class ForwardLoss(_TransitionLoss):
    """`forward_loss` with a fixed matrix: an array, a tensor or a `TransitionEstimate`.

    Examples
    --------
    >>> import dualt, torch
    >>> loss = ForwardLoss(dualt.noise.symmetric(2, 0.2))
    >>> loss(torch.tensor([[20.0, 0.0]]), torch.tensor([1]))  # −log 0.2
    tensor(1.6094)
    """

    function = staticmethod(forward_loss)


class BackwardLoss(_TransitionLoss):
    """`backward_loss` with a fixed matrix, which must be invertible."""

    inverse: Tensor

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.register_buffer("inverse", _inverse(self.transition).float())

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return _backward_loss(logits, labels, self.inverse, self.reduction)


class ReweightedLoss(_TransitionLoss):
    """`reweighted_loss` with a fixed matrix."""

    function = staticmethod(reweighted_loss)


class RevisedLoss(_TransitionLoss):
    """`revised_loss` with a learned `slack`: give `loss.parameters()` to the optimizer as well."""

    def __init__(self, transition: Any, *, reduction: Reduction = "mean") -> None:
        super().__init__(transition, reduction=reduction)
        self.slack = nn.Parameter(torch.zeros_like(self.transition))

    @property
    def revised(self) -> Tensor:
        """The matrix as revised so far."""
        return revised_transition(self.transition, self.slack.detach())

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return revised_loss(logits, labels, self.transition, self.slack, reduction=self.reduction)
