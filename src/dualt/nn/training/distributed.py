"""Many processes as one: each computes its rows of the batch, every one sees all logits.

Whatever a method does with a batch (select, compare, mix) it does on the whole of it, so that the result
is that of one process with the same batch, up to floating point. Dropout masks are cut from those of the
whole batch, and batch statistics are taken over all processes.
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
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel

from dualt.errors import InputError
from dualt.nn.networks.dropout import dropout_mask

_SECONDS_TO_DROP_TENSORS = 0.3


@dataclass(frozen=True)
class World:
    """Which process this is, and how many there are."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """The one that writes and talks."""
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
    """Join the processes that torchrun started, and leave them together at the end; alone otherwise."""
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
        # A thread of Gloo drops the tensors of a collective after that has returned, and takes the interpreter for it:
        # should it be gone by then, the process aborts, and torchrun ends the others with it.
        sleep(_SECONDS_TO_DROP_TENSORS)


class ShardedNetwork(nn.Module):
    """A network that takes the whole batch, computes this process's rows, and returns all logits."""

    def __init__(self, network: nn.Module, world: World) -> None:
        super().__init__()
        self._share = _Share(world)
        _share_batch(network, self._share)
        self.parallel = DistributedDataParallel(network, broadcast_buffers=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of every row of `x`."""
        share = self._share
        share.total = len(x)
        rows = x[share.world.rows(len(x))]
        # In evaluation no gradients are to be averaged.
        module = self.parallel if torch.is_grad_enabled() else self.parallel.module
        logits: Tensor = _GatherRows.apply(module(rows), share)  # type: ignore[no-untyped-call]
        return logits


@dataclass
class _Share:
    """The world and the size of the batch that is being computed."""

    world: World
    total: int = 0


class _GatherRows(torch.autograd.Function):
    """Concatenate the rows of all processes."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, share: _Share) -> Tensor:
        world, total = share.world, share.total
        ctx.rows, ctx.size = world.rows(total), world.size
        sizes = [World(rank, world.size).rows(total) for rank in range(world.size)]
        longest = max(rows.stop - rows.start for rows in sizes)
        padded = local.new_zeros(longest, *local.shape[1:])
        padded[: len(local)] = local
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[: rows.stop - rows.start] for part, rows in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # Every process computes the same loss of all rows, so no exchange is needed. The parallel wrapper
        # averages gradients over processes; the sum is what is wanted.
        return grads[0][ctx.rows] * ctx.size, None


def _share_batch(module: nn.Module, share: _Share) -> None:
    """Replace dropout and batch norm by modules that know the whole batch, in place."""
    for name, child in module.named_children():
        if isinstance(child, nn.Dropout):
            setattr(module, name, _SharedDropout(child.p, share))
        elif isinstance(child, (nn.BatchNorm1d, nn.BatchNorm2d)):
            setattr(module, name, _SharedBatchNorm(child, share))
        else:
            _share_batch(child, share)


class _SharedDropout(nn.Module):
    """Dropout whose mask is this process's part of the whole batch's mask."""

    def __init__(self, p: float, share: _Share) -> None:
        super().__init__()
        self.p, self._share = p, share

    def forward(self, x: Tensor) -> Tensor:
        """Return x with a share `p` of its entries at zero."""
        if not self.training or self.p == 0:
            return x
        mask = dropout_mask(x.new_empty(self._share.total, *x.shape[1:]), self.p)
        return x * mask[self._share.world.rows(self._share.total)]


class _SharedBatchNorm(nn.Module):
    """Batch norm with the mean and variance over all processes."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, norm: nn.BatchNorm1d | nn.BatchNorm2d, share: _Share) -> None:
        super().__init__()
        if norm.running_mean is None:
            # Predictions would depend on which samples come together, and these are not shared.
            raise InputError(
                f"Expected batch norm with running statistics in several processes, got {norm} with"
                " track_running_stats=False. Leave it at True, or train in one process."
            )
        # Parameters, or None without affine=True.
        self.weight, self.bias = norm.weight, norm.bias
        self.eps, self.momentum, self._share = norm.eps, norm.momentum, share
        for name, buffer in norm.named_buffers():
            self.register_buffer(name, buffer)

    def forward(self, x: Tensor) -> Tensor:
        """Return (x − mean) / std · weight + bias."""
        if not self.training:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        axes = [0, *range(2, x.ndim)]
        along = (1, -1, *(1 for _ in axes[1:]))
        count = self._share.total * x.shape[2:].numel()
        mean = _all_sum(x.sum(axes)) / count
        centered = x - mean.reshape(along)
        variance = _all_sum((centered**2).sum(axes)) / count
        self._remember(mean, variance * (count / max(count - 1, 1)))
        scale = (variance + self.eps).rsqrt() if self.weight is None else self.weight / (variance + self.eps).sqrt()
        scaled = centered * scale.reshape(along)
        return scaled if self.bias is None else scaled + self.bias.reshape(along)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics towards the batch's; to the mean of all batches without a momentum, as torch."""
        self.num_batches_tracked += 1
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)


def _all_sum(x: Tensor) -> Tensor:
    """Return the sum over processes, whose gradient is the sum of the gradients."""
    from torch.distributed.nn.functional import all_reduce

    total: Tensor = all_reduce(x)  # type: ignore[no-untyped-call]
    return total


def shard(networks: Sequence[nn.Module], world: World) -> list[nn.Module]:
    """Return the networks as they are to be called in this world."""
    return list(networks) if world.size == 1 else [ShardedNetwork(network, world) for network in networks]
