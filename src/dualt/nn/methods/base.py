"""What a method is (a batch in, one loss per network out), and what several methods share."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError, TransitionError
from dualt.nn.losses.corrected import columns_of, forward_loss_from
from dualt.nn.losses.modules import as_matrix
from dualt.nn.prediction import Network
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part
from dualt.validation import check_n_classes

__all__ = [
    "SELECTION_RECIPE", "Batch", "LearningMethod", "Method", "Network", "SelectionMethod", "TransitionMethod",
    "check_labels_possible",
]  # fmt: skip

# The authors' settings for Decoupling, MentorNet and Co-teaching.
SELECTION_RECIPE = Recipe(
    epochs=200, optimizer="adam", learning_rate=1e-3, weight_decay=0.0, linear_from=80, ramp=10, report="last-ten"
)


class Batch(NamedTuple):
    """What a method gets: samples, given labels, the epoch (from 0), a random generator, and the recipe's ramp.

    `rows` is the row of each sample in the training part, for methods with a memory per sample. `look_again` augments
    the samples anew (`None` without augmentation). `evaluating` is a context in which the networks predict without
    dropout, batch statistics and gradients.
    """

    x: Tensor
    labels: Tensor
    epoch: int
    rng: np.random.Generator
    ramp: float = 1.0
    rows: Tensor | None = None
    look_again: Callable[[], Tensor] | None = None
    evaluating: Callable[[], AbstractContextManager[None]] | None = None


class Method(nn.Module, ABC):
    """A way to learn from noisy labels; its parameters are trained along with the networks.

    Attributes
    ----------
    n_networks
        Number of networks that learn together.
    options
        What it was built with, besides a matrix; a checkpoint is resumed only with the same options.
    transition
        The matrix that it was given, or `None`.
    recipe
        As published; by default that of cross entropy in the paper.
    starts_from
        Name of the method whose networks it refines, if any.
    ramp_share
        Share of the epochs that the ramp takes in the default recipe, if the published one has a ramp.
    takes_transition
        Whether its constructor has a parameter `transition`.
    """

    recipe: ClassVar[Recipe] = Recipe(epochs=100, learning_rate=0.01, milestones=(50,))
    starts_from: ClassVar[str | None] = None
    ramp_share: ClassVar[float] = 0.3
    takes_transition: ClassVar[bool] = False
    n_networks = 1
    options: Mapping[str, Any] = {}
    transition: Tensor | None

    def __init_subclass__(cls) -> None:
        cls.takes_transition = "transition" in inspect.signature(cls).parameters

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("transition", None, persistent=False)

    def begin_epoch(self, networks: Sequence[Network], part: Part, ramp: float) -> None:
        """Look at the whole training part before an epoch; the networks are in evaluation mode."""

    @abstractmethod
    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return one loss per network; a network whose loss is `None` is left unchanged."""

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return the probabilities of the given label, to compare with noisy validation labels."""
        return probs

    @property
    def learned_transition(self) -> Tensor | None:
        """The matrix as learned so far; `None` if the method learns none."""
        return None


class TransitionMethod(Method):
    """A method whose network predicts the clean class, and the given label through a matrix."""

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
    the largest of its row, and classes do not swap. Where the weights are zero, at the start and where weight decay
    pulls them, the matrix is half-way between the identity and uniform noise.
    """

    recipe = Recipe(epochs=80, learning_rate=0.01, momentum=0.9, milestones=(30, 60))

    def __init__(self, n_classes: int, penalty_weight: float) -> None:
        super().__init__()
        if not (isinstance(penalty_weight, (int, float)) and 0 <= penalty_weight < math.inf):
            raise InputError(f"Expected a penalty weight of at least 0, got {penalty_weight!r}.")
        self.penalty_weight = penalty_weight
        self.weight = nn.Parameter(torch.zeros(check_n_classes(n_classes), n_classes))

    @property
    def log_transition(self) -> Tensor:
        """Logarithms of the matrix, with gradients."""
        n_classes = len(self.weight)
        # Each row learns from one C-th of the samples: √C makes its steps as large as if it learned from all of them.
        others = F.logsigmoid(math.sqrt(n_classes) * self.weight - math.log(n_classes))
        diagonal = torch.eye(n_classes, dtype=torch.bool, device=self.weight.device)
        return others.masked_fill(diagonal, 0).log_softmax(1)

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
    """A method that ignores the samples with the largest losses.

    The forget rate is the noise rate that a matrix implies, 1 − mean of its diagonal; it rises linearly to that value
    over the ramp of the recipe.
    """

    recipe = SELECTION_RECIPE

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.rate = float(1 - as_matrix(transition).diagonal().mean())

    def forget_rate(self, batch: Batch) -> float:
        """Return the share of the batch to ignore."""
        return self.rate * batch.ramp


def check_labels_possible(transition: NDArray[np.float64], labels: Tensor) -> None:
    """Refuse a matrix with a zero column for a label that occurs."""
    counts = np.bincount(labels.cpu().numpy(), minlength=len(transition))
    impossible = (counts > 0) & (transition.sum(axis=0) == 0)
    if impossible.any():
        label = int(np.argmax(impossible))
        raise TransitionError(
            f"The transition matrix says that no sample is ever labelled {label} (column {label} is zero),"
            f" but {counts[label]:,} are. Estimate it from these labels, or check the order of its classes."
        )
