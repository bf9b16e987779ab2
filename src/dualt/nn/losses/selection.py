"""What of a batch to learn from: its small losses, its disagreements, or mixtures of its samples.

`mean_of_small`, `mean_where` and `mix` take any number of axes in front of the samples: many batches at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from dualt.errors import InputError
from dualt.nn.losses.corrected import cross_entropies
from dualt.rng import RandomState, as_generator
from dualt.validation import check_fraction


def small_loss_selection(losses: Tensor, forget_rate: float) -> Tensor:
    """Return the indices of the (1 − forget_rate)·n samples with the smallest losses, at least one.

    Examples
    --------
    >>> import torch
    >>> small_loss_selection(torch.tensor([0.9, 0.1, 0.5, 0.2]), 0.5)
    tensor([1, 3])
    """
    check_fraction(forget_rate, "forget_rate", inclusive=True)
    return torch.argsort(losses.detach(), stable=True)[: int(_n_kept(torch.tensor(forget_rate), len(losses)))]


def mean_of_small(losses: Tensor, by: Tensor, forget_rate: Tensor) -> Tensor:
    """Return the mean of `losses` over the samples that are small in `by`, as `small_loss_selection` chooses them.

    `losses` and `by` are (…, n), the rate is (…).
    """
    n_kept = _n_kept(forget_rate, losses.shape[-1]).unsqueeze(-1)
    order = by.detach().argsort(stable=True)
    weights = (torch.arange(losses.shape[-1], device=losses.device) < n_kept) / n_kept
    return (losses.gather(-1, order) * weights).sum(-1)


def _n_kept(forget_rate: Tensor, n_samples: int) -> Tensor:
    # A thousandth more: 1 − 0.9 is a little less than a tenth, and must not keep less than a tenth of ten.
    return ((1 - forget_rate) * n_samples + 1e-3).floor().clamp_min(1)


def mean_where(losses: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean of `losses` (…, n) over the chosen samples, 0 where none is."""
    return (losses * chosen).sum(-1) / chosen.sum(-1).clamp_min(1)


def disagreement(logits_a: Tensor, logits_b: Tensor) -> Tensor:
    """Return the indices of the samples that two networks put in different classes; perhaps none.

    Examples
    --------
    >>> import torch
    >>> disagreement(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([1])
    """
    return torch.nonzero(logits_a.argmax(1) != logits_b.argmax(1)).squeeze(1)


class Mixed(NamedTuple):
    """`share · x + (1 − share) · x[partner]`, and the labels of both."""

    x: Tensor
    labels: Tensor
    partner_labels: Tensor
    share: Tensor


def mixup(x: Tensor, labels: Tensor, random_state: RandomState = None, *, alpha: float = 1.0) -> Mixed:
    """Mix every sample with a partner of the same batch, in a share drawn from Beta(alpha, alpha).

    References
    ----------
    Zhang et al., mixup: beyond empirical risk minimization, ICLR 2018.
    """
    if not alpha > 0:
        raise InputError(f"Expected alpha above 0, got {alpha}.")
    generator = as_generator(random_state)
    return mix(x, labels, generator.beta(alpha, alpha), generator.permutation(len(x)))


def mix(x: Tensor, labels: Tensor, share: ArrayLike, partner: ArrayLike) -> Mixed:
    """Mix every sample with its partner: shares (…), partners and labels (…, n), samples (…, n, ·)."""
    shares = torch.as_tensor(np.asarray(share), dtype=x.dtype, device=x.device)
    index = torch.as_tensor(np.asarray(partner, np.int64), device=x.device)
    batches = x.reshape(-1, index.shape[-1], *x.shape[index.ndim :])
    rows = index + index.shape[-1] * torch.arange(len(batches), device=x.device).view(*index.shape[:-1], 1)
    others = batches.flatten(0, 1).index_select(0, rows.flatten()).view_as(x)
    mixed = others.lerp_(x, shares.view(*shares.shape, *[1] * (x.ndim - shares.ndim)))
    return Mixed(mixed, labels, labels.gather(-1, index), shares)


def mixup_loss(logits: Tensor, mixed: Mixed) -> Tensor:
    """Return share · CE(logits, labels) + (1 − share) · CE(logits, partner labels)."""
    own, partners = (cross_entropies(logits, labels).mean(-1) for labels in (mixed.labels, mixed.partner_labels))
    return mixed.share * own + (1 - mixed.share) * partners
