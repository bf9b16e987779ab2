"""The training loop, from top to bottom."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dualt.errors import InputError, TrainingError
from dualt.nn.networks import seeded
from dualt.nn.training.checkpoint import State
from dualt.nn.training.distributed import current_world, shard
from dualt.nn.training.history import EpochRecord, History
from dualt.nn.training.inputs import Part, TrainingData
from dualt.nn.training.method import Batch, Method, Network
from dualt.nn.training.prediction import evaluate, evaluating
from dualt.nn.training.recipe import Machine, Recipe
from dualt.rng import stream, stream_seed

Augment = Callable[[Tensor, np.random.Generator], Tensor]
OnEpoch = Callable[[EpochRecord], None]

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
    resume
        Continue from `checkpoint` if it exists.
    on_epoch
        Called with the record of every epoch.

    Raises
    ------
    TrainingError
        If a loss is not finite. The checkpoint of the epoch before is kept.
    """
    if len(networks) != method.n_networks:
        raise InputError(f"Expected {method.n_networks} networks for this method, got {len(networks)}.")
    machine, world, path = machine or Machine(), current_world(), None if checkpoint is None else Path(checkpoint)
    method.to(machine.torch_device)
    for network in networks:
        network.to(machine.torch_device, memory_format=_layout(machine)).train()  # type: ignore[call-overload]
    callables = [_runner(network, machine) for network in shard(networks, world)]
    learned = [*(p for network in networks for p in network.parameters()), *method.parameters()]
    state = State(networks, method, recipe.make_optimizer(learned), History(), {})
    settings = {
        **recipe.to_dict(), "random_state": random_state, "precision": machine.precision,
        **_identity(method, data.train),
    }  # fmt: skip
    if resume and path is not None and path.exists():
        state.resume(path, settings)

    with limited_threads(machine.n_jobs):
        for epoch in range(len(state.history), recipe.epochs):
            if _out_of_patience(state.history, recipe.patience):
                break
            began = perf_counter()
            with evaluating(networks):
                method.begin_epoch(callables, data.train, recipe.ramp_at(epoch))
            with seeded(stream_seed(random_state, f"dropout/{epoch}")):
                loss = _run_epoch(
                    callables, method, data.train, recipe, state.optimizer, random_state, epoch, augment,
                    partial(evaluating, networks),
                )  # fmt: skip
            with evaluating(networks):
                hits, misfit = _mean_score(callables, data.validation, method.to_noisy)
                test, _ = _mean_score(callables, data.test, None)
            rate, seconds = recipe.learning_rate_at(epoch), perf_counter() - began
            record = EpochRecord(epoch, rate, loss, hits, misfit, test, seconds)
            state.history.records.append(record)
            if state.history.best_epoch == epoch:
                state.keep_best()
            if path is not None and world.is_main:
                state.save(path, settings)
            if on_epoch is not None and world.is_main:
                on_epoch(record)

    if recipe.report == "best-validation":
        state.restore_best()
    return Trained(networks, method, state.history, recipe)


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


def _run_epoch(
    networks: Sequence[Network],
    method: Method,
    part: Part,
    recipe: Recipe,
    optimizer: torch.optim.Optimizer,
    seed: int,
    epoch: int,
    augment: Augment | None,
    at_rest: Callable[[], AbstractContextManager[None]],
) -> float:
    """Take one step per batch, and return the mean loss of the networks."""
    rng, ramp = stream(seed, f"method/{epoch}"), recipe.ramp_at(epoch)
    order = torch.from_numpy(stream(seed, f"batches/{epoch}").permutation(len(part.labels))).to(part.labels.device)
    total, n_steps = 0.0, 0
    batches = batch_starts(len(order), recipe.batch_size)
    for number, (start, stop) in enumerate(batches):
        recipe.set_schedule(optimizer, epoch, number, len(batches))
        index = order[start:stop]
        plain = part.inputs.take(index)
        look_again = None if augment is None else partial(augment, plain, rng)
        x = plain if look_again is None else look_again()
        batch = Batch(x, part.labels.index_select(0, index), epoch, rng, ramp, index, look_again, at_rest)
        losses: list[Tensor] = [loss for loss in method(networks, batch) if loss is not None]
        if not losses:
            continue
        # One sum serves all networks: none of their losses depends on another's parameters.
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        value = loss.item() / len(losses)
        if not math.isfinite(value):
            raise TrainingError(
                f"The loss is {value} in epoch {epoch}, batch {number}: training cannot go on. The checkpoint of"
                " the epoch before, if one was asked for, is whole. Try a smaller learning rate."
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total, n_steps = total + value, n_steps + 1
    return total / max(n_steps, 1)


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


def _mean_score(
    networks: Sequence[Network], part: Part | None, through: Callable[[Tensor], Tensor] | None
) -> tuple[float, float] | tuple[None, None]:
    """Return accuracy and loss, each the mean over networks."""
    if part is None:
        return None, None
    scores = [evaluate(network, part, through) for network in networks]
    return float(np.mean([s.accuracy for s in scores])), float(np.mean([s.loss for s in scores]))


def _out_of_patience(history: History, patience: int | None) -> bool:
    return patience is not None and len(history) > 0 and len(history) - 1 - history.best_epoch >= patience


def _layout(machine: Machine) -> torch.memory_format:
    return torch.channels_last if machine.channels_last else torch.preserve_format


def _runner(network: nn.Module, machine: Machine) -> Network:
    """Return the network itself, or wrapped for mixed precision or another memory layout."""
    if machine.precision == "float32" and not machine.channels_last:
        return network

    def run(x: Tensor) -> Tensor:
        if machine.channels_last and x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=machine.precision == "bf16"):
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
