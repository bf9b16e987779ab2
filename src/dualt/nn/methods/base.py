"""What a method is (a batch in, one loss per network out), and what several methods share."""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError
from dualt.nn.losses import as_matrix, forward_losses
from dualt.nn.networks import Network
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part
from dualt.validation import check_n_classes

Networks: TypeAlias = Sequence[Network]
# One loss per network; a network whose loss is None is left unchanged.
Losses: TypeAlias = Sequence[Tensor | None]


class Batch(NamedTuple):
    """What a method gets: samples, given labels, their rows in the training part, and a random generator.

    `evaluating` is a context in which the networks predict without dropout, batch statistics and gradients. `ramp` is
    the value of the recipe's ramp. `look_again` augments the samples anew (`None` without augmentation).
    """

    x: Tensor
    labels: Tensor
    rows: Tensor
    rng: np.random.Generator
    evaluating: Callable[[], AbstractContextManager[None]]
    ramp: float = 1.0
    look_again: Callable[[], Tensor] | None = None


class Method(nn.Module, ABC):
    """A way to learn from noisy labels; its parameters are trained along with the networks."""

    # As published; by default that of cross entropy in the paper.
    recipe: ClassVar[Recipe] = Recipe(epochs=100, learning_rate=0.01, milestones=(50,))
    # Name of the method whose networks it refines, if any.
    starts_from: ClassVar[str | None] = None
    # Share of the epochs that the ramp takes in the default recipe, if the published one has a ramp.
    ramp_share: ClassVar[float] = 0.3
    # Whether the constructor has a parameter `transition`.
    takes_transition: ClassVar[bool] = False
    # Number of networks that learn together.
    n_networks = 1
    # What it was built with, besides a matrix; a checkpoint is resumed only with the same options.
    options: Mapping[str, Any] = {}

    def __init_subclass__(cls) -> None:
        cls.takes_transition = "transition" in inspect.signature(cls).parameters

    def begin_epoch(self, networks: Networks, part: Part, ramp: float) -> None:
        """Look at the whole training part before an epoch; the networks are in evaluation mode."""

    @abstractmethod
    def forward(self, networks: Networks, batch: Batch) -> Losses:
        """Return one loss per network."""

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return the probabilities of the given label, to compare with noisy validation labels."""
        return probs if self.learned_transition is None else probs @ self.learned_transition

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
        return probs @ self.transition if self.learned_transition is None else super().to_noisy(probs)


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

    def forward(self, networks: Networks, batch: Batch) -> Losses:
        logits, log_transition = networks[0](batch.x), self.log_transition
        misfit = forward_losses(logits, batch.labels, log_transition).mean()
        return [misfit + self.penalty_weight * self.penalty(logits, log_transition)]

    @abstractmethod
    def penalty(self, logits: Tensor, log_transition: Tensor) -> Tensor:
        """Return what is added to the mean forward loss, times `penalty_weight`."""

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
        return self.log_transition.detach().exp()


class SelectionMethod(Method):
    """A method that ignores the samples with the largest losses; the recipe is the authors' for all three of them.

    The forget rate is the noise rate that a matrix implies, 1 − mean of its diagonal; it rises linearly to that value
    over the ramp of the recipe.
    """

    recipe = Recipe(
        epochs=200, optimizer="adam", learning_rate=1e-3, weight_decay=0.0, linear_from=80, ramp=10, report="last-ten"
    )

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.rate = float(1 - as_matrix(transition).diagonal().mean())

    def forget_rate(self, batch: Batch) -> float:
        """Return the share of the batch to ignore."""
        return self.rate * batch.ramp
