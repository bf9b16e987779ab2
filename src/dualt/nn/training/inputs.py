"""Samples as batches of tensors: in memory where they fit, else fetched batch by batch."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

# Samples that take no more than this as float32 are converted once and stay on the device.
_IN_MEMORY_BYTES = 4 << 30


class Inputs(Protocol):
    """Samples that can be taken by their indices, as float32 on the device."""

    def __len__(self) -> int:
        """Return the number of samples."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""

    def take(self, index: Tensor) -> Tensor:
        """Return the samples of `index`."""


class TensorInputs:
    """Samples in memory: a batch is one gather, with no Python per sample."""

    def __init__(self, samples: Tensor) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self._samples.shape[1:])

    def take(self, index: Tensor) -> Tensor:
        """Return the samples of `index`."""
        return self._samples.index_select(0, index.to(self._samples.device))


class StreamedInputs:
    """Samples too many for the memory, or decoded on demand: standardised batch by batch."""

    def __init__(self, samples: Any, mean: ArrayLike, std: ArrayLike, device: torch.device) -> None:
        self._samples, self._mean, self._std, self._device = samples, mean, std, device

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return sample_shape(self._samples)

    def take(self, index: Tensor) -> Tensor:
        """Return the samples of `index`."""
        chosen = np.asarray(self._samples[index.cpu().numpy()])
        return _standardize(chosen, self._mean, self._std).to(self._device)


class _Subset:
    """Some rows of other inputs."""

    def __init__(self, inputs: Inputs, rows: Tensor) -> None:
        self._inputs, self._rows = inputs, rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self._inputs.shape

    def take(self, index: Tensor) -> Tensor:
        """Return the samples of `index`."""
        return self._inputs.take(self._rows.index_select(0, index.to(self._rows.device)))


class Part(NamedTuple):
    """Samples and their labels."""

    inputs: Inputs
    labels: Tensor

    def subset(self, rows: NDArray[np.intp]) -> Part:
        """Return the samples and labels of `rows`, without copying samples."""
        index = torch.from_numpy(rows).to(self.labels.device)
        return Part(_Subset(self.inputs, index), self.labels[index])


class TrainingData(NamedTuple):
    """Noisy training and validation parts and a clean test part; the last two may be missing."""

    train: Part
    validation: Part | None = None
    test: Part | None = None


def as_inputs(samples: Any, mean: ArrayLike = 0.0, std: ArrayLike = 1.0, device: torch.device | str = "cpu") -> Inputs:
    """Return `(samples − mean) / std`, of x/255 if uint8, ready to be taken in batches.

    Parameters
    ----------
    samples : (n, features), (n, height, width) or (n, channels, height, width)
        Array, or anything that gives one when indexed.
    mean, std
        Per feature, or per channel of images.
    device
    """
    device = torch.device(device)
    if isinstance(samples, np.ndarray) and 4 * samples.size <= _IN_MEMORY_BYTES:
        return TensorInputs(_standardize(samples, mean, std).to(device))
    return StreamedInputs(samples, mean, std, device)


def sample_shape(samples: Any) -> tuple[int, ...]:
    """Return the shape of one sample as networks see it: images have a channel."""
    return (1, *samples.shape[1:]) if len(samples.shape) == 3 else tuple(samples.shape[1:])


def _standardize(samples: NDArray[Any], mean: ArrayLike, std: ArrayLike) -> Tensor:
    scale = 255.0 if samples.dtype == np.uint8 else 1.0
    x = torch.from_numpy(np.ascontiguousarray(samples)).to(torch.float32, copy=True)
    x = x.reshape(len(samples), *sample_shape(samples))
    along = (1, -1) if x.ndim == 2 else (1, -1, 1, 1)
    center = torch.as_tensor(np.asarray(mean, np.float32) * scale).reshape(along)
    spread = torch.as_tensor(np.asarray(std, np.float32) * scale).reshape(along)
    return x.sub_(center).div_(spread)
