"""Many small runs at once: K independent networks of one shape trained as one batched network.

A step of a small network costs mostly the calls, not the arithmetic, so that K of them in one batched
product cost little more than one. Every replica has its own weights, data, batches and dropout, drawn from
the same streams as in a run of its own, and comes out the same up to floating point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError, TrainingError
from dualt.nn.networks.dropout import Dropout, dropout_mask
from dualt.nn.training.history import EpochRecord, History
from dualt.nn.training.inputs import Part, TrainingData
from dualt.nn.training.loop import batch_starts
from dualt.nn.training.recipe import Recipe
from dualt.rng import stream, stream_seed


@dataclass(frozen=True)
class Replica:
    """One of the runs: its network (changed in place), data and seed, and what happened."""

    network: nn.Module
    data: TrainingData
    seed: int
    history: History = field(default_factory=History)


def train_replicated(replicas: Sequence[Replica], recipe: Recipe) -> None:
    """Train every replica's network with cross entropy, in place, and fill its history.

    Parameters
    ----------
    replicas
        Networks of one shape, as `mlp` builds them, and data parts of one size.
    recipe
        Of all of them. `patience` is not heeded: replicas go on together.
    """
    stack = StackedMLP([replica.network for replica in replicas])
    parts = [_stack_parts([replica.data[number] for replica in replicas]) for number in range(3)]
    train, validation, test = parts
    if train is None:
        raise InputError("Expected a training part for every replica.")
    optimizer = recipe.make_optimizer(stack.parameters())
    best = [value.clone() for value in stack.state()]
    for epoch in range(recipe.epochs):
        began = perf_counter()
        losses = _run_epoch(stack, train, recipe, optimizer, [replica.seed for replica in replicas], epoch)
        seconds = (perf_counter() - began) / len(replicas)
        scores = [_scores(stack, part) for part in (validation, test)]
        rate = recipe.learning_rate_at(epoch)
        for number, replica in enumerate(replicas):
            hits, misfit = (None, None) if scores[0] is None else scores[0][number]
            tested = None if scores[1] is None else scores[1][number][0]
            record = EpochRecord(epoch, rate, losses[number], hits, misfit, tested, seconds)
            replica.history.records.append(record)
            if recipe.report != "best-validation" or replica.history.best_epoch == epoch:
                for kept, now in zip(best, stack.state(), strict=True):
                    kept[number] = now[number]
    stack.write_back(best)


class StackedMLP(nn.Module):
    """K multi-layer perceptrons of one shape; the parameters of a layer are (K, out, in) and (K, out, 1).

    Samples are columns, so that the softmax runs over whole rows of memory.
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self._networks = networks
        kinds = [[type(module) for module in network.children()] for network in networks]
        plain = all(type(network) is nn.Sequential for network in networks) and set(kinds[0]) <= _KNOWN
        if not plain or any(kind != kinds[0] for kind in kinds):
            raise InputError("Expected multi-layer perceptrons of one shape, as dualt.nn.networks builds them.")
        self._dropout = [module.p for module in networks[0].children() if isinstance(module, nn.Dropout)]
        layers = list(zip(*(_linear_layers(network) for network in networks), strict=True))
        weights = [torch.stack([layer.weight.detach() for layer in same]) for same in layers]
        biases = [torch.stack([layer.bias.detach()[:, None] for layer in same]) for same in layers]
        self.weights = nn.ParameterList(nn.Parameter(weight) for weight in weights)
        self.biases = nn.ParameterList(nn.Parameter(bias) for bias in biases)

    def forward(self, x: Tensor, generators: Sequence[torch.Generator] | None = None) -> Tensor:
        """Return logits (K, C, n) of samples (K, n, features); `generators` give each replica its dropout."""
        last = len(self.weights) - 1
        hidden = x.transpose(1, 2)
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, weight, hidden)
            if number < last:
                hidden = hidden.relu_()
                if generators is not None and self._dropout:
                    hidden = hidden * _masks(hidden, self._dropout[number], generators)
        return hidden

    def state(self) -> list[Tensor]:
        """Return all parameters, each (K, ...)."""
        return [parameter.detach() for parameter in self.parameters()]

    @torch.no_grad()
    def write_back(self, state: Sequence[Tensor]) -> None:
        """Copy parameters as `state` gives them into the networks that this was made of."""
        n_layers = len(self.weights)
        for replica, network in enumerate(self._networks):
            for number, layer in enumerate(_linear_layers(network)):
                layer.weight.copy_(state[number][replica])
                layer.bias.copy_(state[n_layers + number][replica][:, 0])


_KNOWN = {nn.Flatten, nn.Linear, nn.ReLU, Dropout}


def _linear_layers(network: nn.Module) -> list[nn.Linear]:
    return [module for module in network.children() if isinstance(module, nn.Linear)]


def _masks(hidden: Tensor, p: float, generators: Sequence[torch.Generator]) -> Tensor:
    """Return dropout masks (K, units, n), each drawn row by sample as `nn.Dropout` would in a run of its own."""
    n_replicas, n_units, n = hidden.shape
    return dropout_mask(hidden.new_empty(n_replicas, n, n_units), p, generators).transpose(1, 2)


@dataclass(frozen=True)
class _StackedPart:
    """Samples (K·n, features) and labels (K·n,) of all replicas, one after the other."""

    x: Tensor
    labels: Tensor
    n_replicas: int

    @property
    def n_samples(self) -> int:
        return len(self.labels) // self.n_replicas

    def batches(self, orders: Tensor, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield x (K, b, features) and labels (K, b), the rows of each replica in its own order."""
        flat = orders + self.n_samples * torch.arange(self.n_replicas)[:, None]
        for start, stop in batch_starts(self.n_samples, batch_size):
            index = flat[:, start:stop].reshape(-1)
            shape = (self.n_replicas, stop - start)
            yield self.x.index_select(0, index).view(*shape, -1), self.labels.index_select(0, index).view(shape)


def _stack_parts(parts: Sequence[Part | None]) -> _StackedPart | None:
    given = [part for part in parts if part is not None]
    if not given:
        return None
    if len({len(part.labels) for part in given}) > 1 or len(given) < len(parts):
        raise InputError("Expected replicas whose data parts have the same sizes.")
    samples = [part.inputs.take(torch.arange(len(part.labels))).flatten(1) for part in given]
    return _StackedPart(torch.cat(samples), torch.cat([part.labels for part in given]), len(given))


def _run_epoch(
    stack: StackedMLP, part: _StackedPart, recipe: Recipe, optimizer: torch.optim.Optimizer, seeds: Sequence[int],
    epoch: int,
) -> list[float]:  # fmt: skip
    """Take one step of every replica per batch, and return the mean loss of each."""
    orders = np.stack([stream(seed, f"batches/{epoch}").permutation(part.n_samples) for seed in seeds])
    generators = [torch.Generator().manual_seed(stream_seed(seed, f"dropout/{epoch}")) for seed in seeds]
    total = torch.zeros(len(seeds))
    n_steps = 0
    n_batches = len(batch_starts(part.n_samples, recipe.batch_size))
    for number, (x, labels) in enumerate(part.batches(torch.from_numpy(orders), recipe.batch_size)):
        recipe.set_schedule(optimizer, epoch, number, n_batches)
        # Summed below: no replica's gradient depends on another's loss.
        losses = F.cross_entropy(stack(x, generators), labels, reduction="none").mean(1)
        if not torch.isfinite(losses).all():
            replica = int(torch.argmin(torch.isfinite(losses).int()))
            raise TrainingError(f"The loss of replica {replica} is not finite in epoch {epoch}, batch {number}.")
        optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += losses.detach()
        n_steps += 1
    return [float(value) for value in total / n_steps]


@torch.no_grad()
def _scores(stack: StackedMLP, part: _StackedPart | None) -> list[tuple[float, float]] | None:
    """Return accuracy and mean −log probability of every replica."""
    if part is None:
        return None
    x = part.x.view(part.n_replicas, part.n_samples, -1)
    labels = part.labels.view(part.n_replicas, part.n_samples)
    logits = stack(x)
    hits = (logits.argmax(1) == labels).float().mean(1)
    misfit = F.cross_entropy(logits, labels, reduction="none").mean(1)
    return [(float(h), float(m)) for h, m in zip(hits, misfit, strict=True)]
