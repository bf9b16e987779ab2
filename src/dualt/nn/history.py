"""Records of the epochs of a training, and the accuracy that a recipe reports from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dualt.nn.methods.base import Method
from dualt.nn.recipe import Recipe, Report

_LAST = 10


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: means over networks; `None` where there is nothing to compare with."""

    epoch: int
    learning_rate: float
    loss: float
    validation_accuracy: float | None
    validation_loss: float | None
    test_accuracy: float | None
    seconds: float


# Called with the name of a stage and the record of an epoch.
OnStage: TypeAlias = Callable[[str, EpochRecord], None]


@dataclass
class History:
    """The records of all epochs so far."""

    records: list[EpochRecord] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def best_epoch(self) -> int:
        """The epoch with the best validation accuracy, ties broken by the loss; the last epoch without validation.

        On a few hundred noisy labels many epochs have the same accuracy, and the first of them has hardly learned.
        """
        last = self.records[-1]
        if last.validation_accuracy is None:
            return last.epoch
        return max(self.records, key=lambda r: (r.validation_accuracy, -(r.validation_loss or 0.0))).epoch

    @property
    def learned_epoch(self) -> int:
        """The later of the epochs with the best validation accuracy and the smallest validation loss.

        With few labels an early epoch may be the most accurate by chance, and the loss is smallest before a network
        becomes confident.
        """
        last = self.records[-1]
        if last.validation_loss is None:
            return last.epoch
        return max(self.best_epoch, min(self.records, key=lambda r: r.validation_loss or 0.0).epoch)

    @property
    def seconds(self) -> float:
        """Time of all epochs, including those before a resume."""
        return sum(record.seconds for record in self.records)

    def test_accuracy(self, report: Report) -> float | None:
        """Return the test accuracy as a recipe reports it, or `None` without clean test labels."""
        chosen = self.records[-_LAST:] if report == "last-ten" else [self.records[self.best_epoch]]
        known = [record.test_accuracy for record in chosen if record.test_accuracy is not None]
        return float(np.mean(known)) if known else None

    def to_dict(self) -> dict[str, list[Any]]:
        """Return one list per column, with an entry for each epoch."""
        return {name: [getattr(each, name) for each in self.records] for name in EpochRecord.__dataclass_fields__}

    @classmethod
    def from_dict(cls, columns: Mapping[str, list[Any]]) -> History:
        """Return the history that `to_dict` wrote."""
        rows = zip(*(columns[name] for name in EpochRecord.__dataclass_fields__), strict=True)
        return cls([EpochRecord(*row) for row in rows])


@dataclass(frozen=True)
class Trained:
    """Networks with the weights that the recipe reports, and the history of their training."""

    networks: Sequence[nn.Module]
    method: Method
    history: History
    recipe: Recipe

    @property
    def test_accuracy(self) -> float | None:
        """Accuracy on the clean test part, as the recipe reports it."""
        return self.history.test_accuracy(self.recipe.report)

    @property
    def learned_transition(self) -> NDArray[np.float64] | None:
        """The matrix that the method has learned along with its networks; `None` if it learns none."""
        learned = self.method.learned_transition
        return None if learned is None else learned.cpu().numpy().astype(np.float64)
