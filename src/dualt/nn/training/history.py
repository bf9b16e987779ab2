"""What happened in each epoch, and the accuracy that a recipe reports from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dualt.nn.training.recipe import Report

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
        """The epoch with the best validation accuracy, the smaller loss deciding ties; the last without validation.

        On a few hundred noisy labels many epochs hit equally many, and the first of them has hardly learned.
        """
        last = self.records[-1]
        if last.validation_accuracy is None:
            return last.epoch
        return max(self.records, key=lambda r: (r.validation_accuracy, -(r.validation_loss or 0.0))).epoch

    @property
    def learned_epoch(self) -> int:
        """The epoch from which on a network has learned: best in validation accuracy and in loss, whichever is later.

        Of few labels, an early epoch may hit the most by luck; and the loss is least before a network is sure.
        """
        last = self.records[-1]
        if last.validation_loss is None:
            return last.epoch
        return max(self.best_epoch, min(self.records, key=lambda r: r.validation_loss or 0.0).epoch)

    @property
    def seconds(self) -> float:
        """What all epochs took, those before a resume included."""
        return sum(record.seconds for record in self.records)

    def test_accuracy(self, report: Report) -> float | None:
        """Return the test accuracy as a recipe reports it, or `None` without clean test labels."""
        chosen = self.records[-_LAST:] if report == "last-ten" else [self.records[self.best_epoch]]
        known = [record.test_accuracy for record in chosen if record.test_accuracy is not None]
        return float(np.mean(known)) if known else None

    def to_dict(self) -> dict[str, list[Any]]:
        """Return one list per column, an entry an epoch."""
        return {name: [getattr(each, name) for each in self.records] for name in EpochRecord.__dataclass_fields__}

    @classmethod
    def from_dict(cls, columns: dict[str, list[Any]]) -> History:
        """Return the history that `to_dict` wrote; of anything else, raise `ValueError`."""
        if not isinstance(columns, dict) or {*columns} != {*EpochRecord.__dataclass_fields__}:
            raise ValueError("its history has not got the columns of one")
        for name, column in columns.items():
            known = [value for value in column if value is not None] if isinstance(column, list) else [None]
            if any(type(value) not in (int, float) for value in known) or 0 < len(known) < len(column):
                raise ValueError(f"the column {name} of its history is not one of numbers")
        rows = zip(*columns.values(), strict=True)
        history = cls([EpochRecord(**dict(zip(columns, row, strict=True))) for row in rows])
        if not history.records or [record.epoch for record in history.records] != [*range(len(history))]:
            raise ValueError("its history does not count the epochs from 0 on")
        return history
