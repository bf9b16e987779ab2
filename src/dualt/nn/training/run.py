"""One training between two epochs: its state, its records, its checkpoint; trained alone or as one of many."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dualt.errors import InputError
from dualt.nn.training.checkpoint import State
from dualt.nn.training.history import EpochRecord, History
from dualt.nn.training.inputs import Part, TrainingData
from dualt.nn.training.method import Method
from dualt.nn.training.recipe import Machine, Recipe

_CHECKED_ROWS = 256


@dataclass(frozen=True)
class Trained:
    """Networks with the weights that the recipe reports, and what happened on the way."""

    networks: Sequence[nn.Module]
    method: Method
    history: History
    recipe: Recipe

    @property
    def test_accuracy(self) -> float | None:
        """Accuracy on the clean test part, as the recipe reports it."""
        return self.history.test_accuracy(self.recipe.report)


@dataclass(frozen=True)
class Replica:
    """What a run starts with: networks and method (changed in place), data, seed, and a file to resume from.

    `n_epochs`: stop after so many, though the schedule of the recipe goes on.
    """

    networks: Sequence[nn.Module]
    method: Method
    data: TrainingData
    random_state: int = 0
    checkpoint: str | Path | None = None
    n_epochs: int | None = None


class Run:
    """A training in progress."""

    def __init__(self, start: Replica, recipe: Recipe, machine: Machine, *, resume: bool) -> None:
        networks, method, data = start.networks, start.method, start.data
        if len(networks) != method.n_networks:
            raise InputError(f"Expected {method.n_networks} networks for this method, got {len(networks)}.")
        self.networks, self.method, self.data, self.recipe = networks, method, data, recipe
        self.random_state, self.path = start.random_state, None if start.checkpoint is None else Path(start.checkpoint)
        method.to(machine.torch_device)
        for network in networks:
            network.to(machine.torch_device).train()
        self.parameters = [*(p for network in networks for p in network.parameters()), *method.parameters()]
        self.optimizer = recipe.make_optimizer(self.parameters)
        self._state = State(networks, method, self.optimizer, History(), {})
        self._n_epochs = start.n_epochs or recipe.epochs
        self._settings = {
            **recipe.to_dict(), "random_state": start.random_state, "precision": machine.precision,
            **({"n_epochs": start.n_epochs} if start.n_epochs else {}), **_identity(method, data.train),
        }  # fmt: skip
        if resume and self.path is not None and self.path.exists():
            self._state.resume(self.path, self._settings)

    @property
    def history(self) -> History:
        """The epochs so far."""
        return self._state.history

    @property
    def is_done(self) -> bool:
        """Whether all epochs are over, or patience is."""
        history, patience = self.history, self.recipe.patience
        if patience is not None and len(history) and len(history) - 1 - history.best_epoch >= patience:
            return True
        return len(history) >= self._n_epochs

    def step(self, losses: Tensor) -> None:
        """Change the parameters by one step of the optimizer."""
        # What zero_grad does, without its bookkeeping: a hundredth of a step of a small network.
        for parameter in self.parameters:
            parameter.grad = None
        losses.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def end_epoch(
        self, loss: float, validation: Sequence[float] | None, test: Sequence[float] | None, seconds: float
    ) -> EpochRecord:
        """Record an epoch with the accuracy and loss on each part, and keep the weights if they are the best."""
        epoch = len(self.history)
        hits, misfit = (None, None) if validation is None else validation
        rate, tested = self.recipe.learning_rate_at(epoch), None if test is None else test[0]
        self.history.records.append(EpochRecord(epoch, rate, loss, hits, misfit, tested, seconds))
        if self.history.best_epoch == epoch:
            self._state.keep_best()
        return self.history.records[-1]

    def save(self) -> None:
        """Write the checkpoint, if one is asked for."""
        if self.path is not None:
            self._state.save(self.path, self._settings)

    def result(self) -> Trained:
        """Return the networks with the weights that the recipe reports."""
        if self.recipe.report == "best-validation":
            self._state.restore_best()
        return Trained(self.networks, self.method, self.history, self.recipe)


def _identity(method: Method, part: Part) -> dict[str, Any]:
    """Return what a checkpoint must have in common with a run that resumes it, beside recipe and seed."""
    # Rounded: the same estimate differs in its last digits from one machine to another.
    matrix = np.zeros(0) if method.transition is None else method.transition.cpu().numpy().round(3)
    return {
        **({"options": dict(method.options)} if method.options else {}),
        "method": type(method).__name__,
        "transition_checksum": zlib.crc32(matrix.tobytes()),
        "labels_checksum": zlib.crc32(part.labels.cpu().numpy().tobytes()),
        "features_checksum": _features_checksum(part),
    }


def _features_checksum(part: Part) -> int:
    """Return a checksum of rows spread evenly: standardised by all rows, they change with any of them."""
    rows = torch.linspace(0, len(part.labels) - 1, min(len(part.labels), _CHECKED_ROWS)).long()
    values = part.inputs.take(rows).float().cpu().mul(1e3).round()
    return zlib.crc32(values.numpy().tobytes())
