"""Mixup: train on convex pairs of samples and on their pairs of labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.rng import RandomState, as_generator


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
