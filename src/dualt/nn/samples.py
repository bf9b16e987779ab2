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
# Distance of the mean from zero, in standard deviations, beyond which float32 is too coarse.
_FAR = 1e4
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

    def followed_by(self, other: Part) -> Part:
        """Return this part followed by the other, without copying samples."""
        first, second = self.inputs, other.inputs

        def take(index: Tensor) -> Tensor:
            is_first = index < len(first)
            ours, theirs = first.take(index[is_first]), second.take(index[~is_first] - len(first))
            samples, is_first = ours.new_empty(len(index), *first.shape), is_first.to(ours.device)
            samples[is_first], samples[~is_first] = ours, theirs
            return samples

        inputs = Inputs(len(first) + len(second), first.shape, take)
        return Part(inputs, torch.cat([self.labels, other.labels]))


class TrainingData(NamedTuple):
    """Noisy training and validation parts and a clean test part; the last two may be missing."""

    train: Part
    validation: Part | None = None
    test: Part | None = None


def as_inputs(samples: Any, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, device: torch.device | str = "cpu") -> Inputs:
    """Return `(samples − mean) / std`, with uint8 divided by 255 first, as inputs that are taken in batches.

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


def as_bytes(samples: NDArray[Any]) -> NDArray[Any]:
    """Return integer pixels from 0 to 255 as uint8, to be divided by 255, and floats from 0 to 1 unchanged."""
    if samples.dtype == np.uint8 or not samples.size:
        return samples
    lowest, highest, whole = samples.min(), samples.max(), samples.dtype.kind in "iu"
    if lowest < 0 or highest > (255 if whole else 1):
        raise InputError(
            "Expected pixels as the model was trained on, whole numbers from 0 to 255 or floats from 0 to 1, got"
            f" {samples.dtype} from {lowest:g} to {highest:g}. Pass them as uint8, or divided by 255."
        )
    return samples.astype(np.uint8) if whole else samples


def sample_shape(samples: Any) -> tuple[int, ...]:
    """Return the shape of one sample as networks see it: images have a channel."""
    return (1, *samples.shape[1:]) if len(samples.shape) == 3 else tuple(samples.shape[1:])


def _standardize(samples: NDArray[Any], mean: ArrayLike, std: ArrayLike) -> Tensor:
    scale = 255.0 if samples.dtype == np.uint8 else 1.0
    # In float32, features far from zero, such as timestamps, would lose their differences.
    is_far = samples.dtype == np.float64 and bool((np.abs(mean) > _FAR * np.asarray(std)).any())
    dtype = np.float64 if is_far else np.float32
    with np.errstate(over="ignore"):  # the model refuses what does not fit
        x = torch.from_numpy(np.array(samples, dtype)).reshape(len(samples), *sample_shape(samples))
    along = (1, -1, *[1] * (x.ndim - 2))
    center = torch.as_tensor(np.asarray(mean, dtype) * scale).reshape(along)
    spread = torch.as_tensor(np.asarray(std, dtype) * scale).reshape(along)
    return x.sub_(center).div_(spread).to(torch.float32)


def shift(x: Tensor, rng: np.random.Generator) -> Tensor:
    """Shift every image (n, C, H, W) by up to four pixels in each direction, padding with zeros."""
    if x.ndim != 4:
        raise InputError(f"Expected images to augment, got samples of shape {tuple(x.shape[1:])}. Omit augment.")
    n, _, height, width = x.shape
    corners = torch.from_numpy(rng.integers(0, 2 * _MARGIN + 1, size=(2, n))).to(x.device)
    rows = corners[0][:, None] + torch.arange(height, device=x.device)
    columns = corners[1][:, None] + torch.arange(width, device=x.device)
    padded = F.pad(x, (_MARGIN,) * 4)
    samples = torch.arange(n, device=x.device)[:, None, None]
    # Index arrays on both sides of a slice put the channels last.
    return padded[samples, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2).contiguous()


def shift_and_flip(x: Tensor, rng: np.random.Generator) -> Tensor:
    """`shift`, and mirror half of the images: the usual augmentation for CIFAR."""
    mirrored = torch.from_numpy(rng.random(len(x)) < 0.5).to(x.device)
    moved = shift(x, rng)
    return torch.where(mirrored[:, None, None, None], moved.flip(3), moved)


AUGMENTATIONS: dict[str, Augment] = {"shift": shift, "shift-flip": shift_and_flip}
