"""The training loop, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from dualt.errors import InputError, TrainingError
from dualt.nn.checkpoint import load_checkpoint, save_checkpoint
from dualt.nn.distributed import current_world, shard
from dualt.nn.history import EpochRecord, History, Trained
from dualt.nn.methods.base import Batch, Method
from dualt.nn.networks import seeded
from dualt.nn.prediction import Network, evaluating, mean_scores
from dualt.nn.recipe import Recipe
from dualt.nn.samples import Augment, Part, TrainingData
from dualt.rng import stream, stream_seed

Precision: TypeAlias = Literal["float32", "bf16"]
OnEpoch: TypeAlias = Callable[[EpochRecord], None]


def train(
    networks: Sequence[nn.Module],
    method: Method,
    data: TrainingData,
    recipe: Recipe,
    *,
    random_state: int = 0,
    precision: Precision = "float32",
    n_jobs: int | None = None,
    augment: Augment | None = None,
    checkpoint: str | Path | None = None,
    n_epochs: int | None = None,
    resume: bool = False,
    on_epoch: OnEpoch | None = None,
) -> Trained:
    """Train `networks` in place with `method`, and return them with the weights that `recipe` reports.

    A loss that is not finite raises a TrainingError; the checkpoint of the epoch before is kept.

    Parameters
    ----------
    networks
        As many as `method.n_networks`; they are moved to the device of the data.
    method, data, recipe
    random_state
        Seed of batches, dropout, augmentation and the method's own draws. Each epoch has its own streams.
    precision
        `"float32"`, or `"bf16"` for mixed precision.
    n_jobs
        Number of CPU threads; `None` leaves torch's setting.
    augment
        Applied to the samples of every training batch.
    checkpoint, resume
        File written after every epoch, and whether to continue from it if it exists.
    n_epochs
        Stop after this many epochs of the recipe's schedule.
    on_epoch
        Called with the record of every epoch.
    """
    if len(networks) != method.n_networks:
        raise InputError(f"Expected {method.n_networks} networks for this method, got {len(networks)}.")
    modules = nn.ModuleDict({"networks": nn.ModuleList(networks), "method": method})
    modules.to(data.train.labels.device).train()
    optimizer = recipe.make_optimizer(modules.parameters())
    history, best = History(), dict[str, Tensor]()
    settings = {
        **recipe.to_dict(), "method": type(method).__name__, "options": dict(method.options), "precision": precision,
        "random_state": random_state, "n_epochs": n_epochs, "n_samples": len(data.train.labels),
    }  # fmt: skip
    path = None if checkpoint is None else Path(checkpoint)
    if resume and path is not None and path.exists():
        best, history = load_checkpoint(path, modules, optimizer, settings)

    world = current_world()
    calls = [_with_precision(network, precision) for network in shard(networks, world)]
    at_rest = partial(evaluating, networks)
    with limited_threads(n_jobs):
        while len(history) < (n_epochs or recipe.epochs):
            if recipe.patience and len(history) and len(history) - 1 - history.best_epoch >= recipe.patience:
                break
            epoch, began = len(history), perf_counter()
            with seeded(stream_seed(random_state, f"dropout/{epoch}") + world.rank):
                loss = _run_epoch(epoch, calls, method, optimizer, data.train, recipe, random_state, augment, at_rest)
            with at_rest():
                accuracy, misfit = mean_scores(calls, data.validation, method.to_noisy)
                tested, _ = mean_scores(calls, data.test)
            rate, seconds = recipe.learning_rate_at(epoch), perf_counter() - began
            record = EpochRecord(epoch, rate, loss, accuracy, misfit, tested, seconds)
            history.records.append(record)
            if history.best_epoch == epoch:
                best = {name: value.detach().clone() for name, value in modules.state_dict().items()}
            if world.is_main:
                if path is not None:
                    save_checkpoint(path, modules, optimizer, best, history, settings)
                if on_epoch is not None:
                    on_epoch(record)

    if recipe.report == "best-validation":
        modules.load_state_dict(best)
    return Trained(networks, method, history, recipe)


def _run_epoch(
    epoch: int,
    networks: Sequence[Network],
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
    order = order.to(part.labels.device)
    with at_rest():
        method.begin_epoch(networks, part, ramp)
    total, n_steps = 0.0, 0
    batches = batch_limits(len(part.labels), recipe.batch_size)
    for number, (start, stop) in enumerate(batches):
        recipe.set_schedule(optimizer, epoch, number, len(batches))
        rows = order[start:stop]
        plain = part.inputs.take(rows)
        look_again = None if augment is None else partial(augment, plain, rng)
        x = plain if look_again is None else look_again()
        batch = Batch(x, part.labels[rows], epoch, rng, ramp, rows, look_again, at_rest)
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


def batch_limits(total: int, batch_size: int) -> list[tuple[int, int]]:
    """Return (start, stop) of every batch; a single sample left over joins the last, since batch norm needs two.

    Examples
    --------
    >>> batch_limits(10, 4), batch_limits(9, 4)
    ([(0, 4), (4, 8), (8, 10)], [(0, 4), (4, 9)])
    """
    starts = list(range(0, total, batch_size))
    if len(starts) > 1 and total - starts[-1] == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], total], strict=True))


def _with_precision(network: nn.Module, precision: Precision) -> Network:
    """Return the network itself, or wrapped for mixed precision."""
    if precision == "float32":
        return network

    def call(x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            logits: Any = network(x)
        return logits.float()  # type: ignore[no-any-return]

    return call


@contextmanager
def limited_threads(number: int | None) -> Iterator[None]:
    """Let torch use this many threads within the block; `None` leaves its setting."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
