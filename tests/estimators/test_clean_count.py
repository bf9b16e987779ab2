import pickle
from itertools import permutations

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
from dualt.errors import InputError
from dualt.estimators._counts import surest_few
from dualt.estimators.clean_count import _balance, clean_count
from dualt.estimators.confident_joint import confident_joint, count_confident
from dualt.estimators.joint.training import joint
from dualt.rows import as_posterior
from dualt.rows.confidence import raised


def clean_by_loops(p, transition):
    """Ten EM steps from the uniform distribution."""
    n_classes = len(p)
    q = [1 / n_classes] * n_classes
    for _ in range(10):
        noisy = [sum(q[i] * transition[i][j] for i in range(n_classes)) for j in range(n_classes)]
        q = [
            q[i] * sum(p[j] / noisy[j] * transition[i][j] for j in range(n_classes) if noisy[j] > 0)
            for i in range(n_classes)
        ]
    return q


def balanced_by_loops(posteriors, label_counts):
    """Multiply class weights five times by label share / mean, and normalise the rows."""
    n_classes, n = len(label_counts), len(posteriors)
    shares = [(count + 1) / (sum(label_counts) + n_classes) for count in label_counts]
    weights = [1.0] * n_classes
    for step in range(6):
        rows = [[q * w for q, w in zip(row, weights, strict=True)] for row in posteriors]
        rows = [[value / sum(row) for value in row] for row in rows]
        if step == 5:
            return rows
        means = [sum(row[k] for row in rows) / n for k in range(n_classes)]
        weights = [w * share / mean for w, share, mean in zip(weights, shares, means, strict=True)]
    raise AssertionError


def thresholds_by_loops(posteriors, confidence, n_samples, floored=True):
    """Return `confidence`, or the sureness of a class's surest tenth, or hundred of all rows, if that is less.

    If floored, none below one minus the mean sureness, unless fewer than thirty reach that.
    """
    everyone = sorted((max(q) for q in posteriors), reverse=True)
    floor = min(confidence, 1 - float(np.mean(everyone)), everyone[:30][-1]) if floored else 0
    members = [[] for _ in posteriors[0]]
    for q in posteriors:
        members[int(np.argmax(q))].append(max(q))
    thresholds = []
    for sureness in members:
        needed = int(np.ceil(max(100 * len(posteriors) / n_samples, 0.1 * len(sureness))))
        enough = sorted(sureness, reverse=True)[: max(1, needed)]
        thresholds.append(min(confidence, max([floor, *enough[-1:]])) if enough else confidence)
    return thresholds


def round_by_loops(sample, rows, labels, transition, confidence, n_samples, label_counts=None):
    """Count (clean class, label) over the rows that reach the sample's thresholds; balanced, if counts are given."""

    def posteriors(probs):
        found = [clean_by_loops(p, transition) for p in probs]
        return found if label_counts is None else balanced_by_loops(found, label_counts)

    of_sample = posteriors(sample)
    of_rows = of_sample if rows is sample else posteriors(rows)
    thresholds = thresholds_by_loops(of_sample, confidence, n_samples, floored=label_counts is None)
    counts = np.zeros((rows.shape[1], rows.shape[1]))
    for q, label in zip(of_rows, labels, strict=True):
        k = int(np.argmax(q))
        if q[k] >= thresholds[k] - 1e-5:
            counts[k, label] += 1
    return counts


def normalized(counts):
    return np.array([row / row.sum() if row.sum() else np.eye(len(counts))[k] for k, row in enumerate(counts)])


def matched_by_loops(matrix):
    """Try every order of the rows for the largest product of the diagonal, and stay if none is better."""

    def fit(order):
        return sum(np.log(max(matrix[row, k], 1e-6)) for k, row in enumerate(order))

    return matrix[list(max(permutations(range(len(matrix))), key=fit))]


def clean_count_by_loops(posterior, confidence=0.9):
    """All rounds, without pooling, and what doubtful examples add."""
    summary, (block,) = posterior.summary, posterior.blocks
    probs, labels = block.pred_probs, block.noisy_labels
    sample = summary.sample_rows
    matrix = confident_joint(posterior).transition
    if len(sample) < min(100 * summary.n_classes, len(probs)):
        matrix = normalized(count_confident(posterior).T)
    else:
        label_counts = np.bincount(labels, minlength=summary.n_classes).tolist()
        for balance in (label_counts, label_counts, label_counts, None, None):
            counts = round_by_loops(sample, sample, summary.sample_labels, matrix, confidence, len(probs), balance)
            matrix = matched_by_loops(normalized(counts))
    likely = min(0.5, confidence)
    counts = {
        level: round_by_loops(sample, probs, labels, matrix, level, len(probs))
        for level in (confidence, max(likely, 2 * confidence - 1))
    }
    first, second = counts.values() if len(counts) == 2 else list(counts.values()) * 2
    everyone = np.zeros_like(first)
    for p, label in zip(probs, labels, strict=True):
        everyone[int(np.argmax(clean_by_loops(p, matrix))), label] += 1
    sureness = np.mean([max(clean_by_loops(p, matrix)) for p in sample])
    sure, every = (normalized(first) + normalized(second)) / 2, normalized(everyone)
    alike = alike_by_loops(normalized(first), everyone - first)
    found = np.empty_like(sure)
    for k, row in enumerate(sure):
        growth = min(1, 0.75 * (1 - row[k]) / max(row[k] - every[k, k], 1e-9))
        grown = 0.5 * min(1, max(0, 4 * sureness - 2)) * max(0, 2 * alike - 1) * growth
        found[k] = (1 - grown) * row + grown * every[k]
    return found


def alike_by_loops(sure, doubtful):
    """Return the overlap of how sure examples err and how labels in excess among the doubtful ones spread."""
    overlaps, weights = [], []
    for k, (row, counts) in enumerate(zip(sure, doubtful, strict=True)):
        others = [j for j in range(len(row)) if j != k]
        excess = {j: max(0, counts[j] - sum(counts) * row[j]) for j in others}
        total, errors = sum(excess.values()), sum(row[j] for j in others)
        weights.append(total)
        overlaps.append(sum(min(row[j] / max(errors, 1e-12), excess[j] / max(total, 1e-12)) for j in others))
    return sum(o * w for o, w in zip(overlaps, weights, strict=True)) / max(sum(weights), 1)


def mixed(transition, n, rng, sharpness=3.0):
    """Exact noisy posteriors of examples that are clear in part, with drawn labels."""
    n_classes = len(transition)
    clean_posterior = rng.dirichlet(np.full(n_classes, 0.3), n) ** sharpness
    clean_posterior /= clean_posterior.sum(axis=1, keepdims=True)
    clean = (clean_posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, n_classes - 1)
    return clean_posterior @ transition, noise.corrupt(clean, transition, rng), clean


@settings(max_examples=8)
@given(st.integers(0, 1000), st.integers(2, 4), st.sampled_from([0.5, 0.8, 0.95]))
def test_clean_count_equals_a_loop(seed, n_classes, confidence):
    rng = np.random.default_rng(seed)
    probs, labels, _ = mixed(noise.random_diagonal_dominant(n_classes, 0.3, rng), 400, rng)
    posterior = as_posterior(probs, labels, [str(k) for k in range(n_classes)])
    found = clean_count(posterior, confidence=confidence, shrink=False)
    np.testing.assert_allclose(found.transition, clean_count_by_loops(posterior, confidence), atol=1e-9)


@pytest.mark.parametrize("size", [100, 650])
def test_a_sample_stands_for_the_data(monkeypatch, size):
    """Thresholds come from the sample; with 100 rows per class (650 of 3 classes) it has rounds of its own."""
    monkeypatch.setattr("dualt.rows.summary._SAMPLE_ROWS", size)
    rng = np.random.default_rng(0)
    probs, labels, _ = mixed(noise.pair(3, 0.3), 900, rng)
    posterior = as_posterior(probs, labels)
    assert len(posterior.summary.sample_rows) == size
    found = clean_count(posterior, shrink=False)
    np.testing.assert_allclose(found.transition, clean_count_by_loops(posterior), atol=1e-9)


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
    np.testing.assert_array_equal(chunked.transition, whole.transition)
    np.testing.assert_array_equal(chunked.support, whole.support)


@pytest.mark.parametrize(
    ("name", "most"), [("sym-0.2", 0.12), ("sym-0.5", 0.08), ("pair-0.45", 0.08), ("random-0.3", 0.08)]
)
def test_exact_posteriors_are_recovered(name, most):
    """Symmetric noise of hard examples looks like noise that grows with difficulty, and half of that is believed."""
    rng = np.random.default_rng(0)
    truth = noise.from_name(name, 5, rng)
    probs, labels, _ = mixed(truth, 10_000, rng)
    posterior = as_posterior(probs, labels)
    error = np.abs(clean_count(posterior).transition - truth).sum() / 5
    assert error < most
    assert error < np.abs(confident_joint(posterior).transition - truth).sum() / 5


def test_pooling_draws_rates_and_spreads_of_symmetric_noise_together():
    rng = np.random.default_rng(0)
    probs, labels, _ = mixed(noise.symmetric(5, 0.4), 1500, rng)
    posterior = as_posterior(probs, labels)
    plain, pooled = (clean_count(posterior, shrink=shrink).transition for shrink in (False, True))
    off = ~np.eye(5, dtype=bool)
    assert pooled[off].std() < 0.6 * plain[off].std()
    assert np.diagonal(pooled).std() < 0.6 * np.diagonal(plain).std()


@pytest.mark.parametrize("grows", [False, True])
def test_the_readings_hold_the_truth_of_both_worlds(grows):
    """Noise that is the same for all examples, and noise that grows with their difficulty."""
    rng = np.random.default_rng(3)
    posteriors = rng.dirichlet(np.full(4, 0.3), 6000) ** 2
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    clean = (posteriors.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1).clip(0, 3)
    rates = 0.1 + 0.4 * (1 - posteriors.max(axis=1)) if grows else np.full(6000, 0.2)
    probs = (1 - rates * 4 / 3)[:, None] * posteriors + rates[:, None] / 3
    wrong = rng.random(6000) < rates
    labels = np.where(wrong, (clean + rng.integers(1, 4, 6000)) % 4, clean)
    readings = clean_count(as_posterior(probs, labels)).readings
    low, high = readings.range(np.full(4, 0.25), 0.95)
    assert low <= wrong.mean() <= high
    assert (readings.least <= readings.most).all()
    assert 0 <= readings.trust <= 1


def test_a_weak_classifier_is_not_noise():
    """Of a hundred classes and predictions that are seldom sure, most disagreement is the classifier's."""
    rng = np.random.default_rng(0)
    n_classes, n = 60, 12_000
    clean = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), clean] += rng.exponential(2.5, n)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = noise.symmetric(n_classes, 0.2)
    labels = noise.corrupt(clean, truth, random_state=0)
    posterior = as_posterior(probs @ truth, labels)
    disagreement = 1 - posterior.summary.agreement
    estimate = dualt.estimate_transition(probs @ truth, labels)
    assert disagreement > 0.6
    assert abs(estimate.noise_rate - 0.2) < 0.15
    low, high = estimate.noise_rate_range
    assert low <= 0.2 <= high
    assert estimate.undecided is not None


def overlapping(seed: int, n_rows: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact posterior of three overlapping classes, and labels, of which a share is wrong."""
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.full(3, 0.4), n_rows)
    clean = (posterior.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(0, 2)
    transition = dualt.noise.symmetric(3, rate)
    return posterior @ transition, dualt.noise.corrupt(clean, transition, random_state=seed) if rate else clean


@pytest.mark.parametrize(("rate", "n_rows"), [(0.0, 450), (0.0, 800), (0.25, 450)])
def test_of_few_examples_classes_that_overlap_are_not_claimed_as_noise(rate, n_rows):
    """Where agreement rises up to the surest, the labels may all be right; the range holds the rate nearly always."""
    held, from_none = 0, 0
    for seed in range(20):
        low, high = dualt.estimate_transition(*overlapping(seed, n_rows, rate)).noise_rate_range
        held += low <= rate <= high
        from_none += low == 0
    assert held >= 17
    assert rate > 0 or from_none >= 17


def test_agreement_that_rises_to_the_surest_is_told_from_a_plateau():
    """By hand: of 40 surest 38 agree, and of the next 160 either 120 or 150."""
    for n_agree, surest in ((120, (2, 40)), (150, (0, 0))):
        agrees = np.r_[np.arange(40) < 38, np.arange(160) < n_agree, np.zeros(600, bool)]
        top = np.linspace(0.99, 0.5, 800)
        labels = np.where(agrees, 0, 1)
        summary = as_posterior(np.stack([top, 1 - top], axis=1), labels).summary
        assert surest_few(summary) == surest


def test_a_classifier_that_says_far_less_than_it_knows_gives_the_same_matrix():
    """As a forest: left as it is, it gives a matrix that is off by 0.11."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 4, 8_000)
    truth = noise.pair(4, 0.2)
    logits = 2.5 * np.eye(4)[clean] + rng.normal(size=(8_000, 4))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) @ truth
    labels = noise.corrupt(clean, truth, random_state=1)
    expected = dualt.estimate_transition(probs, labels).transition
    found = dualt.estimate_transition(raised(probs, 0.25), labels).transition
    assert dualt.transition.l1_error(found, expected, normalize=True) < 0.05


def test_a_class_that_is_never_clear_counts_its_clearest():
    """Nothing of class 2 reaches 0.9, yet a hundred of it count."""
    rng = np.random.default_rng(0)
    clean = np.repeat([0, 1, 2], 400)
    probs = np.where(np.eye(3)[clean] > 0, 0.9, 0.05)
    probs[clean == 2] = [0.1, 0.3, 0.6]
    probs[clean == 2] += 0.01 * rng.random((400, 1)) * [-1, -1, 2]
    fit = clean_count(as_posterior(probs, noise.corrupt(clean, noise.symmetric(3, 0.1), 0)), confidence=0.999999)
    assert (fit.support >= 100).all()


@given(st.integers(0, 1000), st.integers(2, 5))
def test_balancing_weighs_classes_until_their_means_are_the_label_shares(seed, n_classes):
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.ones(n_classes), 300)
    label_counts = rng.integers(50, 100, n_classes)
    found = _balance(posterior, label_counts)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found.mean(axis=0), label_counts / label_counts.sum(), atol=0.02)
    odds = found / posterior
    np.testing.assert_allclose(odds / odds[:, :1], np.tile(odds[0] / odds[0, 0], (300, 1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_balancing_survives_a_class_without_labels_or_posterior(dtype):
    found = _balance(np.tile(np.array([0.6, 0.4, 0.0], dtype), (50, 1)), np.array([30, 0, 20]))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    assert (found >= 0).all()


@pytest.mark.parametrize(
    ("estimator", "seed", "most"), [(clean_count, 0, 0.2), (clean_count, 4, 0.2), (joint, 0, 0.12)]
)
def test_no_class_starves_of_few_examples_with_much_pair_noise(estimator, seed, most):
    """Without balanced rounds one digit of ten loses its examples to another: errors of .31, .42 and .40."""
    features, clean = load_digits(return_X_y=True)
    truth = noise.pair(10, 0.45)
    noisy = noise.corrupt(clean, truth, np.random.default_rng(seed))
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    posterior = as_posterior(out_of_fold_probabilities(classifier, features, noisy, cv=3), noisy)
    assert np.abs(estimator(posterior).transition - truth).sum() / 10 < most


def test_confidence_is_a_fraction():
    with pytest.raises(InputError, match="confidence"):
        clean_count(as_posterior([[0.5, 0.5]], [0]), confidence=1.5)


def test_resamples_survive_pickling():
    rng = np.random.default_rng(0)
    probs, labels, _ = mixed(noise.symmetric(3, 0.2), 600, rng)
    fit = clean_count(as_posterior(probs, labels))
    drawn = pickle.loads(pickle.dumps(fit.resample))(np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, fit.resample(np.random.default_rng(1)))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("shrink", [False, True])
def test_the_interval_covers_where_the_assumptions_hold(shrink):
    """Clear examples and errors that spread like chance: a nominal 95 % covers 90 to 99 % of 120 × 16 entries."""
    truth = noise.symmetric(4, 0.3)
    covered = []
    for seed in range(120):
        clean = np.arange(1200) % 4
        noisy = noise.corrupt(clean, truth, random_state=seed)
        estimate = dualt.estimate_transition(np.where(np.eye(4)[clean] > 0, 0.97, 0.01), noisy, shrink=shrink)
        low, high = estimate.confidence_interval(0.95)
        covered.append((low <= truth) & (truth <= high))
    covered = np.array(covered)
    assert 0.9 <= np.diagonal(covered, axis1=1, axis2=2).mean() <= 0.99
    assert covered.mean() >= 0.9


@pytest.mark.parametrize(("n_classes", "sharpness"), [(100, 1.0), (200, 0.3), (300, 1.0)])
def test_of_a_classifier_that_is_never_sure_the_surest_examples_count(n_classes, sharpness):
    """Flat probabilities of many classes: where none is sure, counting nobody would find no noise, and rank nothing."""
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
    assert found.transition_estimate.fit.readings.seldom_sure
    low, high = found.transition_estimate.noise_rate_range
    assert low <= 0.2 <= high
    assert 0.05 < found.transition_estimate.noise_rate < 0.45


@pytest.mark.parametrize("truth", [noise.symmetric(6, 0.4), noise.pair(6, 0.35)], ids=["symmetric", "pair"])
def test_a_thin_sample_finds_what_the_whole_one_finds(monkeypatch, truth):
    """The first rounds and the quantiles of scores read a part of the sample: matrix and ranking hardly change."""
    probs, labels, clean = mixed(truth, 30_000, np.random.default_rng(0))
    thin = dualt.find_label_issues(probs, labels)
    monkeypatch.setattr("dualt.estimators.clean_count._FEW_ROWS", 1 << 20)
    monkeypatch.setattr("dualt.issues.opinions._ROWS", 1 << 20)
    whole = dualt.find_label_issues(probs, labels)
    assert not np.array_equal(thin.transition, whole.transition)
    assert dualt.l1_error(thin.transition, whole.transition, normalize=True) < 0.005
    precisions = [average_precision_score(labels != clean, -found.probability_right) for found in (thin, whole)]
    assert abs(precisions[0] - precisions[1]) < 0.002
    assert np.abs(thin.probability_right - whole.probability_right).mean() < 0.002


def test_classes_that_take_turns_are_counted_as_shuffled_ones():
    rng, n, noise = np.random.default_rng(0), 9000, dualt.noise.pair(10, 0.3)
    clean = np.arange(n) % 10
    scores = 3 * (rng.normal(size=(n, 10)) + 3 * np.eye(10)[clean])
    probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) @ noise
    given = dualt.noise.corrupt(clean, noise, random_state=1)
    order = rng.permutation(n)
    in_turn, shuffled = (dualt.estimate_transition(probs[rows], given[rows]) for rows in (slice(None), order))
    assert dualt.l1_error(in_turn, noise, normalize=True) < 0.1
    np.testing.assert_allclose(in_turn, shuffled, atol=0.02)
    assert in_turn.diagnostics.calibration == pytest.approx(shuffled.diagnostics.calibration, rel=0.1)


@pytest.mark.parametrize("sharpness", [1.0, 2.0])
def test_a_weak_classifier_that_is_too_sure_is_no_proof_of_noise(sharpness):
    """As a network of many classes that was trained too long: most of what contradicts it are errors of its own."""
    rng, n_classes, n = np.random.default_rng(0), 50, 10_000
    clean = rng.integers(n_classes, size=n)
    scores = rng.normal(size=(n, n_classes)) * 1.5
    scores[np.arange(n), clean] += 3
    posterior = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    clean = (posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, n_classes - 1)
    truth = noise.symmetric(n_classes, 0.2)
    labels = noise.corrupt(clean, truth, rng)
    estimate = dualt.estimate_transition(raised(posterior @ truth, sharpness), labels)
    assert estimate.undecided is not None
    low, high = estimate.noise_rate_range
    assert low <= 0.2 <= high
    found = dualt.find_label_issues(raised(posterior @ truth, sharpness), labels)
    plain = dualt.find_label_issues(posterior @ truth, labels)
    wrong = labels != clean
    best = average_precision_score(wrong, -plain.probability_right)
    assert average_precision_score(wrong, -found.probability_right) > best - 0.01


@pytest.mark.parametrize("power", [1.0, 1.4])
def test_classes_that_overlap_may_be_labelled_right(power):
    """No example is sure, and the labels are right; a network that was trained too long is surer than it should be."""
    rng, n = np.random.default_rng(0), 6000
    posterior = rng.dirichlet(np.full(10, 0.3), n)
    labels = (posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 9)
    estimate = dualt.estimate_transition(raised(posterior, power), labels)
    assert estimate.noise_rate_range[0] == 0
