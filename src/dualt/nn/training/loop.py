"""The training loop, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dualt.errors import TrainingError
from dualt.nn.networks import seeded
from dualt.nn.training.distributed import current_world, shard
from dualt.nn.training.history import EpochRecord
from dualt.nn.training.inputs import Part, TrainingData
from dualt.nn.training.method import Batch, Method, Network
from dualt.nn.training.prediction import evaluating, mean_scores
from dualt.nn.training.recipe import Machine, Recipe
from dualt.nn.training.run import Replica, Run, Trained
from dualt.rng import stream, stream_seed

Augment = Callable[[Tensor, np.random.Generator], Tensor]
OnEpoch = Callable[[EpochRecord], None]


class Trainee(Protocol):
    """Networks, method and optimizer that learn together: one run, or many as one."""

    method: Method
    optimizer: torch.optim.Optimizer

    def step(self, losses: Tensor) -> None:
        """Change the parameters."""


def train(
    networks: Sequence[nn.Module],
    method: Method,
    data: TrainingData,
    recipe: Recipe,
    *,
    random_state: int = 0,
    machine: Machine | None = None,
    augment: Augment | None = None,
    checkpoint: str | Path | None = None,
    n_epochs: int | None = None,
    resume: bool = False,
    on_epoch: OnEpoch | None = None,
) -> Trained:
    """Train `networks` in place with `method`, and return them with the weights that `recipe` reports.

    Parameters
    ----------
    networks
        As many as `method.n_networks`.
    method
        A batch in, one loss per network out.
    data
        Parts on the machine's device.
    recipe
        Optimizer, schedule, what to report.
    random_state
        Seed of batches, dropout, augmentation and the method's own draws. Each epoch has its own streams.
    machine
    augment
        Applied to the samples of every training batch.
    checkpoint
        File written after every epoch.
    n_epochs
        Stop after so many, though the schedule of `recipe` goes on.
    resume
        Continue from `checkpoint` if it exists.
    on_epoch
        Called with the record of every epoch.

    Raises
    ------
    TrainingError
        If a loss is not finite. The checkpoint of the epoch before is kept.
    """
    machine, world = machine or Machine(), current_world()
    run = Run(Replica(networks, method, data, random_state, checkpoint, n_epochs), recipe, machine, resume=resume)
    callables = [_runner(network, machine) for network in shard(networks, world)]
    at_rest = partial(evaluating, networks)
    with limited_threads(machine.n_jobs):
        while not run.is_done:
            began, epoch = perf_counter(), len(run.history)
            rng, order = stream(random_state, f"method/{epoch}"), batch_order(data.train, random_state, epoch)
            with at_rest():
                method.begin_epoch(callables, data.train, recipe.ramp_at(epoch))
            with seeded(stream_seed(random_state, f"dropout/{epoch}")):
                loss = run_epoch(run, callables, data.train, recipe, epoch, order, rng, augment, at_rest)
            with at_rest():
                validation = mean_scores(callables, data.validation, method.to_noisy)
                test = mean_scores(callables, data.test)
            seconds = perf_counter() - began
            record = run.end_epoch(float(loss), _numbers(validation), _numbers(test), seconds)
            if world.is_main:
                run.save()
            if on_epoch is not None and world.is_main:
                on_epoch(record)
    return run.result()


def _numbers(scores: Tensor | None) -> list[float] | None:
    return None if scores is None else scores.tolist()


def batch_order(part: Part, seed: int, epoch: int) -> Tensor:
    """Return the order in which an epoch sees the samples."""
    order = stream(seed, f"batches/{epoch}").permutation(len(part.labels))
    return torch.from_numpy(order).to(part.labels.device)


def run_epoch(
    trainee: Trainee,
    networks: Sequence[Network],
    part: Part,
    recipe: Recipe,
    epoch: int,
    order: Tensor,
    rng: Any,
    augment: Augment | None = None,
    at_rest: Callable[[], AbstractContextManager[None]] | None = None,
) -> NDArray[np.float64]:
    """Take one step per batch, and return the mean loss of the networks.

    Many runs at once have an order (K, n) and mean losses (K,); one has an order (n,) and a number.
    """
    ramp = recipe.ramp_at(epoch)
    seen = [np.zeros(order.shape[:-1])]
    batches = batch_starts(order.shape[-1], recipe.batch_size)
    for number, (start, stop) in enumerate(batches[: recipe.max_batches]):
        recipe.set_schedule(trainee.optimizer, epoch, number, len(batches))
        index = order[..., start:stop]
        plain = part.inputs.take(index)
        look_again = None if augment is None else partial(augment, plain, rng)
        x = plain if look_again is None else look_again()
        batch = Batch(x, part.labels.gather(-1, index), epoch, rng, ramp, index, look_again, at_rest)
        losses: list[Tensor] = [loss for loss in trainee.method(networks, batch) if loss is not None]
        if not losses:
            continue
        # One sum serves all networks: none of their losses depends on another's parameters.
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum(0)
        values = np.asarray(loss.tolist()) / len(losses)
        if not isfinite(values.sum()):
            raise TrainingError(
                f"The loss{_found(values)} in epoch {epoch}, batch {number}: training cannot go on. The last"
                " checkpoint, if one was asked for, is whole. Try a smaller learning rate."
            )
        trainee.step(loss)
        seen.append(values)
    every = np.stack(seen)
    return np.asarray(every.sum(0) / np.maximum((every != 0).sum(0), 1))


def _found(values: NDArray[np.float64]) -> str:
    """Say which loss is not finite, and what it is."""
    strange = ~np.isfinite(values)
    return f"{f' of replica {strange.argmax()}' if values.ndim else ''} is {values[strange].flat[0]}"


def batch_starts(total: int, batch_size: int) -> list[tuple[int, int]]:
    """Return (start, stop) of every batch; a single sample left over joins the last, since batch norm needs two.

    Examples
    --------
    >>> batch_starts(10, 4), batch_starts(9, 4)
    ([(0, 4), (4, 8), (8, 10)], [(0, 4), (4, 9)])
    """
    starts = list(range(0, total, batch_size))
    if len(starts) > 1 and total - starts[-1] == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], total], strict=True))


def _runner(network: nn.Module, machine: Machine) -> Network:
    """Return the network itself, or wrapped for mixed precision."""
    if machine.precision == "float32":
        return network

    def run(x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            logits: Any = network(x)
        return logits.float()  # type: ignore[no-any-return]

    return run


@contextmanager
def limited_threads(number: int | None) -> Iterator[None]:
    """Let torch use so many threads within the block; `None` leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
