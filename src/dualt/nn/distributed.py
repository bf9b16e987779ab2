"""Training in several processes with torch's DistributedDataParallel.

Each process computes its share of the batch, and every process gets all logits. So whatever a method does with a
batch (select, compare, mix), it does with the whole batch, as in one process.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel


def process_rank() -> int | None:
    """Return the number of this process, if it is one of several; process 0 writes files and reports progress."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else None


@contextmanager
def joined_world() -> Iterator[int]:
    """Join the processes that torchrun started, if any, and leave together at the end; yield the rank."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank()
        dist.barrier()
    finally:
        dist.destroy_process_group()
        # A thread of Gloo frees the tensors of a collective after it has returned, and needs the interpreter for that:
        # if the interpreter has exited by then, the process aborts, and torchrun ends the others with it.
        sleep(0.3)


class ShardedNetwork(nn.Module):
    """A network that takes the whole batch, computes this process's share, and returns all logits.

    Batch norm uses the statistics of all processes on GPUs (`nn.SyncBatchNorm`); on CPUs, where torch has no such
    layer, those of each process's own rows.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        if next(network.parameters()).is_cuda:
            network = nn.SyncBatchNorm.convert_sync_batchnorm(network)  # type: ignore[no-untyped-call]
        self.parallel = DistributedDataParallel(network)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of every row of `x`; gradients flow through the rows of this process only."""
        shares, rank = x.tensor_split(dist.get_world_size()), dist.get_rank()
        # Without gradients there is nothing to average.
        own = (self.parallel if torch.is_grad_enabled() else self.parallel.module)(shares[rank])
        padded = F.pad(own.detach(), (0, 0, 0, len(shares[0]) - len(own)))
        gathered = [torch.empty_like(padded) for _ in shares]
        dist.all_gather(gathered, padded)
        logits = [rows[: len(share)] for rows, share in zip(gathered, shares, strict=True)]
        # The same values with a gradient times the number of processes: DistributedDataParallel averages gradients,
        # but their sum is needed, since every process computes the loss of all rows.
        logits[rank] = own + (len(shares) - 1) * (own - own.detach())
        return torch.cat(logits)
