"""What of a batch to learn from: its small losses, its disagreements, or mixtures of its samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
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
    # Rounded first: 1 − 0.9 is a little more than a tenth, and must not keep less than a tenth of ten.
    n_kept = max(1, int(round((1 - forget_rate) * len(losses), 6)))
    return torch.argsort(losses.detach(), stable=True)[:n_kept]


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
    share: float


def mixup(x: Tensor, labels: Tensor, random_state: RandomState = None, *, alpha: float = 1.0) -> Mixed:
    """Mix every sample with a partner of the same batch, in a share drawn from Beta(alpha, alpha).

    References
    ----------
    Zhang et al., mixup: beyond empirical risk minimization, ICLR 2018.
    """
    if not alpha > 0:
        raise InputError(f"Expected alpha above 0, got {alpha}.")
    generator = as_generator(random_state)
    share = float(generator.beta(alpha, alpha))
    partner = torch.from_numpy(generator.permutation(len(x)).astype(np.int64)).to(x.device)
    mixed = torch.lerp(x.index_select(0, partner), x, share)
    return Mixed(mixed, labels, labels.index_select(0, partner), share)


def mixup_loss(logits: Tensor, mixed: Mixed) -> Tensor:
    """Return share · CE(logits, labels) + (1 − share) · CE(logits, partner labels)."""
    own = F.cross_entropy(logits, mixed.labels)
    return mixed.share * own + (1 - mixed.share) * F.cross_entropy(logits, mixed.partner_labels)
