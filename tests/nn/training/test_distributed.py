"""Two processes give what one gives with the same batches, up to floating point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from distributed_worker import train_all
from safetensors.torch import load_file
from torch import distributed, nn

from dualt.errors import InputError
from dualt.nn.training.distributed import ShardedNetwork, World

WORKER = Path(__file__).parent / "distributed_worker.py"


@pytest.mark.slow
def test_two_processes_are_one(tmp_path):
    path = tmp_path / "weights.safetensors"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", WORKER, path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    together, alone = load_file(path), train_all()
    assert together.keys() == alone.keys()
    for name, value in alone.items():
        torch.testing.assert_close(together[name], value, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


@pytest.fixture
def group(tmp_path):
    """A group of this process alone: what it gathers and sums is its own."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield World()
    distributed.destroy_process_group()


# Newer torch has other names for both, which older torch has not.
@pytest.mark.filterwarnings("ignore:`broadcast_buffers`:FutureWarning", "ignore:torch.distributed.nn:FutureWarning")
@pytest.mark.parametrize("options", [{}, {"affine": False}, {"momentum": None}, {"momentum": 0.0}])
@pytest.mark.parametrize("shape", [(12, 3), (12, 3, 4, 5)])
def test_shared_batch_norm_is_torchs(group, options, shape):
    def network():
        norm = (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(3, **options)
        return nn.Sequential(norm, nn.Flatten(), nn.LazyLinear(2))

    torch.manual_seed(0)
    plain, inside = network(), network()
    batches = [torch.randn(shape) * (k + 1) + k for k in range(3)]
    plain(batches[0][:2]), inside(batches[0][:2])
    inside.load_state_dict(plain.state_dict())
    shared = ShardedNetwork(inside, group)
    for batch in batches:
        expected, found = plain(batch), shared(batch)
        torch.testing.assert_close(found, expected)
        expected.square().sum().backward()
        found.square().sum().backward()
    for (name, one), other in zip(plain.named_parameters(), inside.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, rtol=1e-4, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}")
    torch.testing.assert_close(inside.state_dict(), plain.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(shared.eval()(batches[0]), plain.eval()(batches[0]))


def test_batch_norm_without_running_statistics_is_refused(group):
    with pytest.raises(InputError, match=r"running statistics in several processes.*train in one process"):
        ShardedNetwork(nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False)), group)
