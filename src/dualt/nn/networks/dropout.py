"""Dropout from 16 random bits per number, many times as fast on a processor as torch's own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """Set a share `p` of the entries to zero and scale the others up, while training."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with new zeros at every call."""
        return x * dropout_mask(x, self.p) if self.training and self.p else x


def dropout_mask(like: Tensor, p: float, generators: Sequence[torch.Generator | None] = (None,)) -> Tensor:
    """Return a mask in the shape of `like`: 0 for a share `p`, to the next 65,536th, and 1 / (1 − p) elsewhere.

    Each of the generators (`None`: torch's own) draws an equal share of its rows.

    The plain version is `torch.empty_like(like).bernoulli_(1 - p) / (1 - p)`. Four entries from one whole number of
    64 bits take a quarter of its time, which was a third of the training of a small network.
    """
    each = like.numel() // len(generators)
    words = torch.empty(len(generators), -(-each // 4), dtype=torch.int64, device=like.device)
    for own, generator in zip(words, generators, strict=True):
        own.random_(-(2**63), None, generator=generator)
    bits = words.view(torch.int16)[:, :each].reshape(like.shape)
    mask = torch.empty_like(like)
    torch.ge(bits, round(p * 2**16) - 2**15, out=mask)
    return mask.mul_(1 / (1 - p))
