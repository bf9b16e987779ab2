"""The default against a reference written by loops, its laws, and what it claims."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualt
from dualt import noise
from dualt.crossfit import out_of_fold_probabilities
from dualt.estimators._counts import pooled_rows
from dualt.estimators.clean_count import _Counted, _not_refuted, clean_count
from dualt.rows import as_posterior

SHARES = [0, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 1]


def clean_by_loops(p, transition, powers=(1,) * 8, start=None):
    """EM steps from the uniform distribution, or from another, with the factor of each step to a power."""
    n_classes = len(p)
    q = [1 / n_classes] * n_classes if start is None else start
    for power in powers:
        noisy = [sum(q[i] * transition[i][j] for i in range(n_classes)) for j in range(n_classes)]
        q = [
            q[i] * sum(p[j] / noisy[j] * transition[i][j] for j in range(n_classes) if noisy[j] > 0) ** power
            for i in range(n_classes)
        ]
    return q


def counted_by_loops(rows, labels, transition):
    """Return weighted counts[clean, given], weights, and the sureness of every row."""
    posteriors = [clean_by_loops(p, transition) for p in rows]
    full = min(0.9, max(map(max, posteriors)))
    counts, weights = np.zeros((rows.shape[1],) * 2), []
    for q, label in zip(posteriors, labels, strict=True):
        weights.append(round(min(1, max(q) / full) ** 8 * 1024) / 1024)
        counts[int(np.argmax(q)), label] += weights[-1]
    return counts, np.array(weights), np.array([max(q) for q in posteriors])


def start_by_loops(rows, labels):
    """Return the confident joint."""
    n_classes = rows.shape[1]
    members = [[p[k] for p, y in zip(rows, labels, strict=True) if y == k] for k in range(n_classes)]
    means = [np.mean(own) if own else math.inf for own in members]
    joint = np.zeros((n_classes, n_classes))
    for p, y in zip(rows, labels, strict=True):
        reached = [k for k in range(n_classes) if p[k] >= means[k] * (1 - 1e-12)]
        if reached:
            joint[y, max(reached, key=lambda k: p[k])] += 1
    joint = np.maximum(joint, np.eye(n_classes))
    joint = joint / joint.sum(axis=1, keepdims=True) * np.bincount(labels, minlength=n_classes)[:, None]
    columns = joint.sum(axis=0)
    return np.array([joint[:, k] / columns[k] if columns[k] else np.eye(n_classes)[k] for k in range(n_classes)])


def clean_count_by_loops(probs, labels, power, determined):
    """Return the matrix, the rows counted per clean class, and what is claimed at least."""
    n_classes = probs.shape[1]
    rows = (probs + 0.01 / n_classes) ** power
    rows /= rows.sum(axis=1, keepdims=True)
    matrix = start_by_loops(rows, labels)
    for _ in range(6):
        counts, weights, sureness = counted_by_loops(rows, labels, matrix)
        matrix = pooled_rows(counts)
        if (max(sureness) - 1 / n_classes) / (1 - 1 / n_classes) < 0.3:  # even the surest row
            break
    parts = [np.eye(n_classes) + share * (matrix - np.eye(n_classes)) for share in SHARES]
    fits = np.zeros((len(SHARES), len(rows)))
    for place, (p, y) in enumerate(zip(rows, labels, strict=True)):
        q = p
        for number, part in enumerate(parts):
            q = clean_by_loops(p, part, (3, 1) * 3, start=q) if number else p
            fits[number, place] = math.log(max(sum(q[i] * part[i, y] for i in range(n_classes)) / sum(q), 1e-12))
    best = int(np.argmax(fits.sum(axis=1)))

    def holds(number, against):
        gain = fits[number] - fits[against]
        return gain.sum() >= -3 * gain.std() * math.sqrt(len(gain)) - 4.5

    halves = [max(k for k, share in enumerate(SHARES) if share <= whole / 2) for whole in SHARES]
    most = max(k for k in range(len(SHARES)) if holds(k, 0) or holds(k, halves[k]))
    chosen = parts[{True: -1, False: best, None: most}[determined]]
    disagree, doubt = 1 - np.trace(counts) / weights.sum(), 1 - (weights * sureness).sum() / weights.sum()
    size = weights.sum() ** 2 / (weights**2).sum()
    by_counts = (disagree - doubt) / (1 - doubt) - 3 * math.sqrt((disagree * (1 - disagree) + 1 / size) / size)
    least = parts[min(k for k in range(len(SHARES)) if holds(k, best))]
    prior = dualt.transition.clean_prior(least, np.bincount(labels, minlength=n_classes))
    return chosen, counts.sum(axis=1), max(0, min(by_counts, prior @ (1 - np.diagonal(least))))


def mixed(transition, n, rng, sharpness=3.0):
    """Exact noisy posteriors of examples that are clear in part, with drawn labels."""
    n_classes = len(transition)
    clean_posterior = rng.dirichlet(np.full(n_classes, 0.3), n) ** sharpness
    clean_posterior /= clean_posterior.sum(axis=1, keepdims=True)
    clean = (clean_posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, n_classes - 1)
    return clean_posterior @ transition, noise.corrupt(clean, transition, rng), clean


@settings(max_examples=3)
@given(st.integers(0, 1000), st.integers(2, 4), st.sampled_from([None, True, False]))
def test_clean_count_equals_a_loop(seed, n_classes, determined):
    rng = np.random.default_rng(seed)
    probs, labels, _ = mixed(noise.random_diagonal_dominant(n_classes, 0.3, rng), 300, rng)
    posterior = as_posterior(probs, labels, [str(k) for k in range(n_classes)])
    found = clean_count(posterior, determined=determined)
    expected, support, least = clean_count_by_loops(probs, labels, posterior.power, determined)
    np.testing.assert_allclose(found.transition, expected, atol=2e-3)
    np.testing.assert_allclose(found.support, support, atol=2)
    assert found.rate_interval == pytest.approx((least, 1), abs=2e-3)
    assert found.determined is determined


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_chunks_from_disk_give_the_same_counts(monkeypatch, tmp_path, dtype):
    monkeypatch.setattr("dualt.rows.summary._SAMPLE_ROWS", 1000)
    rng = np.random.default_rng(1)
    probs, labels, _ = mixed(noise.random_diagonal_dominant(4, 0.3, rng), 5000, rng)
    whole = clean_count(as_posterior(probs.astype(dtype), labels))
    np.save(tmp_path / "probs.npy", probs.astype(dtype))
    monkeypatch.setattr("dualt.rows.posterior.chunk_rows", lambda *_: 64)
    on_disk = np.load(tmp_path / "probs.npy", mmap_mode="r", allow_pickle=False)
    chunked = clean_count(as_posterior(on_disk, labels))
    np.testing.assert_allclose(chunked.transition, whole.transition, atol=1e-6)
    np.testing.assert_array_equal(chunked.support, whole.support)


@pytest.mark.parametrize(
    ("name", "most"), [("sym-0.2", 0.1), ("sym-0.5", 0.15), ("pair-0.45", 0.1), ("random-0.3", 0.1)]
)
def test_exact_posteriors_are_recovered(name, most):
    rng = np.random.default_rng(0)
    truth = noise.from_name(name, 5, rng)
    probs, labels, clean = mixed(truth, 10_000, rng)
    posterior = as_posterior(probs, labels)
    fit = clean_count(posterior)
    error = np.abs(fit.transition - truth).sum() / 5
    assert error < most
    assert fit.rate_interval[0] <= (labels != clean).mean()


def gaussians(separation, n, seed):
    """Return out-of-fold probabilities of four Gaussian classes, all labelled right."""
    rng = np.random.default_rng(seed)
    labels, means = rng.integers(0, 4, n), rng.normal(size=(4, 6))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    features = separation * means[labels] + rng.normal(size=(n, 6))
    return out_of_fold_probabilities(LogisticRegression(), features, labels, cv=5), labels


@pytest.mark.parametrize("separation", [0.8, 1.6, 3.0])
def test_overlapping_classes_are_not_claimed_as_noise(separation):
    for seed in range(3):
        posterior = as_posterior(*gaussians(separation, 2000, seed))
        for determined in (None, True, False):
            assert clean_count(posterior, determined=determined).rate_interval[0] == 0
        assert 1 - np.diagonal(clean_count(posterior, determined=False).transition).mean() < 0.06


def test_the_answer_to_one_question_orders_the_rates():
    """Counts find the most noise, the likelihood the least, and not knowing lies between."""
    for seed in range(3):
        posterior = as_posterior(*gaussians(1.6, 1000, seed))
        rates = [1 - np.diagonal(clean_count(posterior, determined=d).transition).mean() for d in (False, None, True)]
        assert rates == sorted(rates)


def test_a_classifier_that_says_far_less_than_it_knows_gives_nearly_the_same_matrix():
    """As a forest does."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 4, 8_000)
    truth = noise.pair(4, 0.2)
    logits = 2.5 * np.eye(4)[clean] + rng.normal(size=(8_000, 4))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) @ truth
    labels = noise.corrupt(clean, truth, random_state=1)
    flat = probs**0.25 / (probs**0.25).sum(axis=1, keepdims=True)
    found, expected = (dualt.estimate_transition(table, labels).transition for table in (flat, probs))
    assert dualt.l1_error(found, expected, normalize=True) < 0.06


@pytest.mark.parametrize("seed", [0, 4])
def test_few_examples_with_much_pair_noise(seed):
    features, clean = load_digits(return_X_y=True)
    truth = noise.pair(10, 0.45)
    noisy = noise.corrupt(clean, truth, np.random.default_rng(seed))
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    posterior = as_posterior(out_of_fold_probabilities(classifier, features, noisy, cv=3), noisy)
    assert np.abs(clean_count(posterior).transition - truth).sum() / 10 < 0.5


def test_resamples_survive_pickling():
    probs, labels, _ = mixed(noise.symmetric(3, 0.2), 600, np.random.default_rng(0))
    fit = clean_count(as_posterior(probs, labels))
    drawn = pickle.loads(pickle.dumps(fit.resample))(np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, fit.resample(np.random.default_rng(1)))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)


@pytest.mark.parametrize(("n_classes", "sharpness"), [(100, 1.0), (200, 0.3), (300, 1.0)])
def test_a_classifier_that_is_never_sure_of_many_classes(n_classes, sharpness):
    """The surest count; ranking is no worse than by the probability of the label, and little is claimed."""
    rng = np.random.default_rng(0)
    clean = rng.integers(n_classes, size=6000)
    logits = rng.normal(size=(6000, n_classes))
    logits[np.arange(6000), clean] += 2
    probs = np.exp(sharpness * logits)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = noise.corrupt(clean, noise.symmetric(n_classes, 0.2), np.random.default_rng(0))
    found = dualt.find_label_issues(probs, labels)
    wrong = labels != clean
    plain = average_precision_score(wrong, -probs[np.arange(6000), labels])
    assert average_precision_score(wrong, -found.probability_right) > plain - 0.005
    assert found.transition_estimate.noise_rate_interval()[0] <= 0.2


@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (np.full((40, 5), 0.2), np.zeros(40, int)),
        (np.eye(3)[np.arange(30) % 3], np.arange(30) % 3),
        (np.eye(3)[np.arange(30) % 3], np.arange(1, 31) % 3),
        (np.array([[0.9, 0.1]]), np.array([0])),
    ],
    ids=["flat", "right predictions", "wrong predictions", "one row"],
)
def test_degenerate_data_give_a_matrix(probs, labels):
    fit = clean_count(as_posterior(probs, labels))
    np.testing.assert_allclose(fit.transition.sum(axis=1), 1)
    assert (fit.transition >= 0).all()
    assert 0 <= fit.rate_interval[0] <= 1


def test_classes_that_take_turns_are_counted_as_shuffled_ones():
    rng, n, truth = np.random.default_rng(0), 9000, noise.symmetric(10, 0.3)
    clean = np.arange(n) % 10
    scores = 3 * (rng.normal(size=(n, 10)) + 3 * np.eye(10)[clean])
    probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) @ truth
    given = noise.corrupt(clean, truth, random_state=1)
    order = rng.permutation(n)
    in_turn, shuffled = (dualt.estimate_transition(probs[rows], given[rows]) for rows in (slice(None), order))
    assert dualt.l1_error(in_turn, truth, normalize=True) < 0.1
    np.testing.assert_allclose(in_turn, shuffled, atol=0.02)


def test_sorted_rows_with_many_classes():
    """The likelihood is taken of a random part of the sample: its first rows are of classes without noise."""
    rng = np.random.default_rng(0)
    clean = np.sort(rng.integers(0, 100, 12_000))
    noisy = (clean >= 50) & (rng.random(12_000) < 0.5)
    given = np.where(noisy, rng.integers(50, 100, 12_000), clean)
    logits = 8.0 * np.eye(100)[clean] + rng.normal(size=(12_000, 100))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    estimate = dualt.estimate_transition(probs, given, determined=False)
    assert estimate.noise_rate == pytest.approx((given != clean).mean(), abs=0.05)


def test_at_least_claimed_is_the_disagreement_beyond_doubt_by_hand():
    """Of 100 rows 20 disagree, where 5 would by their doubt alone: .15/.95 less three errors."""
    counts = np.array([[45.0, 5], [15, 35]])
    error = math.sqrt((0.2 * 0.8 + 1 / 100) / 100)
    assert _Counted(counts, 100, 100, 95).least() == pytest.approx(0.15 / 0.95 - 3 * error)
    assert _Counted(counts, 100, 200, 95).least() == 0, "fifty rows are too few"


def test_a_share_is_refuted_by_three_standard_errors_and_nine_halves():
    rng = np.random.default_rng(0)
    noise_of_rows = rng.normal(size=400)
    noise_of_rows -= noise_of_rows.mean()
    limit = 3 * noise_of_rows.std() * 20 + 4.5
    fits = np.array([noise_of_rows * spread - lost / 400 for spread, lost in (
        (0, 4.4), (0, 4.6), (1, limit - 0.1), (1, limit + 0.1), (0, -9)
    )])  # fmt: skip
    assert _not_refuted(fits, np.zeros(400)).tolist() == [True, False, True, False, True]
