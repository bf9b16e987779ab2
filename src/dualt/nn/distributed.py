"""Training in several processes with torch's DistributedDataParallel.

Each process computes its share of the batch, and every process gets all logits. So whatever a method does with a
batch (select, compare, mix), it does with the whole batch, as in one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

_SECONDS_TO_DROP_TENSORS = 0.3


@dataclass(frozen=True)
class World:
    """The rank of this process, and the number of processes."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def rows(self, total: int) -> slice:
        """Return this process's rows of a batch of `total`."""
        return slice(self.rank * total // self.size, (self.rank + 1) * total // self.size)


def current_world() -> World:
    """Return the world that `joined_world` (or the user) has set up."""
    if not (dist.is_available() and dist.is_initialized()):
        return World()
    return World(dist.get_rank(), dist.get_world_size())


@contextmanager
def joined_world() -> Iterator[World]:
    """Join the processes that torchrun started, if any, and leave together at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield current_world()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield current_world()
        dist.barrier()
    finally:
        dist.destroy_process_group()
        # A thread of Gloo frees the tensors of a collective after it has returned, and needs the interpreter for that:
        # if the interpreter has exited by then, the process aborts, and torchrun ends the others with it.
        sleep(_SECONDS_TO_DROP_TENSORS)


class ShardedNetwork(nn.Module):
    """A network that takes the whole batch, computes this process's rows, and returns all logits.

    Batch norm uses the statistics of all processes on GPUs (`nn.SyncBatchNorm`); on CPUs, where torch has no such
    layer, those of each process's own rows.
    """

    def __init__(self, network: nn.Module, world: World) -> None:
        super().__init__()
        self._world = world
        if next(network.parameters()).is_cuda:
            network = nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
        self.parallel = DistributedDataParallel(network)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of every row of `x`."""
        rows = x[self._world.rows(len(x))]
        # Without gradients there is nothing to average.
        module = self.parallel if torch.is_grad_enabled() else self.parallel.module
        logits: Tensor = _GatherRows.apply(module(rows), self._world, len(x))  # type: ignore[no-untyped-call]
        return logits


class _GatherRows(torch.autograd.Function):
    """Concatenate the rows of all processes."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, world: World, total: int) -> Tensor:
        ctx.rows, ctx.size = world.rows(total), world.size
        shares = [World(rank, world.size).rows(total) for rank in range(world.size)]
        longest = max(rows.stop - rows.start for rows in shares)
        padded = local.new_zeros(longest, *local.shape[1:])
        padded[: len(local)] = local
        parts = [torch.empty_like(padded) for _ in shares]
        dist.all_gather(parts, padded)
        return torch.cat([part[: rows.stop - rows.start] for part, rows in zip(parts, shares, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        # Every process computes the same loss of all rows, so nothing is exchanged here. DistributedDataParallel
        # averages gradients over processes, but their sum is needed.
        return grads[0][ctx.rows] * ctx.size, None, None


def shard(networks: Sequence[nn.Module], world: World) -> list[nn.Module]:
    """Return the networks, wrapped for several processes if there are several."""
    return list(networks) if world.size == 1 else [ShardedNetwork(network, world) for network in networks]
