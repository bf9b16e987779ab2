"""The networks of the paper by name, each a plain `nn.Module` from a batch to logits; their predictions."""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from dualt.errors import DualtError, InputError, UnknownNameError
from dualt.nn.samples import Inputs, Part
from dualt.rng import check_seed
from dualt.validation import check_n_classes

Network: TypeAlias = Callable[[Tensor], Tensor]

# Large enough to predict fast, small enough for the activations of a ResNet-50 to fit into memory.
_BATCH_SIZE = 512
# Up to this many pixels the first layers of a ResNet keep the resolution.
_SMALL_IMAGE = 64


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

    The defaults are the network that the paper's released code calls LeNet.
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


class ResidualBlock(nn.Sequential):
    """relu(layers(x) + shortcut(x)); the shortcut is the layer called `downsample` if there is one, else x itself."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of the next layer."""
        layers = dict(self.named_children())
        shortcut = layers.pop("downsample", nn.Identity())(x)
        for layer in layers.values():
            x = layer(x)
        return torch.relu(x + shortcut)


def vector_resnet(input_shape: Sequence[int], n_classes: int, *, width: float = 1.0) -> nn.Sequential:
    """Return a residual network for vectors with 16 linear layers of 64 units, as deep as in the paper's appendix."""
    n_units = _scaled(64, width)

    def linear(n_in: int) -> tuple[nn.Module, nn.Module]:
        return nn.Linear(n_in, n_units), nn.BatchNorm1d(n_units)

    entry = (nn.Flatten(), *linear(math.prod(input_shape)), nn.ReLU())
    blocks = [ResidualBlock(*linear(n_units), nn.ReLU(), *linear(n_units)) for _ in range(7)]
    return nn.Sequential(*entry, *blocks, nn.Linear(n_units, n_classes))


def _scaled(units: int, width: float) -> int:
    if not width > 0:
        raise InputError(f"Expected a width above 0, such as 0.5, got {width!r}.")
    return max(1, round(width * units))


def _conv(n_in: int, n_out: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)


def _image_block(sizes: Sequence[int], widths: Sequence[int], stride: int) -> ResidualBlock:
    """Return convolutions of `sizes` from one of `widths` to the next, with batch norm, and ReLU between them."""
    layers: dict[str, nn.Module] = {}
    for number, size in enumerate(sizes, start=1):
        if number > 1:
            layers[f"relu{number}"] = nn.ReLU(inplace=True)
        step = stride if number - 1 == sizes.index(3) else 1
        layers[f"conv{number}"] = _conv(widths[number - 1], widths[number], size, step)
        layers[f"bn{number}"] = nn.BatchNorm2d(widths[number])
    if stride != 1 or widths[0] != widths[-1]:
        layers["downsample"] = nn.Sequential(_conv(widths[0], widths[-1], 1, stride), nn.BatchNorm2d(widths[-1]))
    return ResidualBlock(OrderedDict(layers))


def resnet(
    sizes: Sequence[int],
    depths: Sequence[int],
    input_shape: Sequence[int],
    n_classes: int,
    *,
    width: float = 1.0,
    stem: Literal["imagenet"] | None = None,
) -> nn.Sequential:
    """Stem, four stages of residual blocks, average over pixels, logits; layers have torchvision's names.

    The stem is one 3×3 convolution at full resolution for images of up to 64 pixels, and for larger ones, or with
    "imagenet", a 7×7 convolution and a pooling that each halve it, as in torchvision. The paper's authors took the
    second for images of 28 and 32 pixels too, which costs a tenth.
    """
    if stem not in (None, "imagenet"):
        raise UnknownNameError("stem", stem, ["imagenet"])
    full = stem is None and max(input_shape[1:]) <= _SMALL_IMAGE
    n_in, *stages = (_scaled(channels, width) for channels in (64, 64, 128, 256, 512))
    layers: dict[str, nn.Module] = {
        "conv1": _conv(input_shape[0], n_in, 3) if full else _conv(input_shape[0], n_in, 7, stride=2),
        "bn1": nn.BatchNorm2d(n_in),
        "relu": nn.ReLU(inplace=True),
        "maxpool": nn.Identity() if full else nn.MaxPool2d(3, stride=2, padding=1),
    }
    for number, (n_channels, depth) in enumerate(zip(stages, depths, strict=True), start=1):
        blocks = []
        n_out = n_channels if len(sizes) == 2 else 4 * n_channels  # a bottleneck, (1, 3, 1), is wider at the end
        for index in range(depth):
            widths = [n_in, *[n_channels] * (len(sizes) - 1), n_out]
            blocks.append(_image_block(sizes, widths, 2 if number > 1 and index == 0 else 1))
            n_in = n_out
        layers[f"layer{number}"] = nn.Sequential(*blocks)
    layers |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "fc": nn.Linear(n_in, n_classes)}
    network = nn.Sequential(OrderedDict(layers))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


# Functions of (input_shape, n_classes, **options).
NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "mlp-small": partial(mlp, hidden=(25, 25), dropout=0.0),  # for the paper's synthetic data
    "lenet": lenet,
    "resnet18": partial(resnet, (3, 3), (2, 2, 2, 2)),  # for Fashion-MNIST and CIFAR-10 in the paper
    "resnet34": partial(resnet, (3, 3), (3, 4, 6, 3)),  # for CIFAR-100
    "resnet50": partial(resnet, (1, 3, 1), (3, 4, 6, 3)),  # for Clothing1M, pre-trained on ImageNet
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

    `name` is one of `NETWORKS`, or a function `(input_shape, n_classes, **options) -> nn.Module`. Options are `width`
    for all networks, `hidden`, `dropout` and `batch_norm` for `mlp`, `dropout` for `lenet`, and `stem` for ResNets.
    """
    shape = tuple(int(size) for size in input_shape)
    if math.prod(shape) < 1:
        raise InputError(f"Expected samples with at least one number, got the shape {shape}.")
    check_n_classes(n_classes)
    if not callable(name) and name not in NETWORKS:
        raise UnknownNameError("network", name, NETWORKS)
    if isinstance(name, str) and name not in _FOR_VECTORS and len(shape) != 3:
        flat = ", ".join(_FOR_VECTORS)
        raise InputError(f"Expected images (channels, height, width) for {name}, got shape {shape}. Use {flat}.")
    build = NETWORKS[name] if isinstance(name, str) else name
    try:
        with seeded(check_seed(random_state)):
            return build(shape, n_classes, **options)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DualtError) or not isinstance(name, str):
            raise
        reason = str(error).partition("\n")[0]
        raise InputError(f"Cannot build {name} with the options {options}: {reason}") from None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators within the block, and restore their state afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        # Not torch.manual_seed, which keeps a traceback for every kind of device that is missing.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed)
        yield


@contextmanager
def evaluating(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Put the modules into evaluation mode without gradients, and restore their mode afterwards."""
    before = [module.training for module in modules]
    for module in modules:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in zip(modules, before, strict=True):
            module.train(training)


def batch_probs(network: Network, inputs: Inputs) -> Iterator[Tensor]:
    """Yield the softmax of the logits, batch by batch; call it while `evaluating`."""
    for start in range(0, len(inputs), _BATCH_SIZE):
        index = torch.arange(start, min(start + _BATCH_SIZE, len(inputs)))
        yield network(inputs.take(index)).float().softmax(1)


def predict_probs(networks: Sequence[nn.Module], inputs: Inputs) -> Tensor:
    """Return the mean of the networks' class probabilities, (n, C), on the CPU."""
    with evaluating(networks):
        each = [torch.cat([probs.cpu() for probs in batch_probs(network, inputs)]) for network in networks]
    return torch.stack(each).mean(0)


def mean_scores(
    networks: Sequence[Network], part: Part | None, to_noisy: Callable[[Tensor], Tensor] | None = None
) -> tuple[float | None, float | None]:
    """Return accuracy and mean −log probability of the labels, averaged over networks; `None` without a part.

    `to_noisy` maps clean to noisy probabilities, for parts with noisy labels. Call it while `evaluating`.
    """
    if part is None:
        return None, None
    hits, loss = torch.zeros(2, device=part.labels.device)
    for network in networks:
        for labels, probs in zip(torch.split(part.labels, _BATCH_SIZE), batch_probs(network, part.inputs), strict=True):
            noisy = probs if to_noisy is None else to_noisy(probs)
            hits += (noisy.argmax(1) == labels).sum()
            loss -= noisy.gather(1, labels[:, None]).clamp_min(1e-30).log().sum()
    total = len(networks) * len(part.labels)
    return float(hits.double() / total), float(loss.double() / total)
