"""Inputs, small disks and read-only folders."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest

BEFORE = b"x" * 504 * 1024


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Probabilities and labels of 400 examples, as files; `other.npy` are labels that give another result."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.2), 400)
    labels = probs.argmax(axis=1)
    labels[::4] = (labels[::4] + 1) % 3
    np.save(folder / "probs.npy", probs)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "other.npy", np.roll(labels, 7))
    return folder


@pytest.fixture
def out(tmp_path):
    """An empty folder."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def _mounted(folder, options):
    """Mount a disk of its own at `folder`, or skip."""
    if os.geteuid() != 0:
        pytest.skip("mounting a disk needs root")
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(out):
    """A real disk of 512 kB, of which 8 kB are free."""
    _mounted(out, "size=512k")
    (out / "before").write_bytes(BEFORE)
    yield out
    subprocess.run(["umount", str(out)], check=True)


@pytest.fixture
def read_only(out):
    """A folder in which nothing can be written: by its permissions, or, for root, by how it is mounted."""
    if os.geteuid() != 0:
        out.chmod(0o555)
        yield out
        out.chmod(0o755)
        return
    _mounted(out, "ro,size=16k")
    yield out
    subprocess.run(["umount", str(out)], check=True)
