"""One seed, many independent streams."""

import subprocess
import sys

import numpy as np

from dualt.rng import as_generator, stream, stream_seed


def test_a_generator_is_taken_as_it_is_and_a_seed_makes_one():
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_generator(None).random() != as_generator(None).random()


def test_streams_differ_by_seed_and_name():
    draws = {stream(seed, name).random() for seed in (0, 1) for name in ("data", "noise", "init", "batches")}
    assert len(draws) == 8


def test_streams_of_two_names_are_uncorrelated():
    """A correlation of 10,000 independent pairs has a standard deviation of 0.01."""
    first, second = (stream(0, name).standard_normal(10_000) for name in ("noise", "batches"))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05


def test_streams_are_the_same_in_every_process():
    """The hash of a string differs from process to process; the stream of a name must not."""
    code = "from dualt.rng import stream_seed; print(stream_seed(7, 'noise'))"
    environment = {"PYTHONHASHSEED": "12345"}
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(other.stdout) == stream_seed(7, "noise")
    assert 0 <= stream_seed(7, "noise") < 2**31


def test_global_state_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream(0, "noise").random(100)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
