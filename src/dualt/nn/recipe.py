"""How to train: optimizer, schedule, and which epoch to report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import nn

from dualt.errors import InputError
from dualt.validation import check_count, check_fraction

Report: TypeAlias = Literal["best-validation", "last-ten"]
Optimizer: TypeAlias = Literal["sgd", "adam"]
Schedule: TypeAlias = Literal["steps", "one-cycle"]
_CHOICES = {"optimizer": get_args(Optimizer), "schedule": get_args(Schedule), "report": get_args(Report)}

# Share of a one-cycle schedule in which the rate rises.
_WARM_UP = 0.2


@dataclass(frozen=True)
class Recipe:
    """Optimizer, schedule and the accuracy to report."""

    epochs: int
    optimizer: Optimizer = "sgd"
    learning_rate: float = 0.01
    momentum: float = 0.0
    weight_decay: float = 1e-4
    batch_size: int = 128
    # "steps": by epochs, as `milestones` and `linear_from` say. "one-cycle": by steps, the rate rises linearly to
    # `learning_rate` over the first fifth and falls to zero along a cosine.
    schedule: Schedule = "steps"
    # Epochs at which the learning rate is divided by ten.
    milestones: tuple[int, ...] = ()
    # Epoch after which the learning rate falls linearly to zero, with Adam's β1 at 0.1.
    linear_from: int | None = None
    # Epochs over which a method's own setting, such as its forget rate, rises from zero.
    ramp: int = 0
    # "best-validation": the weights of the epoch with the best noisy validation accuracy, and the test accuracy of that
    # epoch. "last-ten": the last weights, and the mean over the last ten epochs.
    report: Report = "best-validation"

    def __post_init__(self) -> None:
        check_count(self.epochs, "epochs", 1)
        check_count(self.batch_size, "batch_size", 1)
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(f"Expected {name} {' or '.join(map(repr, known))}, got {getattr(self, name)!r}.")
        rate, decay = (getattr(self, name) for name in ("learning_rate", "weight_decay"))
        if isinstance(rate, str) or not rate > 0:
            raise InputError(f"Expected a learning_rate above 0, got {rate!r}.")
        if isinstance(decay, str) or not decay >= 0:
            raise InputError(f"Expected a weight_decay of at least 0, got {decay!r}.")
        check_fraction(self.momentum, "momentum", inclusive=True)
        if any(milestone < 1 for milestone in self.milestones):
            raise InputError(f"Expected milestones of at least 1, got {self.milestones}.")

    def learning_rate_at(self, epoch: float) -> float:
        """Return the learning rate of an epoch, counted from 0; a fraction is a step within the epoch."""
        if self.schedule == "one-cycle":
            done = epoch / self.epochs
            if done < _WARM_UP:
                return self.learning_rate * (0.05 + 0.95 * done / _WARM_UP)
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))
        rate = self.learning_rate * 0.1 ** sum(epoch >= milestone for milestone in self.milestones)
        if self.linear_from is not None and epoch >= self.linear_from:
            rate *= (self.epochs - epoch) / (self.epochs - self.linear_from)
        return rate

    def ramp_at(self, epoch: int) -> float:
        """Return the ramp's value in an epoch: from 0 in the first to 1 at its end; 1 without a ramp."""
        return 1.0 if self.ramp < 2 else min(1.0, epoch / (self.ramp - 1))

    def changed(self, epochs: int | None = None, **changes: Any) -> Recipe:
        """Return the recipe with changes; another number of `epochs` stretches the schedule.

        The first epoch always has the full rate.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        if epochs is not None and epochs != self.epochs:
            stretch = epochs / self.epochs
            given = {
                "epochs": epochs,
                "milestones": tuple(max(1, round(stretch * milestone)) for milestone in self.milestones),
                "linear_from": None if self.linear_from is None else max(1, round(stretch * self.linear_from)),
                "ramp": max(2, round(stretch * self.ramp)) if self.ramp > 1 else self.ramp,
                **given,
            }
        return replace(self, **given)

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimizer; `set_schedule` sets its rates."""
        options: dict[str, Any] = {"lr": self.learning_rate, "weight_decay": self.weight_decay, "fused": True}
        if self.optimizer == "adam":
            return torch.optim.Adam(parameters, **options)
        return torch.optim.SGD(parameters, momentum=self.momentum, **options)

    def set_schedule(self, optimizer: torch.optim.Optimizer, epoch: int, step: int = 0, n_steps: int = 1) -> None:
        """Set the optimizer's rates for a step of `epoch`: a function of these alone, so there is no state to save."""
        if step and self.schedule == "steps":
            return
        rate = self.learning_rate_at(epoch + step / n_steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
            if "betas" in group and self.linear_from is not None:
                group["betas"] = (0.1 if epoch >= self.linear_from else 0.9, group["betas"][1])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        return {**asdict(self), "milestones": list(self.milestones)}
