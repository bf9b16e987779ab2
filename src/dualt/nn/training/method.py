"""The one seam of the loop: a batch in, one loss per network out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from torch import Tensor, nn

Network: TypeAlias = Callable[[Tensor], Tensor]


class Batch(NamedTuple):
    """What a method sees: samples, given labels, the epoch from 0, a source of randomness, and the recipe's ramp."""

    x: Tensor
    labels: Tensor
    epoch: int
    rng: np.random.Generator
    ramp: float = 1.0


class Method(Protocol):
    """A way to learn from noisy labels; every `nn.Module` with these two functions is one.

    Attributes
    ----------
    n_networks
        How many networks learn together.
    """

    n_networks: int

    def __call__(self, networks: Sequence[Network], batch: Batch) -> Sequence[Tensor | None]:
        """Return one loss per network; `None` leaves that network as it is."""

    def to_noisy(self, probs: Tensor) -> Tensor:
        """Return the probabilities of the given label, which noisy validation labels are compared with."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return what the method learns beside its networks."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint must hold."""

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any:
        """Take up what a checkpoint held."""

    def to(self, device: Any) -> Any:
        """Move to a device."""
