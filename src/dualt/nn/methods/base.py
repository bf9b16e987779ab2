"""What several methods share: a matrix that is given or learned, small losses to select."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError, TransitionError
from dualt.nn.losses.corrected import columns_of, forward_loss_from
from dualt.nn.losses.modules import as_matrix
from dualt.nn.training import Batch, Method, Recipe
from dualt.validation import check_n_classes

# The authors' settings of Decoupling, MentorNet and Co-teaching.
SELECTION_RECIPE = Recipe(
    epochs=200, optimizer="adam", learning_rate=1e-3, weight_decay=0.0, linear_from=80, ramp=10, report="last-ten"
)


class TransitionMethod(Method):
    """A method whose network predicts the clean class, and the given label through a matrix."""

    replicable = True
    transition: Tensor

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.register_buffer("transition", as_matrix(transition), persistent=False)

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return probs @ transition."""
        return probs @ self.transition


class LearningMethod(Method):
    """A method that learns the matrix along with the network, by the forward loss and a weighted penalty.

    Row i of the matrix is 1 at i and σ(√C·weight − log C) elsewhere, divided by its sum. So the diagonal entry is
    the largest of its row, and classes do not change places. Where the weights are zero, at the start and where
    weight decay pulls them, the matrix is half-way between the identity and pure noise.
    """

    replicable = True

    def __init__(self, n_classes: int, penalty_weight: float) -> None:
        super().__init__()
        if not (isinstance(penalty_weight, (int, float)) and 0 <= penalty_weight < math.inf):
            raise InputError(f"Expected the weight of the penalty to be a number from 0 on, got {penalty_weight!r}.")
        self.penalty_weight = penalty_weight
        self.weight = nn.Parameter(torch.zeros(check_n_classes(n_classes), n_classes))

    @property
    def log_transition(self) -> Tensor:
        """Logarithms of the matrix, with gradients."""
        n_classes = self.weight.shape[-1]
        # Each row learns from a C-th of the samples: √C makes a step as large as if it were from all of them.
        others = F.logsigmoid(math.sqrt(n_classes) * self.weight - math.log(n_classes))
        diagonal = torch.eye(n_classes, dtype=torch.bool, device=self.weight.device)
        return others.masked_fill(diagonal, 0).log_softmax(-1)

    @property
    def learned_transition(self) -> Tensor:
        """The matrix as learned so far."""
        return self.log_transition.detach().exp()

    def misfit(self, logits: Tensor, labels: Tensor, log_transition: Tensor) -> Tensor:
        """Return the mean of −log (softmax(logits) @ transition)[label]; gradients flow to the matrix too."""
        return forward_loss_from(logits, labels, columns_of(log_transition, labels))

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return probs @ transition."""
        return probs @ self.learned_transition


class SelectionMethod(Method):
    """A method that forgets the samples with the largest losses.

    The forget rate is the noise rate that a matrix implies, 1 − mean of its diagonal, and rises to it linearly over
    the ramp of the recipe.
    """

    replicable = True
    rate: Tensor

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.register_buffer("rate", 1 - as_matrix(transition).diagonal().mean(), persistent=False)

    def forget_rate(self, batch: Batch) -> Tensor:
        """Return the share of the batch to forget."""
        return self.rate * batch.ramp


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
