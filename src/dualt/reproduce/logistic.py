"""Logistic regression on top of a network: one logit, whose logistic function is P(class 1 | x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.networks import NETWORKS


class OneLogit(nn.Module):
    """The logits (0, z) of one output z: their cross entropy is the logistic loss of z, to the letter."""

    def forward(self, z: Tensor) -> Tensor:
        """Return (n, 2) from (n, 1)."""
        return F.pad(z, (1, 0))


def with_logistic_loss(network: str) -> Callable[..., nn.Module]:
    """Return a function that builds `network` with one logit instead of two."""

    def build(input_shape: Sequence[int], n_classes: int, **options: Any) -> nn.Module:
        if n_classes != 2:
            raise InputError(f"Expected two classes for the logistic loss, got {n_classes}. Use loss=cross-entropy.")
        return nn.Sequential(NETWORKS[network].build(input_shape, 1, **options), OneLogit())

    return build
