"""Samples as batches of tensors on a device: in memory where they fit, else fetched batch by batch; augmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from dualt.errors import InputError

Augment: TypeAlias = Callable[[Tensor, np.random.Generator], Tensor]

# Samples up to this size as float32 are converted once and stay on the device.
_IN_MEMORY_BYTES = 4 << 30
# Pixels by which an augmented image is shifted at most.
_MARGIN = 4


def torch_device(name: str) -> torch.device:
    """Return the device of that name, checked; `"auto"` is a GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()  # fails for "meta", which holds no values
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"Expected a device of this machine, got {name!r}: {str(error).splitlines()[0]}") from None
    return device


@dataclass(frozen=True)
class Inputs:
    """Samples, each of `shape`; `take` returns those of a tensor of indices, as float32 on the device."""

    n_samples: int
    shape: tuple[int, ...]
    take: Callable[[Tensor], Tensor]

    def __len__(self) -> int:
        return self.n_samples


class Part(NamedTuple):
    """Samples and their labels."""

    inputs: Inputs
    labels: Tensor

    def subset(self, rows: NDArray[np.intp]) -> Part:
        """Return the samples and labels of `rows`, without copying samples."""
        kept, inputs = torch.from_numpy(rows).to(self.labels.device), self.inputs

        def take(index: Tensor) -> Tensor:
            return inputs.take(kept.index_select(0, index.to(kept.device)))

        return Part(Inputs(len(rows), inputs.shape, take), self.labels[kept])


class TrainingData(NamedTuple):
    """Rows with noisy labels, the first `n_train` (`None`: all) to train and the others to validate on; a test part."""

    rows: Part
    n_train: int | None = None
    test: Part | None = None

    @property
    def train(self) -> Part:
        """The part to train on."""
        return self.rows if self.n_train is None else self.rows.subset(np.arange(self.n_train))

    @property
    def validation(self) -> Part | None:
        """The part to choose the best epoch by, if there is one."""
        return None if self.n_train is None else self.rows.subset(np.arange(self.n_train, len(self.rows.labels)))


def as_inputs(samples: Any, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, device: torch.device | str = "cpu") -> Inputs:
    """Return `(samples − mean) / std` as inputs that are taken in batches.

    `samples` of shape (n, features), (n, height, width) or (n, channels, height, width) are an array, or anything that
    returns one when indexed; `mean` and `std` are per feature, or per channel of images.
    """
    if isinstance(samples, np.ndarray) and 4 * samples.size <= _IN_MEMORY_BYTES:
        x = _standardize(samples, mean, std).to(device)
        # A batch is one gather, with no Python per sample.
        return Inputs(len(x), tuple(x.shape[1:]), lambda index: x.index_select(0, index.to(x.device)))

    def fetch(index: Tensor) -> Tensor:
        return _standardize(np.asarray(samples[index.cpu().numpy()]), mean, std).to(device)

    return Inputs(len(samples), sample_shape(samples), fetch)


def sample_shape(samples: Any) -> tuple[int, ...]:
    """Return the shape of one sample as networks see it: images have a channel."""
    return (1, *samples.shape[1:]) if len(samples.shape) == 3 else tuple(samples.shape[1:])


def _standardize(samples: NDArray[Any], mean: ArrayLike, std: ArrayLike) -> Tensor:
    # In float32, features far from zero, such as timestamps, would lose their differences.
    dtype = np.float64 if samples.dtype == np.float64 else np.float32
    x = torch.from_numpy(np.array(samples, dtype)).reshape(len(samples), *sample_shape(samples))
    shape = (1, -1, *[1] * (x.ndim - 2))
    center, spread = (torch.as_tensor(np.asarray(each, dtype)).reshape(shape) for each in (mean, std))
    return x.sub_(center).div_(spread).to(torch.float32)


def shift(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Shift every image (n, C, H, W) by up to four pixels in each direction, padding with zeros."""
    if x.ndim != 4:
        raise InputError(f"Expected images to augment, got samples of shape {tuple(x.shape[1:])}. Omit augment.")
    n, _, height, width = x.shape
    top, left = torch.from_numpy(rng.integers(0, 2 * _MARGIN + 1, size=(2, n))).to(x.device)
    windows = F.pad(x, (_MARGIN,) * 4).unfold(2, height, 1).unfold(3, width, 1)  # a view: (n, C, 9, 9, H, W)
    return windows[torch.arange(n, device=x.device), :, top, left]


def shift_and_flip(x: Tensor, rng: np.random.Generator) -> Tensor:
    """`shift`, and mirror half of the images: the usual augmentation for CIFAR."""
    mirrored = torch.from_numpy(rng.random(len(x)) < 0.5).to(x.device)
    moved = shift(x, rng)
    return torch.where(mirrored[:, None, None, None], moved.flip(3), moved)


AUGMENTATIONS: dict[str, Augment] = {"shift": shift, "shift-flip": shift_and_flip}
