import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualt
from dualt import noise
from dualt.errors import InputError
from dualt.estimators import NoisyPosterior
from dualt.estimators.clean_count import clean_count
from dualt.estimators.confident_joint import confident_joint


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


def round_by_loops(sample, rows, labels, transition, confidence, n_samples):
    """Count (clean class, label) over the rows that are as sure as `confidence`, or as the sample's surest tenth."""
    n_classes = rows.shape[1]
    members = [[] for _ in range(n_classes)]
    for p in sample:
        q = clean_by_loops(p, transition)
        members[int(np.argmax(q))].append(max(q))
    thresholds = []
    for sureness in members:
        needed = int(np.ceil(max(100 * len(sample) / n_samples, 0.1 * len(sureness))))
        enough = sorted(sureness, reverse=True)[: max(1, needed)]
        thresholds.append(min([confidence, *enough[-1:]]))
    counts = np.zeros((n_classes, n_classes))
    for p, label in zip(rows, labels, strict=True):
        q = clean_by_loops(p, transition)
        k = int(np.argmax(q))
        if q[k] >= thresholds[k] - 1e-5:
            counts[k, label] += 1
    return counts


def normalized(counts):
    return np.array([row / row.sum() if row.sum() else np.eye(len(counts))[k] for k, row in enumerate(counts)])


def clean_count_by_loops(posterior, confidence=0.9):
    """All rounds, without shrinkage."""
    summary, (block,) = posterior.summary, posterior.blocks
    probs, labels = block.pred_probs, block.noisy_labels
    sample = summary.sample_rows
    too_few = len(sample) < min(100 * summary.n_classes, len(probs))
    first = (probs, labels) if too_few else (sample, summary.sample_labels)
    matrix = confident_joint(posterior).transition
    for _ in range(1 if too_few else 3):
        matrix = normalized(round_by_loops(sample, *first, matrix, confidence, len(probs)))
    return normalized(round_by_loops(sample, probs, labels, matrix, confidence, len(probs)))


def mixed(transition, n, rng, sharpness=3.0):
    """Exact noisy posteriors of examples that are clear in part, with drawn labels."""
    n_classes = len(transition)
    clean_posterior = rng.dirichlet(np.full(n_classes, 0.3), n) ** sharpness
    clean_posterior /= clean_posterior.sum(axis=1, keepdims=True)
    clean = (clean_posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, n_classes - 1)
    return clean_posterior @ transition, noise.corrupt(clean, transition, rng), clean


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(2, 4), st.sampled_from([0.5, 0.8, 0.95]))
def test_clean_count_equals_a_loop(seed, n_classes, confidence):
    rng = np.random.default_rng(seed)
    probs, labels, _ = mixed(noise.random_diagonal_dominant(n_classes, 0.3, rng), 400, rng)
    posterior = NoisyPosterior.from_arrays(probs, labels, [str(k) for k in range(n_classes)])
    found = clean_count(posterior, confidence=confidence, shrink=False)
    np.testing.assert_allclose(found.transition, clean_count_by_loops(posterior, confidence), atol=1e-9)


@pytest.mark.parametrize("size", [100, 650])
def test_a_sample_stands_for_the_data(monkeypatch, size):
    """Thresholds come from the sample; with 100 rows a class (650 of 3 classes) so do the first rounds."""
    monkeypatch.setattr("dualt.estimators.summary._SAMPLE_ROWS", size)
    rng = np.random.default_rng(0)
    probs, labels, _ = mixed(noise.pair(3, 0.3), 900, rng)
    posterior = NoisyPosterior.from_arrays(probs, labels)
    assert len(posterior.summary.sample_rows) == size
    found = clean_count(posterior, shrink=False)
    np.testing.assert_allclose(found.transition, clean_count_by_loops(posterior), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_chunks_from_disk_give_the_same_counts(monkeypatch, tmp_path, dtype):
    monkeypatch.setattr("dualt.estimators.summary._SAMPLE_ROWS", 1000)
    rng = np.random.default_rng(1)
    probs, labels, _ = mixed(noise.random_diagonal_dominant(4, 0.3, rng), 5000, rng)
    whole = clean_count(NoisyPosterior.from_arrays(probs.astype(dtype), labels))
    np.save(tmp_path / "probs.npy", probs.astype(dtype))
    monkeypatch.setattr("dualt.estimators.posterior.chunk_rows", lambda *_: 64)
    on_disk = np.load(tmp_path / "probs.npy", mmap_mode="r", allow_pickle=False)
    chunked = clean_count(NoisyPosterior.from_arrays(on_disk, labels))
    np.testing.assert_array_equal(chunked.transition, whole.transition)
    np.testing.assert_array_equal(chunked.support, whole.support)


@pytest.mark.parametrize("name", ["sym-0.2", "sym-0.5", "pair-0.45", "random-0.3"])
def test_exact_posteriors_are_recovered(name):
    rng = np.random.default_rng(0)
    truth = noise.from_name(name, 5, rng)
    probs, labels, _ = mixed(truth, 10_000, rng)
    posterior = NoisyPosterior.from_arrays(probs, labels)
    error = np.abs(clean_count(posterior).transition - truth).sum() / 5
    assert error < 0.08
    assert error < np.abs(confident_joint(posterior).transition - truth).sum() / 5


def test_shrinkage_leaves_the_noise_rates():
    rng = np.random.default_rng(0)
    probs, labels, _ = mixed(noise.symmetric(5, 0.4), 1500, rng)
    posterior = NoisyPosterior.from_arrays(probs, labels)
    plain, shrunk = (clean_count(posterior, shrink=shrink).transition for shrink in (False, True))
    np.testing.assert_array_equal(np.diagonal(plain), np.diagonal(shrunk))
    off = ~np.eye(5, dtype=bool)
    assert shrunk[off].std() < 0.6 * plain[off].std()


def test_a_class_that_is_never_clear_counts_its_clearest():
    """Nothing of class 2 reaches 0.9, yet a hundred of it count."""
    rng = np.random.default_rng(0)
    clean = np.repeat([0, 1, 2], 400)
    probs = np.where(np.eye(3)[clean] > 0, 0.9, 0.05)
    probs[clean == 2] = [0.1, 0.3, 0.6]
    probs[clean == 2] += 0.01 * rng.random((400, 1)) * [-1, -1, 2]
    fit = clean_count(
        NoisyPosterior.from_arrays(probs, noise.corrupt(clean, noise.symmetric(3, 0.1), 0)), confidence=0.999999
    )
    assert (fit.support >= 100).all()


def test_confidence_is_a_fraction():
    with pytest.raises(InputError, match="confidence"):
        clean_count(NoisyPosterior.from_arrays([[0.5, 0.5]], [0]), confidence=1.5)


def test_resamples_survive_pickling():
    rng = np.random.default_rng(0)
    probs, labels, _ = mixed(noise.symmetric(3, 0.2), 600, rng)
    fit = clean_count(NoisyPosterior.from_arrays(probs, labels))
    drawn = pickle.loads(pickle.dumps(fit.resample))(np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, fit.resample(np.random.default_rng(1)))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)


@pytest.mark.parametrize("shrink", [False, True])
def test_the_interval_covers_where_the_assumptions_hold(shrink):
    """Clear examples and errors that spread like chance: a nominal 95 % covers 90 to 99 % of 120 × 16 entries."""
    truth = noise.symmetric(4, 0.3)
    covered = []
    for seed in range(120):
        clean = np.arange(1200) % 4
        noisy = noise.corrupt(clean, truth, rng=seed)
        estimate = dualt.estimate_transition(np.where(np.eye(4)[clean] > 0, 0.97, 0.01), noisy, shrink=shrink)
        low, high = estimate.confidence_interval(0.95)
        covered.append((low <= truth) & (truth <= high))
    covered = np.array(covered)
    assert 0.9 <= np.diagonal(covered, axis1=1, axis2=2).mean() <= 0.99
    assert covered.mean() >= 0.9
