"""Many small runs at once: K independent trainings of one shape as one batched training.

A step of a small network costs mostly the calls, not the arithmetic, so that K of them in one batched
product cost little more than one. Every replica has its own weights, data, batches, dropout, matrix and optimizer,
drawn from the same streams as in a run of its own, and comes out the same up to floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from time import perf_counter

import torch
from torch import Tensor

from dualt.errors import InputError
from dualt.nn.training.history import EpochRecord
from dualt.nn.training.loop import batch_order, limited_threads, run_epoch
from dualt.nn.training.prediction import evaluating, mean_scores
from dualt.nn.training.recipe import Machine, Recipe
from dualt.nn.training.run import Replica, Run, Trained
from dualt.nn.training.stacking import (
    StackedGenerator,
    is_perceptron,
    release,
    run_stacked,
    stack_modules,
    stack_parts,
)
from dualt.rng import stream, stream_seed

__all__ = ["Replica", "train_replicated"]

OnReplicaEpoch = Callable[[int, EpochRecord], None]


def train_replicated(
    replicas: Sequence[Replica],
    recipe: Recipe,
    *,
    n_jobs: int | None = None,
    resume: bool = False,
    checkpoint_every: int = 10,
    on_epoch: OnReplicaEpoch | None = None,
) -> list[Trained]:
    """Train every replica as `train` would, on the CPU, and return what it would.

    Parameters
    ----------
    replicas
        Of one method with the same options, whose networks are perceptrons of one shape, as `mlp` builds them, and
        whose data parts are of one size. Parts that are subsets of one part share its samples.
    recipe
        Of all of them.
    n_jobs
        Number of threads; `None` leaves torch's own setting.
    resume
        Continue from the checkpoints that exist: finished replicas stay as they are, those behind catch up first.
        They are the files of `train`, which can continue them too.
    checkpoint_every
        Epochs between two checkpoints of a replica.
    on_epoch
        Called with the number of the replica and the record of each epoch, whose seconds are its share.

    Raises
    ------
    TrainingError
        If the loss of a replica is not finite.
    """
    _check(replicas)
    machine = Machine("cpu", n_jobs=n_jobs)
    runs = [Run(replica, recipe, machine, resume=resume) for replica in replicas]
    number, stack = {run: k for k, run in enumerate(runs)}, None
    with limited_threads(n_jobs):
        while waiting := [run for run in runs if not run.is_done]:
            epoch = min(len(run.history) for run in waiting)
            group = [run for run in waiting if len(run.history) == epoch]
            if stack is None or stack.runs != group:
                stack = Stack(group, recipe)
            for run, record in zip(group, stack.run_epoch(epoch), strict=True):
                if run.is_done or (epoch + 1) % checkpoint_every == 0:
                    run.save()
                if on_epoch is not None:
                    on_epoch(number[run], record)
    for run in runs:
        for module in (*run.networks, run.method):
            release(module)
    return [run.result() for run in runs]


def _check(replicas: Sequence[Replica]) -> None:
    first = replicas[0].method
    if any((type(r.method), r.method.options) != (type(first), first.options) for r in replicas):
        raise InputError("Expected replicas of one method with the same options.")
    if not first.replicable:
        raise InputError(f"Expected a method whose runs can be batched, got {type(first).__name__}: train one by one.")
    kinds = [[type(module) for module in network.children()] for r in replicas for network in r.networks]
    if not all(is_perceptron(network) for r in replicas for network in r.networks) or any(k != kinds[0] for k in kinds):
        raise InputError("Expected multi-layer perceptrons of one shape, as dualt.nn.networks builds them.")


class Stack:
    """Runs that are at the same epoch, as one trainee."""

    def __init__(self, runs: Sequence[Run], recipe: Recipe) -> None:
        self.runs, self.recipe = runs, recipe
        self.networks = [stack_modules(same) for same in zip(*(run.networks for run in runs), strict=True)]
        self.method = stack_modules([run.method for run in runs])
        modules = (*self.networks, self.method)
        self._parameters = list(chain.from_iterable(module.parameters() for module in modules))
        self._own = list(zip(*(run.parameters for run in runs), strict=True))
        # One optimizer steps for all: on whole stacks, or on each run's rows where a step may pass a run by.
        self.optimizer = recipe.make_optimizer(
            chain.from_iterable(self._own) if self.method.skips else self._parameters
        )
        self._take_over_state()
        self._parts = [stack_parts([run.data[number] for run in runs]) for number in range(3)]

    def _take_over_state(self) -> None:
        """Give the optimizer what those of the runs remember."""
        for stacked, own in zip(self._parameters, self._own, strict=True):
            states = [run.optimizer.state[one] for run, one in zip(self.runs, own, strict=True)]
            if self.method.skips:
                self.optimizer.state.update(zip(own, states, strict=True))
            elif states[0]:
                same = {key: [state[key] for state in states] for key in states[0]}
                self.optimizer.state[stacked] = {
                    key: torch.stack(values) if values[0].ndim else values[0].clone() for key, values in same.items()
                }

    def _hand_back_state(self) -> None:
        """Give the optimizers of the runs their rows of it: a checkpoint is that of a run of its own."""
        for stacked, own in zip([] if self.method.skips else self._parameters, self._own, strict=False):
            known = {key: value for key, value in self.optimizer.state[stacked].items() if value is not None}
            for k, (run, one) in enumerate(zip(self.runs, own, strict=True)):
                run.optimizer.state[one] = {key: v[k] if v.ndim else v.clone() for key, v in known.items()}

    def step(self, losses: Tensor) -> None:
        """Change the parameters of every run but those that have nothing to learn."""
        for parameter in self._parameters:
            parameter.grad = None
        # Summed: no replica's gradient depends on another's loss.
        losses.sum().backward()  # type: ignore[no-untyped-call]
        if self.method.skips:
            idle = (losses == 0).tolist()
            for parameter, own in zip(self._parameters, self._own, strict=True):
                rows = [None] * len(own) if parameter.grad is None else parameter.grad.unbind()
                for one, row, skip in zip(own, rows, idle, strict=True):
                    one.grad = None if skip else row
        self.optimizer.step()

    def run_epoch(self, epoch: int) -> list[EpochRecord]:
        """Train and evaluate every run for one epoch."""
        began, (train, validation, test) = perf_counter(), self._parts
        if train is None:
            raise InputError("Expected a training part for every replica.")
        seeds = [run.random_state for run in self.runs]
        orders = torch.stack([batch_order(run.data.train, run.random_state, epoch) for run in self.runs])
        rng = StackedGenerator([stream(seed, f"method/{epoch}") for seed in seeds])
        generators = [torch.Generator().manual_seed(stream_seed(seed, f"dropout/{epoch}")) for seed in seeds]
        networks = [partial(run_stacked, network, generators=generators) for network in self.networks]
        losses = run_epoch(self, networks, train, self.recipe, epoch, orders, rng).tolist()
        self._hand_back_state()
        with evaluating(self.networks):
            scores = [mean_scores(networks, validation, self.method.to_noisy), mean_scores(networks, test)]
        seconds = (perf_counter() - began) / len(self.runs)
        rows = [[None] * len(self.runs) if each is None else each.T.tolist() for each in scores]
        return [
            run.end_epoch(loss, own, tested, seconds)
            for run, loss, own, tested in zip(self.runs, losses, *rows, strict=True)
        ]
