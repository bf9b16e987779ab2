"""ResNet-18, -34 and -50; parameters are named as in torchvision, so that its weights fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

from torch import Tensor, nn

from dualt.errors import UnknownNameError

Stem: TypeAlias = Literal["auto", "full", "imagenet"]

# Up to this many pixels the stem "auto" keeps the resolution.
_SMALL_IMAGE = 64


def _conv(n_in: int, n_out: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and n_in == n_out:
        return None
    return nn.Sequential(_conv(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))


class ResidualBlock(nn.Module):
    """Convolutions with batch norm and ReLU around a shortcut; the last ReLU comes after their sum."""

    def __init__(self, convolutions: Sequence[nn.Conv2d], shortcut: nn.Module | None) -> None:
        super().__init__()
        self.depth, self.n_out = len(convolutions), convolutions[-1].out_channels
        for number, convolution in enumerate(convolutions, start=1):
            self.add_module(f"conv{number}", convolution)
            self.add_module(f"bn{number}", nn.BatchNorm2d(convolution.out_channels))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return relu(residual(x) + shortcut(x))."""
        hidden, shortcut = x, x if self.downsample is None else self.downsample(x)
        for number in range(1, self.depth + 1):
            hidden = hidden if number == 1 else self.relu(hidden)
            hidden = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(hidden))
        out: Tensor = self.relu(hidden + shortcut)
        return out


def basic_block(n_in: int, n_channels: int, stride: int) -> ResidualBlock:
    """Two 3×3 convolutions around a shortcut."""
    convolutions = [_conv(n_in, n_channels, 3, stride), _conv(n_channels, n_channels, 3)]
    return ResidualBlock(convolutions, _shortcut(n_in, n_channels, stride))


def bottleneck(n_in: int, n_channels: int, stride: int) -> ResidualBlock:
    """1×1, 3×3 and 1×1 convolutions around a shortcut, four times as wide at the end."""
    n_out = 4 * n_channels
    convolutions = [_conv(n_in, n_channels, 1), _conv(n_channels, n_channels, 3, stride), _conv(n_channels, n_out, 1)]
    return ResidualBlock(convolutions, _shortcut(n_in, n_out, stride))


class ResNet(nn.Module):
    """Stem, four stages of residual blocks, average over pixels, logits.

    The stem "full" is one 3×3 convolution at full resolution; "imagenet" is a 7×7 convolution and a pooling that each
    halve it, as in torchvision; "auto" is the first for images of up to 64 pixels. The paper's authors took the second
    for images of 28 and 32 pixels too, which costs a tenth.
    """

    def __init__(
        self,
        block: Callable[[int, int, int], ResidualBlock],
        depths: Sequence[int],
        input_shape: Sequence[int],
        n_classes: int,
        *,
        width: float = 1.0,
        stem: Stem = "auto",
    ) -> None:
        super().__init__()
        n_stem, *stages = (max(1, round(width * channels)) for channels in (64, 64, 128, 256, 512))
        if stem not in get_args(Stem):
            raise UnknownNameError("stem", stem, get_args(Stem))
        full = stem == "full" or (stem == "auto" and max(input_shape[1:]) <= _SMALL_IMAGE)
        self.conv1 = _conv(input_shape[0], n_stem, 3) if full else _conv(input_shape[0], n_stem, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(n_stem)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if full else nn.MaxPool2d(3, stride=2, padding=1)
        n_in = n_stem
        for number, (n_channels, depth) in enumerate(zip(stages, depths, strict=True), start=1):
            blocks = []
            for index in range(depth):
                blocks.append(block(n_in, n_channels, 2 if number > 1 and index == 0 else 1))
                n_in = blocks[-1].n_out
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(n_in, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits
