"""Which samples of a batch to learn from: those with small losses, disagreements, or mixtures of samples."""

from __future__ import annotations

from typing import NamedTuple

import torch
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
    # A thousandth more, because 1 − 0.9 is slightly less than 0.1 in floating point.
    n_kept = max(1, int((1 - forget_rate) * len(losses) + 1e-3))
    return torch.argsort(losses.detach(), stable=True)[:n_kept]


def disagreement(logits_a: Tensor, logits_b: Tensor) -> Tensor:
    """Return the indices of the samples that two networks put in different classes; possibly none.

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
    """Mix every sample with a partner from the same batch, with one share drawn from Beta(alpha, alpha).

    References
    ----------
    Zhang et al., mixup: beyond empirical risk minimization, ICLR 2018.
    """
    if not alpha > 0:
        raise InputError(f"Expected alpha above 0, got {alpha}.")
    generator = as_generator(random_state)
    share = float(generator.beta(alpha, alpha))
    partner = torch.from_numpy(generator.permutation(len(x))).to(x.device)
    return Mixed(x[partner].lerp_(x, share), labels, labels[partner], share)


def mixup_loss(logits: Tensor, mixed: Mixed) -> Tensor:
    """Return share · CE(logits, labels) + (1 − share) · CE(logits, partner labels)."""
    own, partners = (cross_entropies(logits, labels).mean() for labels in (mixed.labels, mixed.partner_labels))
    return mixed.share * own + (1 - mixed.share) * partners
