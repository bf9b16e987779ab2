"""`noisy_accuracy`: what is claimed holds, and what rests on an assumption is never headlined."""

import numpy as np
import pytest

import dualt
from dualt import noise
from dualt.audit import Audit
from dualt.errors import InputError

T = noise.pair(3, 0.3)


@pytest.fixture(scope="module")
def world():
    """Two models; the first repeats some of the labels' errors."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, 4000)
    given = noise.corrupt(clean, T, random_state=1)
    second = np.where(rng.random(4000) < 0.8, clean, rng.integers(0, 3, 4000))
    first = np.where(rng.random(4000) < 0.5, given, np.where(rng.random(4000) < 0.9, clean, 0))
    return clean, given, first, second


def test_without_an_audit_only_the_bounds_are_claimed(world):
    clean, given, first, second = world
    found = dualt.noisy_accuracy(first, given, T, against=second)
    assert found.interval == found.bounds
    assert found.bounds[0] <= (first == clean).mean() <= found.bounds[1]
    assert found.audited is None
    # The first model repeats the labels' errors: through T it looks better than it is, and better than the second.
    assert found.through_transition.low > (first == clean).mean()
    assert found.difference.through_transition.low > 0 > (first == clean).mean() - (second == clean).mean()
    assert found.better is None
    low, high = found.difference.bounds
    assert low <= (first == clean).mean() - (second == clean).mean() <= high
    assert "assumes" in found.to_dict()["through_transition"]


def test_an_audit_tells_which_model_is_better(world):
    clean, given, first, second = world
    held, told = [], []
    for seed in range(40):
        rows = np.random.default_rng(seed).choice(4000, 400, replace=False)
        found = dualt.noisy_accuracy(first, given, verified=(rows, clean[rows]), against=second)
        low, high = found.interval
        held.append(low <= (first == clean).mean() <= high)
        told.append(found.better)
    assert np.mean(held) >= 0.87
    assert "first" not in told
    assert told.count("second") > 10


def test_names_probabilities_and_one_hot_labels_mean_the_same(world):
    clean, given, first, _ = world
    names = np.array(["ant", "bee", "cow"])
    plain = dualt.noisy_accuracy(first, given, T).to_dict()
    assert dualt.noisy_accuracy(names[first], names[given], T).to_dict() == plain
    assert dualt.noisy_accuracy(np.eye(3)[first] * 0.5 + 0.1, given, T).to_dict() == plain
    rows = np.arange(0, 4000, 10)
    by_name = dualt.noisy_accuracy(names[first], names[given], verified=(rows, names[clean[rows]]))
    assert by_name.to_dict() == dualt.noisy_accuracy(first, given, verified=(rows, clean[rows])).to_dict()


def test_an_estimate_bounds_by_the_most_noise_that_it_leaves_open(world):
    clean, given, first, _ = world
    estimate = dualt.estimate_transition(T[clean] * 0.9 + 0.1 / 3, given)
    found = dualt.noisy_accuracy(first, given, estimate)
    assert found.bounds[1] - found.agreement >= estimate.noise_rate_range[1] - 1e-9 or found.bounds[1] == 1


def test_a_singular_matrix_gives_bounds_alone(world):
    _, given, first, _ = world
    found = dualt.noisy_accuracy(first, given, np.full((3, 3), 1 / 3))
    assert found.through_transition is None
    assert found.bounds is not None


def test_refusals(world):
    clean, given, first, _ = world
    with pytest.raises(InputError, match="a transition or verified labels"):
        dualt.noisy_accuracy(first, given)
    with pytest.raises(InputError, match="one prediction per label"):
        dualt.noisy_accuracy(first[:-1], given, T)
    with pytest.raises(InputError, match="at least 10 verified"):
        dualt.noisy_accuracy(first, given, verified=([1], [0]))
    rows = np.arange(20)
    with pytest.raises(InputError, match="an audit of these 4,000"):
        dualt.noisy_accuracy(first, given, verified=Audit(rows, clean[rows], labels_digest="0"))


def test_an_estimated_matrix_leaves_more_open_than_a_known_one():
    rng = np.random.default_rng(5)
    clean = rng.integers(0, 3, 300)
    given = noise.corrupt(clean, T, random_state=2)
    probs = (0.94 * np.eye(3)[clean] + 0.02) @ T
    estimate = dualt.estimate_transition(probs, given)
    known = dualt.noisy_accuracy(clean, given, estimate.transition).through_transition
    estimated = dualt.noisy_accuracy(clean, given, estimate).through_transition
    assert estimated.estimate == known.estimate
    assert estimated.standard_error > known.standard_error
