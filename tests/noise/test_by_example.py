import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualt import noise
from dualt.errors import InputError, LabelsError

KINDS = [noise.weak_annotators, noise.part_dependent]


def blobs(n_samples=600, n_classes=3, seed=0):
    """Return two-dimensional features of classes that overlap, and the classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_samples) % n_classes
    turn = 2 * np.pi * labels / n_classes
    return np.column_stack([np.cos(turn), np.sin(turn)]) * 2 + rng.normal(size=(n_samples, 2)), labels


X, Y = blobs()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(rate=st.floats(0, 1), n_classes=st.integers(2, 6), seed=st.integers(0, 1000))
def test_rows_are_distributions_of_the_wished_mean_rate(kind, rate, n_classes, seed):
    features, labels = blobs(400, n_classes, seed)
    noisy, distributions = kind(features, labels, rate, seed)
    assert distributions.shape == (400, n_classes)
    assert distributions.min() >= 0
    np.testing.assert_allclose(distributions.sum(axis=1), 1)
    wrong = 1 - distributions[np.arange(400), labels]
    # Annotators are tuned to the rate; the rates of part-dependent noise are drawn, with a deviation of at most 0.1.
    assert abs(wrong.mean() - rate) < (1e-6 if kind is noise.weak_annotators else 5 * 0.1 / np.sqrt(400))
    # Labels are independent draws: five standard deviations.
    assert abs((noisy != labels).mean() - rate) < 5 * np.sqrt(0.25 / 400) + 0.025


@pytest.mark.parametrize("kind", KINDS)
def test_the_expected_matrix_is_the_mean_of_the_rows_of_a_class(kind):
    features, labels = blobs(30_000)
    noisy, distributions = kind(features, labels, 0.3, 2)
    expected = noise.expected_transition(distributions, labels)
    for label in range(3):
        np.testing.assert_allclose(expected[label], distributions[labels == label].sum(axis=0) / 10_000)
        shares = np.bincount(noisy[labels == label], minlength=3) / 10_000
        np.testing.assert_allclose(shares, expected[label], atol=5 * np.sqrt(0.25 / 10_000))


def test_annotators_err_where_classes_meet_and_towards_the_class_that_is_near():
    _, distributions = noise.weak_annotators(X, Y, 0.2)
    wrong = 1 - distributions[np.arange(len(Y)), Y]
    centres = np.array([X[label == Y].mean(axis=0) for label in range(3)])
    distance = np.linalg.norm(X[:, None] - centres, axis=2)
    nearer = np.sort(distance, axis=1)
    hard = nearer[:, 1] - nearer[:, 0] < 0.5
    assert wrong[hard].mean() > 2 * wrong[~hard].mean()
    others = distributions.copy()
    others[np.arange(len(Y)), Y] = -1
    distance[np.arange(len(Y)), Y] = np.inf
    assert (others.argmax(axis=1) == distance.argmin(axis=1)).mean() > 0.8


def part_dependent_by_hand(features, labels, rate, seed):
    """The formula of the docstring, example by example, from the same numbers in the same order."""
    from scipy.stats import norm, truncnorm

    rng = np.random.default_rng(seed)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    reach = min(rate, 1 - rate) / 0.1
    uniform = rng.uniform(1 - norm.cdf(reach), norm.cdf(reach), len(labels))
    # Uniform between two values of the normal's distribution function: rescaled it is that of the truncated normal.
    share = (uniform - norm.cdf(-reach)) / (norm.cdf(reach) - norm.cdf(-reach))
    rates = truncnorm.ppf(share, -reach, reach, rate, 0.1)
    n_classes = labels.max() + 1
    weights = rng.normal(size=(n_classes, scaled.shape[1], n_classes))
    rows = []
    for x, y, q in zip(scaled, labels, rates, strict=True):
        p = [np.exp(2 * (x @ weights[y])[j] / np.sqrt(len(x))) if j != y else 0.0 for j in range(n_classes)]
        rows.append([1 - q if j == y else q * p[j] / sum(p) for j in range(n_classes)])
    return np.array(rows)


def test_part_dependent_noise_is_its_formula():
    _, distributions = noise.part_dependent(X[:60], Y[:60], 0.25, np.random.default_rng(5))
    np.testing.assert_allclose(distributions, part_dependent_by_hand(X[:60], Y[:60], 0.25, 5), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_noise_and_the_input_is_kept(kind):
    before = X.copy(), Y.copy()
    first, again, other = (kind(X, Y, 0.3, seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.noisy_labels, again.noisy_labels)
    np.testing.assert_array_equal(first.distributions, again.distributions)
    assert (first.noisy_labels != other.noisy_labels).any()
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_labels_come_back_in_kind_and_mean_the_same(kind):
    numbers = kind(X, Y, 0.3).noisy_labels
    names = np.array(["a", "b", "c"])
    assert kind(X, names[Y], 0.3).noisy_labels.tolist() == names[numbers].tolist()
    assert kind(X, np.eye(3, dtype=int)[Y], 0.3).noisy_labels.argmax(axis=1).tolist() == numbers.tolist()
    assert kind(X, Y.astype(np.int8), 0.3).noisy_labels.dtype == np.int8
    assert kind(X.reshape(len(X), 2, 1), Y, 0.3).noisy_labels.tolist() == numbers.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_without_examples_is_a_column_and_a_row(kind):
    distributions = kind(X, np.where(Y == 1, 3, Y), 0.3).distributions
    assert distributions.shape == (len(Y), 4)
    expected = noise.expected_transition(distributions, np.where(Y == 1, 3, Y))
    assert expected[1].tolist() == [0, 1, 0, 0]
    if kind is noise.weak_annotators:  # nobody has seen it
        assert distributions[:, 1].max() == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("features", "labels", "rate", "error", "message"),
    [
        (X, Y, 1.5, InputError, r"rate in \[0, 1\], got 1\.5"),
        (X, Y, "much", InputError, "rate"),
        (X[:5], Y, 0.2, InputError, "per label, got 5 rows and 600 labels"),
        (X[:, 0], Y, 0.2, InputError, r"shape \(n_samples, \.\.\.\), got shape \(600,\)"),
        (X.astype(str), Y, 0.2, InputError, "numeric features"),
        (np.where(np.arange(1200).reshape(600, 2) == 7, np.nan, X), Y, 0.2, InputError, "nan at row 3, column 1"),
        (X, np.zeros(600, int), 0.2, LabelsError, "two classes, got only '0'"),
        (X, np.ones(600, int), 0.2, LabelsError, "at least two classes, got only '1'"),
        (X, np.where(Y == 2, -1, Y), 0.2, LabelsError, "got -1 at row 2"),
        (X, np.where(Y == 2, np.nan, Y), 0.2, LabelsError, "a label for every row, got nan at row 2"),
        (X, np.where(Y == 2, "", Y.astype(str)), 0.2, LabelsError, "a label for every row, got '' at row 2"),
    ],
)
def test_bad_input_is_refused(kind, features, labels, rate, error, message):
    with pytest.raises(error, match=message):
        kind(features, labels, rate)


def test_distributions_that_are_none_are_refused():
    with pytest.raises(InputError, match="3 rows and 2 labels"):
        noise.expected_transition(np.eye(3), [0, 1])
    with pytest.raises(InputError, match=r"sum to 1, got 0\.6 at row 0"):
        noise.expected_transition([[0.5, 0.1], [0.2, 0.3]], [0, 1])
    rounded = noise.expected_transition([[0.335, 0.655], [0, 1]], [0, 1])
    np.testing.assert_allclose(rounded.sum(axis=1), 1)
