"""Fully connected networks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import nn

from dualt.nn.networks.dropout import Dropout


def mlp(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    hidden: Sequence[int] = (128, 128),
    dropout: float = 0.5,
    batch_norm: bool = False,
    width: float = 1.0,
) -> nn.Sequential:
    """Flatten, then hidden layers with batch norm if asked for, ReLU and dropout, then logits.

    The defaults are the network that the paper's released code calls LeNet; the synthetic experiments
    use `hidden=(25, 25), dropout=0`, registered as `mlp-small`, and in the released code `batch_norm=True`.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    n_inputs = math.prod(input_shape)
    for n_units in (max(1, round(width * units)) for units in hidden):
        layers.append(nn.Linear(n_inputs, n_units))
        if batch_norm:
            layers.append(nn.BatchNorm1d(n_units))
        layers.append(nn.ReLU())
        if dropout:
            layers.append(Dropout(dropout))
        n_inputs = n_units
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_classes))


def small_mlp(
    input_shape: Sequence[int], n_classes: int, *, batch_norm: bool = False, width: float = 1.0
) -> nn.Sequential:
    """Two hidden layers of 25 units without dropout: the paper's network for its synthetic data."""
    return mlp(input_shape, n_classes, hidden=(25, 25), dropout=0.0, batch_norm=batch_norm, width=width)
