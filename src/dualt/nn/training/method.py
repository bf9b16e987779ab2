"""The one seam of the loop: a batch in, one loss per network out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor, nn

from dualt.nn.training.inputs import Part

Network: TypeAlias = Callable[[Tensor], Tensor]


class Batch(NamedTuple):
    """What a method sees: samples, given labels, the epoch from 0, a source of randomness, and the recipe's ramp.

    `rows` holds the row of each sample in the training part, for methods that remember something of every sample.
    `look_again` augments the samples anew; `None`: there is no augmentation. `evaluating` is a context in which the
    networks predict without dropout, batch statistics and gradients.
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
    """A way to learn from noisy labels; its parameters are learned along with the networks.

    Attributes
    ----------
    n_networks
        How many networks learn together.
    options
        What it was built with beside a matrix: a checkpoint of other options is not resumed.
    replicable
        Whether it takes a batch of K runs at once: labels (K, n), logits (K, n, C), its own tensors with K rows, and
        draws of `rng` with a row each. It then returns K losses per network.
    skips
        Whether it may find nothing to learn from in a batch: it then returns `None`, of many runs a loss of 0.
    transition
        The matrix that it was given; `None`: it takes none.
    """

    n_networks = 1
    replicable = False
    skips = False
    options: Mapping[str, Any] = {}
    transition: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("transition", None, persistent=False)

    def begin_epoch(self, networks: Sequence[Network], part: Part, ramp: float) -> None:
        """Look at the whole training part before an epoch, whose ramp this is; the networks are evaluating."""

    @abstractmethod
    def forward(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return one loss per network; `None` leaves that network as it is."""

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return the probabilities of the given label, which noisy validation labels are compared with."""
        return probs

    @property
    def learned_transition(self) -> Tensor | None:
        """The matrix as learned so far; `None`: it learns none."""
        return None
