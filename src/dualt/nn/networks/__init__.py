"""The networks of the paper by name, each a plain `nn.Module` from a batch to logits, built from a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualt.errors import DualtError, InputError, MissingExtraError, UnknownNameError
from dualt.nn.networks.resnet import resnet18, resnet34, resnet50
from dualt.nn.tensor_files import read_tensors
from dualt.rng import check_seed
from dualt.validation import check_n_classes

__all__ = ["NETWORKS", "build_network", "load_weights", "seeded"]

_SMALLEST_IMAGE = 4
# cnn9: channels of the three layers before each pooling; images from this size on are not padded in the last block.
_CNN9_BLOCKS = ((128, 128, 128), (256, 256, 256), (512, 256, 128))
_CNN9_UNPADDED = 28
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
    use `hidden=(25, 25), dropout=0`, registered as `mlp-small`, and in the released code `batch_norm=True`.
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


def small_mlp(
    input_shape: Sequence[int], n_classes: int, *, batch_norm: bool = False, width: float = 1.0
) -> nn.Sequential:
    """Two hidden layers of 25 units without dropout: the paper's network for its synthetic data."""
    return mlp(input_shape, n_classes, hidden=(25, 25), dropout=0.0, batch_norm=batch_norm, width=width)


def lenet(input_shape: Sequence[int], n_classes: int, *, dropout: float = 0.5, width: float = 1.0) -> nn.Sequential:
    """LeNet-5 with dropout: two 5×5 convolutions with pooling, then 120 and 84 units, then logits.

    The second convolution pads images smaller than 20 pixels, which would otherwise vanish.
    """
    channels, height, side = _image_shape(input_shape, "lenet")
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


def cnn9(input_shape: Sequence[int], n_classes: int, *, dropout: float = 0.25, width: float = 1.0) -> nn.Sequential:
    """Nine 3×3 convolutions with batch norm and leaky ReLU in three blocks, pooled by two, by two and over all pixels.

    The released scripts of Decoupling, MentorNet and Co-teaching train this network by default. They leave its dropout
    of whole channels on while they test; here it is off.
    """
    n_in, height, side = _image_shape(input_shape, "cnn9")
    layers: list[nn.Module] = []
    for number, block in enumerate(_CNN9_BLOCKS, start=1):
        last = number == len(_CNN9_BLOCKS)
        padding = 0 if last and min(height, side) >= _CNN9_UNPADDED else 1
        for channels in (_scaled(each, width) for each in block):
            layers += [nn.Conv2d(n_in, channels, 3, padding=padding), nn.BatchNorm2d(channels), nn.LeakyReLU(0.01)]
            n_in = channels
        layers += [nn.AdaptiveAvgPool2d(1)] if last else [nn.MaxPool2d(2), nn.Dropout2d(dropout)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(n_in, n_classes))


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


def _image_shape(input_shape: Sequence[int], name: str) -> Sequence[int]:
    if min(input_shape[1:]) < _SMALLEST_IMAGE:
        size = "×".join(map(str, input_shape[1:]))
        raise InputError(f"Expected images of at least {_SMALLEST_IMAGE}×{_SMALLEST_IMAGE} for {name}, got {size}.")
    return input_shape


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
    width = options.get("width", 1.0)
    if not (isinstance(width, (int, float)) and 0 < width < math.inf):
        raise InputError(f"Expected a width above 0, such as 0.5, got {width!r}.")
    if callable(name):
        with seeded(check_seed(random_state)):
            return name(shape, n_classes, **options)
    if name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS)
    if NETWORKS[name].images and len(shape) != 3:
        flat = ", ".join(key for key, entry in NETWORKS.items() if not entry.images)
        raise InputError(f"Expected images (channels, height, width) for {name}, got shape {shape}. Use {flat}.")
    try:
        with seeded(check_seed(random_state)):
            return NETWORKS[name].build(shape, n_classes, **options)
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
        if devices or torch.backends.mps.is_available():
            torch.manual_seed(seed)
        else:  # torch.manual_seed keeps a traceback for every kind of device that is missing, which costs a millisecond
            torch.default_generator.manual_seed(seed)
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
