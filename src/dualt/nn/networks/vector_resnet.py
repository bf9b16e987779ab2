"""A residual network for vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """Two linear layers around a shortcut."""

    def __init__(self, n_units: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(n_units, n_units), nn.Linear(n_units, n_units)
        self.norm1, self.norm2 = nn.BatchNorm1d(n_units), nn.BatchNorm1d(n_units)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual(x) + x)."""
        hidden = self.relu(self.norm1(self.first(x)))
        out: Tensor = self.relu(self.norm2(self.second(hidden)) + x)
        return out


def vector_resnet(
    input_shape: Sequence[int], n_classes: int, *, n_layers: int = 16, units: int = 64, width: float = 1.0
) -> nn.Sequential:
    """Return a residual network of `n_layers` linear layers, as deep as the one of the paper's appendix.

    One layer to `units` features, residual blocks of two layers each, and one to the logits.
    """
    n_units = max(1, round(width * units))
    blocks = [ResidualBlock(n_units) for _ in range((n_layers - 2) // 2)]
    entry = nn.Linear(math.prod(input_shape), n_units)
    return nn.Sequential(
        nn.Flatten(), entry, nn.BatchNorm1d(n_units), nn.ReLU(), *blocks, nn.Linear(n_units, n_classes)
    )
