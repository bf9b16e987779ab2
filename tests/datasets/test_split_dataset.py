"""Splits: which rows go where, whose labels get noise, and which draw depends on what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualt.datasets import from_arrays, load_dataset, split_dataset
from dualt.errors import InputError, TransitionError
from dualt.noise import pair, symmetric

# Row k of the samples is k, so that every row shows where it came from.
N = 1_000
NUMBERED = from_arrays(np.arange(2.0 * N).reshape(N, 2), np.arange(N) % 4, name="numbered")


@settings(deadline=None)
@given(n_samples=st.none() | st.integers(2, N), fraction=st.floats(0.001, 0.999), seed=st.integers(0, 2**32 - 1))
def test_every_sample_is_in_one_part_with_its_own_label(n_samples, fraction, seed):
    split = split_dataset(
        NUMBERED, symmetric(4, 0.5), random_state=seed, validation_fraction=fraction, n_samples=n_samples
    )
    used = np.concatenate([split.train_index, split.val_index])
    assert len(np.unique(used)) == len(used) == (n_samples or N)
    assert len(split.val_index) == min(max(round(fraction * len(used)), 1), len(used) - 1)
    np.testing.assert_array_equal(split.clean_labels, used % 4)


def test_both_parts_are_noisy_at_the_rate_and_the_input_stays():
    data = load_dataset("synthetic", n_samples=20_000, n_test=10)
    before = data.train_y.copy()
    transition = np.array([[0.7, 0.3], [0.1, 0.9]])
    split = split_dataset(data, transition, random_state=5)
    for noisy, index in ((split.train_noisy, split.train_index), (split.val_noisy, split.val_index)):
        clean = data.train_y[index]
        assert noisy.dtype == np.int64
        for label in (0, 1):
            flipped = np.mean(noisy[clean == label] != label)
            rate = transition[label, 1 - label]
            spread = np.sqrt(rate * (1 - rate) / np.sum(clean == label))
            assert abs(flipped - rate) < 5 * spread
    np.testing.assert_array_equal(data.train_y, before)
    np.testing.assert_array_equal(split.transition, transition)


def test_without_a_transition_labels_stay():
    split = split_dataset(NUMBERED)
    np.testing.assert_array_equal(split.train_noisy, NUMBERED.train_y[split.train_index])
    assert split.transition is None
    assert (len(split.train_index), len(split.val_index)) == (800, 200)


def test_each_draw_has_a_stream_of_its_own():
    base = split_dataset(NUMBERED, pair(4, 0.45), random_state=1)
    again = split_dataset(NUMBERED, pair(4, 0.45), random_state=1)
    np.testing.assert_array_equal(base.train_noisy, again.train_noisy)
    other_noise = split_dataset(NUMBERED, symmetric(4, 0.2), random_state=1)
    np.testing.assert_array_equal(base.train_index, other_noise.train_index)
    assert (base.train_noisy != other_noise.train_noisy).any()
    other_fraction = split_dataset(NUMBERED, pair(4, 0.45), random_state=1, validation_fraction=0.5)
    assert noisy_by_row(base) == noisy_by_row(other_fraction)
    other_seed = split_dataset(NUMBERED, pair(4, 0.45), random_state=2)
    assert set(base.val_index) != set(other_seed.val_index)


def noisy_by_row(split):
    rows = np.concatenate([split.train_index, split.val_index]).tolist()
    return dict(zip(rows, np.concatenate([split.train_noisy, split.val_noisy]).tolist(), strict=True))


def test_smaller_subsamples_are_parts_of_larger_ones():
    small, large = (split_dataset(NUMBERED, n_samples=n, random_state=9) for n in (50, 400))
    rows = [set(split.train_index) | set(split.val_index) for split in (small, large)]
    assert rows[0] < rows[1]


def test_a_cut_of_the_training_part_leaves_validation_as_it_is():
    whole, cut, less = (split_dataset(NUMBERED, symmetric(4, 0.5), n_train=n) for n in (None, 300, 100))
    assert (len(cut.train_index), len(less.train_index)) == (300, 100)
    assert set(less.train_index) < set(cut.train_index) < set(whole.train_index)
    np.testing.assert_array_equal(cut.val_index, whole.val_index)
    np.testing.assert_array_equal(cut.val_noisy, whole.val_noisy)
    own = np.isin(whole.train_index, cut.train_index)
    np.testing.assert_array_equal(cut.train_noisy, whole.train_noisy[own])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_samples": 1_001}, InputError, "from 2 to 1,000.*got 1,001"),
        ({"n_train": 801}, InputError, "n_train from 2 to 800.*got 801"),
        ({"n_samples": 1}, InputError, "got 1"),
        ({"validation_fraction": 0.0}, InputError, "validation_fraction"),
        ({"validation_fraction": 1.0}, InputError, "validation_fraction"),
        ({"transition": symmetric(3, 0.2)}, TransitionError, "4×4 transition matrix, got 3×3"),
        ({"transition": [[1, 0], [0, 2]]}, TransitionError, "4×4|sum to 1"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        split_dataset(NUMBERED, **options)
