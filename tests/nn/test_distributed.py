"""Two processes give the weights of one process with the same batches, up to floating point."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from distributed_worker import train_all
from safetensors.torch import load_file

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
