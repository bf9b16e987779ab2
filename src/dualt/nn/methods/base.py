"""What a method is (a batch in, one loss per network out), and what several methods share."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor, nn

from dualt.nn.losses import as_matrix
from dualt.nn.networks import Network
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Part

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

    def __init_subclass__(cls) -> None:
        cls.takes_transition = "transition" in inspect.signature(cls).parameters

    def begin_epoch(self, networks: Networks, part: Part, ramp: float) -> None:
        """Look at the whole training part before an epoch; the networks are in evaluation mode."""

    @abstractmethod
    def forward(self, networks: Networks, batch: Batch) -> Losses:
        """Return one loss per network."""

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
        return probs @ (self.transition if self.learned_transition is None else self.learned_transition)


class SelectionMethod(Method):
    """A method that ignores the samples with the largest losses; the recipe is the authors' for all three of them.

    `rate` is the noise rate that a matrix implies, 1 − mean of its diagonal. That share of the batch is ignored, times
    `batch.ramp`.
    """

    recipe = Recipe(
        epochs=200, optimizer="adam", learning_rate=1e-3, weight_decay=0.0, linear_from=80, ramp=10, report="last-ten"
    )

    def __init__(self, transition: Any) -> None:
        super().__init__()
        self.rate = float(1 - as_matrix(transition).diagonal().mean())
