"""Augmentation of whole batches of images, with no Python per sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError

_MARGIN = 4


def shift(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Move every image (n, C, H, W) by up to four pixels each way, zeros coming in at the border."""
    if x.ndim != 4:
        raise InputError(f"Expected images to augment, got samples of shape {tuple(x.shape[1:])}. Leave augment away.")
    n, _, height, width = x.shape
    corners = torch.from_numpy(rng.integers(0, 2 * _MARGIN + 1, size=(2, n))).to(x.device)
    rows = corners[0][:, None] + torch.arange(height, device=x.device)
    columns = corners[1][:, None] + torch.arange(width, device=x.device)
    padded = F.pad(x, (_MARGIN,) * 4)
    samples = torch.arange(n, device=x.device)[:, None, None]
    # Indices around a slice put the channels last.
    return padded[samples, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


def shift_and_flip(x: Tensor, rng: np.random.Generator) -> Tensor:
    """`shift`, and mirror half of the images: the usual augmentation for CIFAR."""
    mirrored = torch.from_numpy(rng.random(len(x)) < 0.5).to(x.device)
    moved = shift(x, rng)
    return torch.where(mirrored[:, None, None, None], moved.flip(3), moved)


AUGMENTATIONS: dict[str, Callable[[Tensor, np.random.Generator], Tensor]] = {
    "shift": shift,
    "shift-flip": shift_and_flip,
}
