"""Intervals against hand-computed values, loops, laws and simulated coverage."""

import numpy as np
import pytest
from scipy.stats import beta, hypergeom

from dualt.audit import intervals as pp


def test_perfect_predictions_give_the_mean_of_all_rows():
    truth = np.array([1.0] * 3 + [0] * 7)[:, None]
    found = pp.share_intervals((truth, truth, np.array([0.25])), 1000)
    assert found.estimate[0] == pytest.approx(0.25)
    assert found.low[0] < 0.25 < found.high[0]  # ten rows are not proof that predictions are always right


def test_no_wrong_label_found_is_wilsons_interval_of_the_audit():
    found = pp.share_intervals((np.zeros((50, 1)), np.zeros((50, 1)), np.zeros(1)), 10**9)
    assert (found.low[0], found.estimate[0]) == (0, 0)
    assert found.high[0] == pytest.approx(wilson(0, 50)[1], rel=1e-6)


@pytest.mark.parametrize(("n_samples", "n_verified"), [(100, 80), (1000, 50)])
def test_what_nobody_found_may_be_among_the_few_that_are_left(n_samples, n_verified):
    """The chance of drawing none of the wrong labels, counted exactly, is what the limit leaves."""
    none = np.zeros((n_verified, 1))
    found = pp.share_intervals((none, none, np.zeros(1)), n_samples)
    n_wrong = int(np.ceil(found.high[0] * n_samples + 1e-9))
    assert hypergeom(n_samples, n_wrong, n_verified).pmf(0) < 0.05
    every = pp.share_intervals((none + 1, none, np.zeros(1)), n_samples)
    assert every.low[0] == pytest.approx(1 - found.high[0])


@pytest.mark.parametrize("size", [14, 49, 400])
def test_a_census_leaves_no_doubt(size):
    none = np.zeros((size, 1))
    found = pp.share_intervals((none, none, np.zeros(1)), size)
    assert (found.low[0], found.high[0]) == pytest.approx((0, 0), abs=1e-12)
    truth = np.array([1.0, 0, 0, 1])[:, None]
    found = pp.share_intervals((truth, np.full((4, 1), 0.2), np.array([0.2])), 4)
    np.testing.assert_allclose([found.estimate[0], found.low[0], found.high[0]], 0.5, atol=1e-6)


def test_estimate_and_variance_are_those_of_the_textbook():
    rng = np.random.default_rng(0)
    truth, predicted = (rng.random(20) < 0.4).astype(float), rng.random(20)
    tuning = np.clip(np.cov(truth, predicted)[0, 1] / predicted.var(ddof=1), 0, 1)
    target, ones = (truth[:, None], predicted[:, None], np.array([0.37])), np.ones((20, 1))
    whole = ones, ones, np.ones(1)
    share, variance = pp._estimated(target, whole, pp._tuning(*target[:2]), unseen=1 - 20 / 147)
    assert share[0] == pytest.approx(tuning * 0.37 + (truth - tuning * predicted).mean())
    assert variance[0] == pytest.approx((1 - 20 / 147) * (truth - tuning * predicted).var(ddof=1) / 20)


def make(seed=0, n=3000, bias=0.5):
    """A data set with instance-dependent noise and predictions that are badly calibrated."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, n)
    hard = rng.beta(0.5, 2, n)
    given = np.where(rng.random(n) < hard, (true + 1) % 3, true)
    posterior = np.zeros((n, 3))
    rows = np.arange(n)
    # All that is known: the given label, and a distorted view of how hard the row is.
    right = 1 - np.clip(hard**2 * bias + 0.05, 0, 1)
    posterior[rows, given] = right
    posterior[rows, (given + 2) % 3] += (1 - right) * 0.8
    posterior[rows, (given + 1) % 3] += (1 - right) * 0.2
    joint = np.zeros((3, 3))
    for j in range(3):
        joint[:, j] = posterior[given == j].sum(axis=0) / n
    truth = np.zeros((3, 3))
    np.add.at(truth, (true, given), 1 / n)
    return true, given, posterior, joint, truth


def test_estimates_are_in_their_intervals():
    true, given, posterior, joint, _ = make()
    rows = np.random.default_rng(1).choice(3000, 300, replace=False)
    verified = pp.Verified(given[rows], true[rows], posterior[rows], joint, 3000)
    for found in (pp.transition_intervals(verified), pp.rate_interval(verified)):
        assert (found.low <= found.estimate).all()
        assert (found.estimate <= found.high).all()


def test_an_entry_is_the_ratio_of_two_difference_estimates():
    true, given, posterior, joint, _ = (each[::10] if len(each) > 3 else each for each in make(bias=4))
    found = pp.transition_intervals(pp.Verified(given, true, posterior, joint, 3000))
    is_class, is_given, predicted = true == 0, given == 1, posterior[:, 0]
    share = joint[0, 1] / joint[0].sum()
    for _ in range(3):
        truth, expected = is_class * (is_given - share), predicted * (is_given - share)
        tuning = np.cov(truth, expected)[0, 1] / expected.var(ddof=1)
        part = tuning * joint[0, 1] + (is_given * (is_class - tuning * predicted)).mean()
        share = part / (tuning * joint[0].sum() + (is_class - tuning * predicted).mean())
    assert 0 < tuning < 1
    assert found.estimate[0, 1] == pytest.approx(share)


def test_intervals_hold_whatever_the_bias_of_the_predictions():
    true, given, posterior, joint, truth = make()
    rng = np.random.default_rng(2)
    holds = {"rate": [], "entry": []}
    matrix = truth / truth.sum(axis=1, keepdims=True)
    for _ in range(300):
        rows = rng.choice(3000, 150, replace=False)
        verified = pp.Verified(given[rows], true[rows], posterior[rows], joint, 3000)
        for name, found, target in (
            ("rate", pp.rate_interval(verified), 1 - np.trace(truth)),
            ("entry", pp.transition_intervals(verified), matrix),
        ):
            holds[name].append(((found.low <= target) & (target <= found.high)).mean())
    for name, values in holds.items():
        assert np.mean(values) > 0.93, name


def test_rare_errors_are_held_too():
    rng = np.random.default_rng(3)
    wrong = (rng.random(20000) < 0.01).astype(float)
    predicted = np.clip(0.5 * wrong * (rng.random(20000) < 0.5) + 0.02 * rng.random(20000), 0, 1)
    held = []
    for _ in range(600):
        rows = rng.choice(20000, 200, replace=False)
        found = pp.share_intervals((wrong[rows, None], predicted[rows, None], predicted.mean(keepdims=True)), 20000)
        held.append(found.low[0] <= wrong.mean() <= found.high[0])
    assert np.mean(held) > 0.92


def wilson(share, n, z2=1.959964**2):
    """Wilson's interval of a share among n rows."""
    root = np.sqrt(z2 * share * (1 - share) / n + z2**2 / (4 * n**2))
    return (share + z2 / (2 * n) - root) / (1 + z2 / n), (share + z2 / (2 * n) + root) / (1 + z2 / n)


def by_loop(right, agree, share, z2=1.959964**2):
    """Wilson's interval with the rows that counting would need, or counting's, moved towards the exact one."""
    n, plain = len(right), sum(right) / len(right)
    means = [np.mean([r for r, a in zip(right, agree, strict=True) if a == cell]) for cell in (0, 1)]
    slope = max(means[1] - means[0], 0)
    estimate = plain + slope * (share - sum(agree) / n)
    residuals = [r - slope * a for r, a in zip(right, agree, strict=True)]
    rarer = min(sum(right), n - sum(right))
    gain = (rarer * np.var(residuals) / np.var(right) + z2) / (rarer + z2)
    counting, assisted = wilson(plain, n), wilson(estimate, n / gain)
    low, high = counting
    if assisted[1] - assisted[0] < high - low:
        low, high, rows = *assisted, n / gain
        exact = beta(estimate * rows, (1 - estimate) * rows + 1), beta(estimate * rows + 1, (1 - estimate) * rows)
        below, above = max(low - exact[0].ppf(0.025), 0), max(exact[1].ppf(0.975) - high, 0)
        reach = min(1, (counting[1] - counting[0] - (high - low)) / (below + above))
        low, high = low - reach * below, high + reach * above
    return low, high


@pytest.mark.parametrize(
    ("yes", "sizes", "share"),
    [
        ((38, 3), (40, 10), 0.8),
        ((38, 3), (40, 10), 0.7),
        ((19, 0), (20, 30), 0.6),
        ((3, 40), (6, 44), 0.1),  # they agree where the model is wrong: counting
        ((49, 3), (50, 4), 0.8),
    ],
)
def test_an_interval_is_wilsons_with_more_rows_and_wider_towards_the_exact_one(yes, sizes, share):
    right = np.concatenate([np.arange(n) < k for k, n in zip(yes, sizes, strict=True)]).astype(float)
    agree = np.repeat([1.0, 0.0], sizes)
    found = pp.share_intervals((right[:, None], agree[:, None], np.array([share])), 10**9)
    assert (found.low[0], found.high[0]) == pytest.approx(by_loop(right, agree, share), abs=1e-6)
    low, high = wilson(right.mean(), len(right))
    assert found.high[0] - found.low[0] <= high - low + 1e-9


def test_predictions_that_say_nothing_leave_wilsons_interval():
    truth, predicted = np.tile([1.0, 1, 1, 0], 20)[:, None], np.repeat([0.0, 1], 40)[:, None]
    found = pp.share_intervals((truth, predicted, np.array([0.7])), 10**9)
    np.testing.assert_allclose(np.ravel(found), (0.75, *wilson(0.75, 80)), atol=1e-6)


def test_a_class_without_verified_rows_is_unknown():
    _, given, posterior, joint, _ = make()
    verified = pp.Verified(given[:20], np.zeros(20, int), posterior[:20], joint, 3000)
    found = pp.transition_intervals(verified)
    assert (found.low[1, 1], found.high[1, 1]) == (0, 1)
