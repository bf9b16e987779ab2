"""Small valid files of every format, as bytes: what the mutations start from."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

PROBS = np.random.default_rng(0).dirichlet(np.full(3, 0.3), 12)
LABELS = PROBS.argmax(axis=1)
NAMES = np.array(["cat", "dog", "=cow"])
OLD = NAMES[LABELS]
MATRIX = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]]


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def csv(rows, delimiter=",") -> bytes:
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows).encode()


def exports() -> list[bytes]:
    """Return what labelling tools export of one task, in each of their forms."""
    known = {"index": 1, "example": "a", "old": str(OLD[1])}
    chosen = {"from_name": "new", "type": "choices", "value": {"choices": ["cat"]}}
    forms = (
        {"data": known, "annotations": [{"was_cancelled": False, "result": [chosen]}]},
        {"metadata": known, "responses": {"new": [{"value": "cat", "user_id": "u"}]}},
        known | {"new": "cat"},
    )
    return [json.dumps([form]).encode() for form in forms]


def parquet(**columns) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def idx(array) -> bytes:
    sizes = b"".join(side.to_bytes(4, "big") for side in array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.astype(np.uint8).tobytes()


IMAGES = np.arange(5 * 4 * 4, dtype=np.uint8).reshape(5, 4, 4)


def cifar_binary(n_records=2) -> bytes:
    return b"".join(bytes([number]) + bytes(range(256)) * 12 for number in range(n_records))


def image(kind) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.arange(64 * 3, dtype=np.uint8).reshape(8, 8, 3)).save(stream, kind)
    return stream.getvalue()


def estimate() -> bytes:
    import dualt

    return json.dumps(dualt.estimate_transition(PROBS, LABELS).to_dict()).encode()


@cache
def summary() -> bytes:
    from dualt import io
    from dualt.rows import as_posterior

    whole = as_posterior(PROBS, LABELS).summary
    with TemporaryDirectory() as folder:
        path = Path(folder) / "summary.npz"
        io.save_summary(path, io.StoredSummary.of(whole, NAMES.tolist()))
        return path.read_bytes()


@cache
def model_files() -> dict[str, bytes]:
    """Return the files of a saved model, by name."""
    from dualt.nn.networks import build_network
    from dualt.nn.training.model import Model

    one = np.ones(4, np.float32)
    model = Model([build_network("mlp-small", (4,), 3)], "mlp-small", {}, (4,), tuple(NAMES.tolist()), one, one)
    with TemporaryDirectory() as folder:
        model.save(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def weights() -> bytes:
    from safetensors.torch import save

    from dualt.nn.networks import build_network

    return save(build_network("mlp-small", (4,), 3).state_dict())


@cache
def checkpoint() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        state().save(path, {"epochs": 3})
        return path.read_bytes()


def state():
    """Return a training run between two epochs."""
    import torch

    from dualt.nn.methods import build_method
    from dualt.nn.networks import build_network
    from dualt.nn.training.checkpoint import State
    from dualt.nn.training.history import EpochRecord, History

    network = build_network("mlp-small", (4,), 3)
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    history = History([EpochRecord(0, 0.1, 1.0, 0.5, None, 0.5, 0.01)])
    current = State([network], build_method("ce"), optimizer, history, {})
    current.keep_best()
    return current
