"""LeNet-5 with dropout."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from dualt.errors import InputError
from dualt.nn.networks.dropout import Dropout

_SMALLEST = 4


def lenet(input_shape: Sequence[int], n_classes: int, *, dropout: float = 0.5, width: float = 1.0) -> nn.Sequential:
    """Two 5×5 convolutions with pooling, then 120 and 84 units with dropout, then logits.

    The second convolution pads images of fewer than 20 pixels, which would otherwise vanish.
    """
    channels, height, side = input_shape
    if min(height, side) < _SMALLEST:
        raise InputError(f"Expected images of at least {_SMALLEST}×{_SMALLEST} for lenet, got {height}×{side}.")
    first, second, third, fourth = (max(1, round(width * units)) for units in (6, 16, 120, 84))
    padding = 0 if min(height, side) >= 20 else 2
    lost = 4 - 2 * padding
    n_features = second * ((height // 2 - lost) // 2) * ((side // 2 - lost) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(n_features, third), nn.ReLU(), Dropout(dropout),
        nn.Linear(third, fourth), nn.ReLU(), Dropout(dropout),
        nn.Linear(fourth, n_classes),
    )  # fmt: skip
