"""The convolutional network with nine layers of the Co-teaching code."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from dualt.errors import InputError

# Channels of the three layers before each pooling.
_BLOCKS = ((128, 128, 128), (256, 256, 256), (512, 256, 128))
_SMALLEST, _UNPADDED = 4, 28


def cnn9(input_shape: Sequence[int], n_classes: int, *, dropout: float = 0.25, width: float = 1.0) -> nn.Sequential:
    """Nine 3×3 convolutions with batch norm and leaky ReLU in three blocks, pooled by two, by two and over all pixels.

    The released scripts of Decoupling, MentorNet and Co-teaching train it by default. They leave its dropout of whole
    channels on while they test; here it is off. The last block does not pad images of 28 pixels and more.
    """
    n_in, height, side = input_shape
    if min(height, side) < _SMALLEST:
        raise InputError(f"Expected images of at least {_SMALLEST}×{_SMALLEST} for cnn9, got {height}×{side}.")
    layers: list[nn.Module] = []
    for number, block in enumerate(_BLOCKS, start=1):
        last = number == len(_BLOCKS)
        padding = 0 if last and min(height, side) >= _UNPADDED else 1
        for channels in (max(1, round(width * each)) for each in block):
            layers += [nn.Conv2d(n_in, channels, 3, padding=padding), nn.BatchNorm2d(channels), nn.LeakyReLU(0.01)]
            n_in = channels
        layers += [nn.AdaptiveAvgPool2d(1)] if last else [nn.MaxPool2d(2), nn.Dropout2d(dropout)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(n_in, n_classes))
