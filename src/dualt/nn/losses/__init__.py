"""Losses for noisy labels: pure functions of tensors, and thin modules for a loop of your own.

Everywhere `logits` are (n, C), `labels` the given class numbers (n,), and `transition` is (C, C) with
`transition[i, j] = P(given j | true i)`.
"""

from dualt.nn.losses.corrected import (
    backward_loss,
    forward_loss,
    importance_weights,
    revised_loss,
    revised_transition,
    reweighted_loss,
)
from dualt.nn.losses.modules import BackwardLoss, ForwardLoss, RevisedLoss, ReweightedLoss
from dualt.nn.losses.selection import disagreement, mixup, mixup_loss, small_loss_selection

__all__ = [
    "BackwardLoss",
    "ForwardLoss",
    "RevisedLoss",
    "ReweightedLoss",
    "backward_loss",
    "disagreement",
    "forward_loss",
    "importance_weights",
    "mixup",
    "mixup_loss",
    "revised_loss",
    "revised_transition",
    "reweighted_loss",
    "small_loss_selection",
]
