"""Networks by name, built from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dualt.errors import DualtError, InputError, UnknownNameError
from dualt.nn.networks.cnn9 import cnn9
from dualt.nn.networks.lenet import lenet
from dualt.nn.networks.mlp import mlp, small_mlp
from dualt.nn.networks.resnet import resnet18, resnet34, resnet50
from dualt.nn.networks.vector_resnet import vector_resnet
from dualt.rng import check_seed
from dualt.validation import check_n_classes


@dataclass(frozen=True)
class RegisteredNetwork:
    """A network from (input_shape, n_classes, **options), and whether it needs images."""

    build: Callable[..., nn.Module]
    images: bool


NETWORKS: dict[str, RegisteredNetwork] = {
    "mlp": RegisteredNetwork(mlp, images=False),
    "mlp-small": RegisteredNetwork(small_mlp, images=False),
    "lenet": RegisteredNetwork(lenet, images=True),
    "cnn9": RegisteredNetwork(cnn9, images=True),
    "resnet18": RegisteredNetwork(resnet18, images=True),
    "resnet34": RegisteredNetwork(resnet34, images=True),
    "resnet50": RegisteredNetwork(resnet50, images=True),
    "resnet-vector": RegisteredNetwork(vector_resnet, images=False),
}


def build_network(
    name: str | Callable[..., nn.Module],
    input_shape: Sequence[int],
    n_classes: int,
    *,
    random_state: int = 0,
    **options: Any,
) -> nn.Module:
    """Return a network whose initial weights depend on `random_state` alone.

    Parameters
    ----------
    name
        One of `NETWORKS`, or a function `(input_shape, n_classes, **options) -> nn.Module`.
    input_shape
        Shape of one sample: (features,) or (channels, height, width).
    n_classes
    random_state
    **options
        Of the network: `width` for all, `hidden`, `dropout` and `batch_norm` for `mlp`, `stem` for ResNets, ...

    Examples
    --------
    >>> sum(p.numel() for p in build_network("mlp", (1, 28, 28), 10).parameters())
    118282
    """
    shape = tuple(int(size) for size in input_shape)
    if math.prod(shape) < 1:
        raise InputError(f"Expected samples with at least one number, got the shape {shape}.")
    check_n_classes(n_classes)
    build = _builder(name, shape)
    if "width" in options and not 0 < options["width"] < math.inf:
        raise InputError(f"Expected a width above 0, such as 0.5, got {options['width']}.")
    with seeded(check_seed(random_state)):
        try:
            return build(shape, n_classes, **options)
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            if callable(name) or isinstance(error, DualtError):  # the user's own, or one that says what was expected
                raise
            reason = str(error).partition("\n")[0]
            raise InputError(f"Expected options with which {name} can be built here, got {options}: {reason}") from None


def _builder(name: str | Callable[..., nn.Module], shape: tuple[int, ...]) -> Callable[..., nn.Module]:
    if callable(name):
        return name
    if name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS)
    if NETWORKS[name].images and len(shape) != 3:
        flat = ", ".join(key for key, entry in NETWORKS.items() if not entry.images)
        raise InputError(f"Expected images (channels, height, width) for {name}, got shape {shape}. Use {flat}.")
    return NETWORKS[name].build


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from torch's own generators as if freshly seeded, and leave them as they were."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        if devices or torch.backends.mps.is_available():
            torch.manual_seed(seed)
        else:  # there, `torch.manual_seed` would keep a trace of every call for a CUDA that never comes
            torch.default_generator.manual_seed(seed)
        yield
