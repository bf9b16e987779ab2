"""`noisy_accuracy`: what is claimed holds."""

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt import noise
from dualt.audit import Audit
from dualt.audit.evaluation import largest_rate
from dualt.errors import InputError, ProbabilitiesError

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
    turned = dualt.noisy_accuracy(second, given, T, against=first).difference
    assert turned.bounds == pytest.approx([-limit for limit in found.difference.bounds[::-1]])
    assert found.better is None
    low, high = found.difference.bounds
    assert low <= (first == clean).mean() - (second == clean).mean() <= high


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
    assert dualt.noisy_accuracy(first - 1, given - 1, T).to_dict() == plain, "classes −1, 0 and 1"
    assert dualt.noisy_accuracy(first[:, None], given, T).to_dict() == plain, "a column of classes, as CatBoost's"
    assert dualt.noisy_accuracy(np.eye(3)[first] * 0.7 + 0.1, given, T).to_dict() == plain
    rows = np.arange(0, 4000, 10)
    by_name = dualt.noisy_accuracy(names[first], names[given], verified=(rows, names[clean[rows]]))
    assert by_name.to_dict() == dualt.noisy_accuracy(first, given, verified=(rows, clean[rows])).to_dict()


def test_columns_are_matched_by_name_and_rows_by_index(world):
    _, given, first, second = world
    names, probs = np.array(["cow", "ant", "bee"]), np.eye(3)[first] * 0.7 + 0.1
    frame = pd.DataFrame(probs, columns=names)
    estimate = dualt.estimate_transition(frame, names[given])
    plain = dualt.noisy_accuracy(names[first], names[given], estimate, against=names[second]).to_dict()
    moved = frame[["ant", "bee", "cow"]].sample(frac=1, random_state=0)
    rival = pd.Series(names[second]).sample(frac=1, random_state=1)
    assert dualt.noisy_accuracy(moved, pd.Series(names[given]), estimate, against=rival).to_dict() == plain
    # Of a mere matrix, the classes are those of the columns.
    by_columns = dualt.noisy_accuracy(frame, names[given], T).to_dict()
    assert by_columns == dualt.noisy_accuracy(first, given, T).to_dict()
    with pytest.raises(InputError, match=r"among the class names .* got 'elk'"):
        dualt.noisy_accuracy(frame.rename(columns={"cow": "elk"}), names[given], estimate)
    with pytest.raises(InputError, match="predictions with the index"):
        dualt.noisy_accuracy(frame.set_index(np.arange(4000) + 1), pd.Series(names[given]), estimate)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (np.full((4000, 3), np.nan), "finite probabilities, got nan at row 0"),
        (np.full((4000, 4), 0.25), "of 3 classes, one column each, got 4 columns"),
        (np.full((4000, 3), 0.5), "rows that sum to 1, got 1.5"),
    ],
)
def test_a_table_that_holds_no_probabilities_of_these_classes_is_refused(world, probs, message):
    with pytest.raises(ProbabilitiesError, match=message):
        dualt.noisy_accuracy(probs, world[1], T)


def test_an_estimate_without_an_upper_end_gives_no_bounds_and_a_singular_matrix_gives_some(world):
    clean, given, first, _ = world
    estimate = dualt.estimate_transition(T[clean] * 0.9 + 0.1 / 3, given)
    assert estimate.noise_rate_interval()[1] == 1
    assert dualt.noisy_accuracy(first, given, estimate).bounds is None
    assert dualt.noisy_accuracy(first, given, np.full((3, 3), 1 / 3)).bounds is not None


def test_the_bounds_of_an_audited_estimate_are_wider_for_other_labels(world):
    """For the labels that were audited its upper end counts; a few others may be wrong more often by chance."""
    clean, given, first, _ = world
    rows = np.random.default_rng(0).choice(4000, 400, replace=False)
    estimate = dualt.estimate_transition(T[clean] * 0.9 + 0.1 / 3, given, verified=(rows, clean[rows]))
    high, few = estimate.noise_rate_interval()[1], slice(0, 40)
    rate = largest_rate(estimate.transition, given[few])
    assert high < rate < 1
    for part, reach in ((slice(None), high), (few, rate)):
        agreement = (first[part] == given[part]).mean()
        expected = max(agreement - reach, 0), min(agreement + reach, 1)
        assert dualt.noisy_accuracy(first[part], given[part], estimate).bounds == pytest.approx(expected)


def test_refusals(world):
    clean, given, first, _ = world
    with pytest.raises(InputError, match="a transition or verified labels"):
        dualt.noisy_accuracy(first, given)
    with pytest.raises(InputError, match="one prediction per label"):
        dualt.noisy_accuracy(first[:-1], given, T)
    with pytest.raises(InputError, match="spelt alike"):
        dualt.noisy_accuracy(np.array(["Ant", "Bee", "Cow"])[first], np.array(["ant", "bee", "cow"])[given], T)
    rows = np.arange(20)
    with pytest.raises(InputError, match=r"given label \d in row 0, got"):
        dualt.noisy_accuracy(first, given, verified=Audit(rows, clean[rows], given=(given[rows] + 1) % 3))


def test_an_estimate_numbers_the_classes_in_its_own_order():
    rng = np.random.default_rng(0)
    truth = noise.pair(3, 0.3)
    clean = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    given = noise.corrupt(clean, truth, 1)
    estimate = dualt.estimate_transition(truth[clean], given, "spade", class_names=["ant", "bee", "cat"])
    expected = dualt.noisy_accuracy(np.eye(3)[clean], given, estimate)
    order = [2, 0, 1]  # of the columns: cat, ant, bee
    place = np.argsort(order)
    found = dualt.noisy_accuracy(np.eye(3)[place[clean]], place[given], estimate, class_names=["cat", "ant", "bee"])
    assert found.bounds == pytest.approx(expected.bounds)
