"""What the methods share: no networks of their own, perhaps a matrix, a published recipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from dualt.errors import TransitionError
from dualt.losses.matrix import as_matrix
from dualt.training import Batch, Network, Recipe

# The authors' settings of Decoupling, MentorNet and Co-teaching.
SELECTION_RECIPE = Recipe(
    epochs=200, optimizer="adam", learning_rate=1e-3, weight_decay=0.0, linear_from=80, report="last-ten"
)
_RAMP = 10


class BaseMethod(nn.Module):
    """A method of one network whose output is compared with noisy labels as it is."""

    n_networks = 1

    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return one loss per network."""
        raise NotImplementedError

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return the probabilities of the given label."""
        return probs


class TransitionMethod(BaseMethod):
    """A method whose network predicts the clean class, and the given label through a matrix."""

    transition: Tensor

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.register_buffer("transition", as_matrix(transition), persistent=False)

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return probs @ transition."""
        return probs @ self.transition


class SelectionMethod(BaseMethod):
    """A method that forgets the samples with the largest losses.

    The forget rate is the noise rate that a matrix implies, 1 − mean of its diagonal, and rises to it
    linearly over the first ten epochs.
    """

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.rate = 1 - float(as_matrix(transition).diagonal().mean())

    def forget_rate(self, epoch: int) -> float:
        """Return the share of a batch to forget in `epoch`, counted from 0."""
        return self.rate * min(1.0, epoch / (_RAMP - 1))


def check_labels_possible(transition: NDArray[np.float64], labels: Tensor) -> None:
    """Refuse a matrix that gives a label no probability at all although it occurs."""
    counts = np.bincount(labels.cpu().numpy(), minlength=len(transition))
    impossible = (counts > 0) & (transition.sum(axis=0) == 0)
    if impossible.any():
        label = int(np.argmax(impossible))
        raise TransitionError(
            f"The transition matrix says that no sample is ever labelled {label} (column {label} is zero),"
            f" but {counts[label]:,} are. Estimate it from these labels, or check the order of its classes."
        )
