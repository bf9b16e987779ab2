"""The training loop, from top to bottom, and the record of its epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from functools import partial
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from dualt.errors import InputError, TrainingError
from dualt.nn.distributed import ShardedNetwork, process_rank
from dualt.nn.methods.base import Batch, Method, Networks
from dualt.nn.networks import evaluating, mean_scores, seeded
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Augment, Part, TrainingData
from dualt.nn.storage import load_checkpoint, save_checkpoint
from dualt.rng import stream, stream_seed


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


@dataclass(frozen=True)
class Trained:
    """Networks with the weights that the recipe reports, and the records of all epochs."""

    networks: Sequence[nn.Module]
    method: Method
    recipe: Recipe
    records: list[EpochRecord] = field(default_factory=list)

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

    @property
    def curves(self) -> dict[str, list[Any]]:
        """One list per column of the records, with an entry for each epoch."""
        return {column.name: [getattr(each, column.name) for each in self.records] for column in fields(EpochRecord)}

    @property
    def test_accuracy(self) -> float | None:
        """Accuracy on the clean test part, as the recipe reports it; `None` without clean test labels."""
        chosen = self.records[-10:] if self.recipe.report == "last-ten" else [self.records[self.best_epoch]]
        known = [record.test_accuracy for record in chosen if record.test_accuracy is not None]
        return float(np.mean(known)) if known else None

    @property
    def learned_transition(self) -> NDArray[np.float64] | None:
        """The matrix that the method has learned along with its networks; `None` if it learns none."""
        learned = self.method.learned_transition
        return None if learned is None else learned.cpu().numpy().astype(np.float64)


def train(
    networks: Sequence[nn.Module],
    method: Method,
    data: TrainingData,
    recipe: Recipe,
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
    augment: Augment | None = None,
    checkpoint: str | Path | None = None,
    n_epochs: int | None = None,
    resume: bool = False,
    on_epoch: Callable[[EpochRecord], None] | None = None,
) -> Trained:
    """Train `networks` in place with `method`, and return them with the weights that `recipe` reports.

    They are moved to the device of the data. `random_state` seeds batches, dropout, augmentation and the method's own
    draws; each epoch has its own streams. The file `checkpoint` is written after every epoch, and continued from with
    `resume`, if it exists. `n_epochs` stops before the end of the recipe's schedule. A loss that is not finite raises a
    TrainingError; the checkpoint of the epoch before is kept.
    """
    if len(networks) != method.n_networks:
        raise InputError(f"Expected {method.n_networks} networks for this method, got {len(networks)}.")
    part, validation, rank = data.train, data.validation, process_rank()
    modules = nn.ModuleDict({"networks": nn.ModuleList(networks), "method": method})
    modules.to(part.labels.device).train()
    optimizer = recipe.make_optimizer(modules.parameters())
    trained, best = Trained(networks, method, recipe), dict[str, Tensor]()
    settings = {
        **recipe.to_dict(), "method": type(method).__name__, "random_state": random_state,
        "n_epochs": n_epochs, "n_samples": len(part.labels),
    }  # fmt: skip
    path = None if checkpoint is None else Path(checkpoint)
    if resume and path is not None and path.exists():
        best, curves = load_checkpoint(path, modules, optimizer, settings)
        trained.records.extend(EpochRecord(*row) for row in zip(*curves.values(), strict=True))

    calls: Networks = networks if rank is None else [ShardedNetwork(network) for network in networks]
    at_rest, is_first = partial(evaluating, networks), rank in (None, 0)
    with threadpool_limits(n_jobs):
        for epoch in range(len(trained.records), n_epochs or recipe.epochs):
            began = perf_counter()
            with seeded(stream_seed(random_state, f"dropout/{epoch}") + (rank or 0)):
                loss = _run_epoch(epoch, calls, method, optimizer, part, recipe, random_state, augment, at_rest)
            with at_rest():
                accuracy, misfit = mean_scores(calls, validation, method.to_noisy)
                tested, _ = mean_scores(calls, data.test)
            rate, seconds = recipe.learning_rate_at(epoch), perf_counter() - began
            trained.records.append(EpochRecord(epoch, rate, loss, accuracy, misfit, tested, seconds))
            if trained.best_epoch == epoch:
                best = {name: value.detach().clone() for name, value in modules.state_dict().items()}
            if is_first and path is not None:
                save_checkpoint(path, modules, optimizer, best, settings, trained.curves)
            if is_first and on_epoch is not None:
                on_epoch(trained.records[-1])

    if recipe.report == "best-validation":
        modules.load_state_dict(best)
    return trained


def _run_epoch(
    epoch: int,
    networks: Networks,
    method: Method,
    optimizer: torch.optim.Optimizer,
    part: Part,
    recipe: Recipe,
    random_state: int,
    augment: Augment | None,
    at_rest: Callable[[], AbstractContextManager[None]],
) -> float:
    """Take one optimizer step per batch, and return the mean loss of the networks."""
    rng, ramp = stream(random_state, f"method/{epoch}"), recipe.ramp_at(epoch)
    order = torch.from_numpy(stream(random_state, f"batches/{epoch}").permutation(len(part.labels)))
    batches = list(torch.split(order.to(part.labels.device), recipe.batch_size))
    if len(batches) > 1 and len(batches[-1]) == 1:  # batch norm needs two samples
        batches[-2:] = [torch.cat(batches[-2:])]
    with at_rest():
        method.begin_epoch(networks, part, ramp)
    total, n_steps = 0.0, 0
    for number, rows in enumerate(batches):
        recipe.set_schedule(optimizer, epoch, number, len(batches))
        plain = part.inputs.take(rows)
        look_again = None if augment is None else partial(augment, plain, rng)
        x = plain if look_again is None else look_again()
        batch = Batch(x, part.labels[rows], rows, rng, at_rest, ramp, look_again)
        losses = [loss for loss in method(networks, batch) if loss is not None]
        if not losses:
            continue
        # One sum serves all networks: no network's loss depends on another's parameters.
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        value = loss.item()
        if not isfinite(value):
            raise TrainingError(
                f"The loss is {value} in epoch {epoch}, batch {number}. The last checkpoint, if there is one, is"
                " intact. Try a smaller learning rate."
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, n_steps = total + value / len(losses), n_steps + 1
    return total / max(n_steps, 1)
