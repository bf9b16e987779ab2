"""The networks of the paper by name, each a plain `nn.Module` from a batch to logits, built from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import DualtError, InputError, MissingExtraError, UnknownNameError
from dualt.nn.networks.resnet import ResNet, basic_block, bottleneck
from dualt.nn.tensor_files import read_tensors
from dualt.rng import check_seed
from dualt.validation import check_n_classes

__all__ = ["NETWORKS", "build_network", "load_weights", "seeded"]

_SMALLEST_IMAGE = 4
# The last layer, whose size depends on the number of classes.
_HEAD = "fc."


def mlp(
    input_shape: Sequence[int],
    n_classes: int,
    *,
    hidden: Sequence[int] = (128, 128),
    dropout: float = 0.5,
    batch_norm: bool = False,
    width: float = 1.0,
) -> nn.Sequential:
    """Flatten, then hidden layers with optional batch norm, ReLU and dropout, then logits.

    The defaults are the network that the paper's released code calls LeNet; the synthetic experiments
    use `mlp-small`, in the released code with `batch_norm=True`.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    n_inputs = math.prod(input_shape)
    for n_units in (_scaled(units, width) for units in hidden):
        layers.append(nn.Linear(n_inputs, n_units))
        if batch_norm:
            layers.append(nn.BatchNorm1d(n_units))
        layers.append(nn.ReLU())
        if dropout:
            layers.append(nn.Dropout(dropout))
        n_inputs = n_units
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_classes))


def lenet(input_shape: Sequence[int], n_classes: int, *, dropout: float = 0.5, width: float = 1.0) -> nn.Sequential:
    """LeNet-5 with dropout: two 5×5 convolutions with pooling, then 120 and 84 units, then logits.

    The second convolution pads images smaller than 20 pixels, which would otherwise vanish.
    """
    channels, height, side = input_shape
    if min(height, side) < _SMALLEST_IMAGE:
        raise InputError(f"Expected images of at least {_SMALLEST_IMAGE}×{_SMALLEST_IMAGE}, got {height}×{side}.")
    first, second, third, fourth = (_scaled(units, width) for units in (6, 16, 120, 84))
    padding = 0 if min(height, side) >= 20 else 2
    lost = 4 - 2 * padding
    n_features = second * ((height // 2 - lost) // 2) * ((side // 2 - lost) // 2)
    return nn.Sequential(
        nn.Conv2d(channels, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(n_features, third), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(third, fourth), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(fourth, n_classes),
    )  # fmt: skip


class VectorBlock(nn.Module):
    """Two linear layers around a shortcut."""

    def __init__(self, n_units: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(n_units, n_units), nn.Linear(n_units, n_units)
        self.norm1, self.norm2 = nn.BatchNorm1d(n_units), nn.BatchNorm1d(n_units)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual(x) + x)."""
        hidden = self.relu(self.norm1(self.first(x)))
        out: Tensor = self.relu(self.norm2(self.second(hidden)) + x)
        return out


def vector_resnet(
    input_shape: Sequence[int], n_classes: int, *, n_layers: int = 16, units: int = 64, width: float = 1.0
) -> nn.Sequential:
    """Return a residual network for vectors with `n_layers` linear layers, as deep as the one in the paper's appendix.

    One layer to `units` features, residual blocks of two layers each, and one to the logits.
    """
    n_units = _scaled(units, width)
    blocks = [VectorBlock(n_units) for _ in range((n_layers - 2) // 2)]
    entry = nn.Linear(math.prod(input_shape), n_units)
    return nn.Sequential(
        nn.Flatten(), entry, nn.BatchNorm1d(n_units), nn.ReLU(), *blocks, nn.Linear(n_units, n_classes)
    )


def _scaled(units: int, width: float) -> int:
    return max(1, round(width * units))


# Functions of (input_shape, n_classes, **options).
NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "mlp-small": partial(mlp, hidden=(25, 25), dropout=0.0),  # for the paper's synthetic data
    "lenet": lenet,
    "resnet18": partial(ResNet, basic_block, (2, 2, 2, 2)),  # for Fashion-MNIST and CIFAR-10 in the paper
    "resnet34": partial(ResNet, basic_block, (3, 4, 6, 3)),  # for CIFAR-100
    "resnet50": partial(ResNet, bottleneck, (3, 4, 6, 3)),  # for Clothing1M, pre-trained on ImageNet
    "resnet-vector": vector_resnet,
}
_FOR_VECTORS = ("mlp", "mlp-small", "resnet-vector")


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
    width = options.get("width", 1.0)
    if not (isinstance(width, (int, float)) and 0 < width < math.inf):
        raise InputError(f"Expected a width above 0, such as 0.5, got {width!r}.")
    if callable(name):
        with seeded(check_seed(random_state)):
            return name(shape, n_classes, **options)
    if name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS)
    if name not in _FOR_VECTORS and len(shape) != 3:
        flat = ", ".join(_FOR_VECTORS)
        raise InputError(f"Expected images (channels, height, width) for {name}, got shape {shape}. Use {flat}.")
    try:
        with seeded(check_seed(random_state)):
            return NETWORKS[name](shape, n_classes, **options)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DualtError):
            raise
        reason = str(error).partition("\n")[0]
        raise InputError(f"Cannot build {name} with the options {options}: {reason}") from None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators within the block, and restore their state afterwards."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        # Not torch.manual_seed, which keeps a traceback for every kind of device that is missing.
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed_all(seed)
        yield


def load_weights(network: nn.Module, source: str | Path) -> None:
    """Load weights into `network`, in place.

    Parameters
    ----------
    network
    source
        A `.safetensors` file with torchvision's names, or `"imagenet"` for torchvision's ResNet-50 weights.
        The last layer keeps its initial weights if the number of classes differs.
    """
    weights = _from_torchvision() if str(source) == "imagenet" else read_tensors(Path(source))[0]
    own = network.state_dict()
    for name in dict.fromkeys((*own, *weights)):
        if name not in own or name not in weights or own[name].shape != weights[name].shape:
            if not name.startswith(_HEAD):
                raise InputError(f"The weights in {source} have another architecture: {name!r} does not fit.")
            weights.pop(name, None)
    network.load_state_dict(weights, strict=False)


def _from_torchvision() -> dict[str, Tensor]:
    try:
        from torchvision.models import ResNet50_Weights
    except (ImportError, RuntimeError):  # A torchvision of another torch fails with RuntimeError.
        raise MissingExtraError("ImageNet weights from torchvision (or pass a .safetensors file)", "train") from None
    weights: dict[str, Tensor] = ResNet50_Weights.DEFAULT.get_state_dict(progress=False)
    return weights
