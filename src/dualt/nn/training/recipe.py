"""How to train: optimizer, schedule and report (the recipe), and on what (the machine)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from dualt.errors import InputError
from dualt.validation import check_fraction

Report: TypeAlias = Literal["best-validation", "last-ten"]


@dataclass(frozen=True)
class Recipe:
    """Optimizer, schedule and the accuracy to report.

    Attributes
    ----------
    epochs
    optimizer
        `"sgd"` or `"adam"`.
    learning_rate, momentum, weight_decay, batch_size
    milestones
        Epochs from which on the learning rate is a tenth of what it was.
    linear_from
        Epoch from which on the learning rate falls linearly towards zero, and Adam's β1 is 0.1.
    report
        `"best-validation"`: the weights of the epoch with the best noisy validation accuracy, and the test
        accuracy of that epoch. `"last-ten"`: the last weights, and the mean over the last ten epochs.
    patience
        Stop after this many epochs without a better validation accuracy.
    """

    epochs: int
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = 0.01
    momentum: float = 0.0
    weight_decay: float = 1e-4
    batch_size: int = 128
    milestones: tuple[int, ...] = ()
    linear_from: int | None = None
    report: Report = "best-validation"
    patience: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", *(("patience",) if self.patience is not None else ())):
            if getattr(self, name) < 1:
                raise InputError(f"Expected {name} of at least 1, got {getattr(self, name)}.")
        if self.optimizer not in ("sgd", "adam"):
            raise InputError(f"Expected optimizer 'sgd' or 'adam', got {self.optimizer!r}.")
        if not self.learning_rate > 0:
            raise InputError(f"Expected a learning_rate above 0, got {self.learning_rate}.")
        if self.report not in ("best-validation", "last-ten"):
            raise InputError(f"Expected report 'best-validation' or 'last-ten', got {self.report!r}.")
        check_fraction(self.momentum, "momentum", inclusive=True)

    def learning_rate_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        rate = self.learning_rate * 0.1 ** sum(epoch >= milestone for milestone in self.milestones)
        if self.linear_from is not None and epoch >= self.linear_from:
            rate *= (self.epochs - epoch) / (self.epochs - self.linear_from)
        return rate

    def beta1_at(self, epoch: int) -> float:
        """Return Adam's β1 of an epoch."""
        return 0.1 if self.linear_from is not None and epoch >= self.linear_from else 0.9

    def changed(self, epochs: int | None = None, **changes: Any) -> Recipe:
        """Return the recipe with changes; another number of `epochs` stretches the schedule with it."""
        given = {name: value for name, value in changes.items() if value is not None}
        if epochs is not None and epochs != self.epochs:
            stretch = epochs / self.epochs
            given.setdefault("milestones", tuple(round(stretch * epoch) for epoch in self.milestones))
            if self.linear_from is not None:
                given.setdefault("linear_from", min(round(stretch * self.linear_from), epochs - 1))
            given["epochs"] = epochs
        return replace(self, **given)

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimizer; `set_schedule` gives it the rates of an epoch."""
        options: dict[str, Any] = {"lr": self.learning_rate, "weight_decay": self.weight_decay, "fused": True}
        if self.optimizer == "adam":
            return torch.optim.Adam(parameters, **options)
        return torch.optim.SGD(parameters, momentum=self.momentum, **options)

    def set_schedule(self, optimizer: torch.optim.Optimizer, epoch: int) -> None:
        """Give the optimizer the rates of `epoch`: a function of the epoch alone, so nothing to resume."""
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate_at(epoch)
            if "betas" in group:
                group["betas"] = (self.beta1_at(epoch), group["betas"][1])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        return {**asdict(self), "milestones": list(self.milestones)}


@dataclass(frozen=True)
class Machine:
    """What to train on.

    Attributes
    ----------
    device
        `"auto"` takes a GPU if there is one; else what torch calls a device.
    precision
        `"float32"`, or `"bf16"` for mixed precision.
    channels_last
        Memory layout that convolutions like better on some processors.
    threads
        Number of CPU threads; `None` leaves torch's own setting.
    """

    device: str = "auto"
    precision: Literal["float32", "bf16"] = "float32"
    channels_last: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "bf16"):
            raise InputError(f"Expected precision 'float32' or 'bf16', got {self.precision!r}.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"Expected at least one thread, got {self.threads}.")

    @property
    def torch_device(self) -> torch.device:
        """The device, chosen if `"auto"`, checked if named."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"Expected a device of this machine, got {self.device!r}: {reason}") from None
        return device
