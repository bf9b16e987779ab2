"""Samples as tensors, and augmentation, against loops."""

import numpy as np
import pytest
import torch
from PIL import Image

from dualt.datasets import LazyImages
from dualt.errors import InputError
from dualt.nn import samples
from dualt.nn.samples import Part, TrainingData, as_inputs, shift, shift_and_flip


def test_channels_are_standardised():
    images = np.random.default_rng(0).integers(256, size=(5, 3, 4, 4), dtype=np.uint8)
    mean, std = np.array([25.0, 50.0, 75.0]), np.array([120.0, 150.0, 180.0])
    x = as_inputs(images, mean, std).take(torch.tensor([3, 0]))
    for row, sample in enumerate((3, 0)):
        for channel in range(3):
            expected = (images[sample, channel] - mean[channel]) / std[channel]
            np.testing.assert_allclose(x[row, channel], expected, atol=1e-6)


def test_grey_images_get_a_channel_and_vectors_stay():
    grey = as_inputs(np.zeros((2, 8, 8), np.uint8))
    assert (grey.shape, len(grey)) == ((1, 8, 8), 2)
    table = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    vectors = as_inputs(table, [1, 1], [1, 2])
    np.testing.assert_allclose(vectors.take(torch.tensor([0, 1])), [[0, 0.5], [2, 1.5]])
    np.testing.assert_array_equal(table, [[1, 2], [3, 4]])


def test_images_on_disk_and_samples_too_many_for_the_memory_are_streamed(tmp_path, monkeypatch):
    images = np.random.default_rng(1).integers(256, size=(4, 6, 6), dtype=np.uint8)
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for image, path in zip(images, paths, strict=True):
        Image.fromarray(image).save(path)
    index = torch.tensor([2, 1])
    expected = as_inputs(images, 0.4, 0.2).take(index)
    converted, standardize = [], samples._standardize

    def counted(values, *moments):
        converted.append(len(values))
        return standardize(values, *moments)

    monkeypatch.setattr(samples, "_standardize", counted)
    lazy = as_inputs(LazyImages(paths, (6, 6), mode="L"), 0.4, 0.2)
    assert lazy.shape == (1, 6, 6)
    torch.testing.assert_close(lazy.take(index), expected)
    monkeypatch.setattr(samples, "_IN_MEMORY_BYTES", 10)
    streamed = as_inputs(images, 0.4, 0.2)
    torch.testing.assert_close(streamed.take(index), expected)
    assert converted == [2, 2], "only what is taken is read and converted"


def test_a_subset_takes_its_own_rows():
    part = Part(as_inputs(np.arange(10, dtype=np.float32)[:, None]), torch.arange(10) * 10)
    some = part.subset(np.array([7, 2, 5]))
    assert some.labels.tolist() == [70, 20, 50]
    assert some.inputs.take(torch.tensor([2, 0])).squeeze(1).tolist() == [5, 7]
    assert (len(some.inputs), some.inputs.shape) == (3, (1,))


def test_shift_matches_the_loop():
    x = torch.randn(6, 2, 5, 7, generator=torch.Generator().manual_seed(0))
    moved = shift(x, np.random.default_rng(3))
    corners = np.random.default_rng(3).integers(0, 9, size=(2, 6))
    for sample in range(6):
        padded = torch.zeros(2, 13, 15)
        padded[:, 4:9, 4:11] = x[sample]
        top, left = corners[:, sample]
        torch.testing.assert_close(moved[sample], padded[:, top : top + 5, left : left + 7])


def test_flip_mirrors_some_and_only_mirrors():
    x = torch.randn(40, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    flipped = shift_and_flip(x, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    mirrored = rng.random(40) < 0.5
    moved = shift(x, rng)
    assert 5 < mirrored.sum() < 35
    for sample in range(40):
        expected = moved[sample].flip(2) if mirrored[sample] else moved[sample]
        assert torch.equal(flipped[sample], expected)


def test_the_first_rows_are_trained_on_and_the_others_validate():
    part = Part(as_inputs(np.arange(5, dtype=np.float32)[:, None]), torch.arange(5))
    data = TrainingData(part, 3)
    assert (data.train.labels.tolist(), data.validation.labels.tolist()) == ([0, 1, 2], [3, 4])
    assert data.validation.inputs.take(torch.tensor([1])).item() == 4
    assert (len(TrainingData(part).train.labels), TrainingData(part).validation) == (5, None)


@pytest.mark.parametrize("name", ["cuda:99", "abacus", "meta"])
def test_devices_that_are_not_there_are_refused(name):
    with pytest.raises(InputError, match=f"device of this machine, got '{name}'"):
        samples.torch_device(name)
