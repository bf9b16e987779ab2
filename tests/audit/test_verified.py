import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import noise
from dualt.audit.verified import _KAPPAS, _seen, blend_verified, check_random_audit, count_verified, evidence
from dualt.errors import InputError
from dualt.estimators import ESTIMATORS, count_fit
from dualt.results.estimate import TransitionEstimate
from dualt.rows import as_posterior
from dualt.rows.counts import normalize_counts
from tests.strategies import transitions

N_CLASSES, N_AUDITED = 10, 200
CANDIDATES = ("clean-count", "confident-joint", "top-count", "spade", "dual-t")


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def gaussian_classes(n, rng):
    """Clean labels and their exact posterior: some examples clear, some not."""
    means = 1.6 * rng.normal(size=(N_CLASSES, 8))
    clean = rng.integers(0, N_CLASSES, n)
    x = means[clean] + rng.normal(size=(n, 8))
    return clean, softmax(-((x[:, None] - means) ** 2).sum(axis=2) / 2)


def by_class(name, rng, n=4000):
    """Noise that depends on the class alone."""
    clean, q = gaussian_classes(n, rng)
    truth = noise.from_name(name, N_CLASSES, rng)
    return q @ truth, clean, noise.corrupt(clean, truth, rng), truth


def by_example(rate, rng, n=4000):
    """Noise that grows with difficulty, towards the classes that an example resembles."""
    clean, q = gaussian_classes(n, rng)
    difficulty = np.argsort(np.argsort(-q.max(axis=1))) / n
    rates = np.clip(rate * (0.3 + 2 * difficulty), 0, 0.9)
    other = np.repeat(np.sqrt(q)[:, None] + 0.02, N_CLASSES, axis=1) * (1 - np.eye(N_CLASSES))
    flips = rates[:, None, None] * other / other.sum(axis=2, keepdims=True)
    flips += (1 - rates)[:, None, None] * np.eye(N_CLASSES)
    rows = flips[np.arange(n), clean]
    noisy = (rows.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, N_CLASSES - 1)
    truth = np.array([rows[clean == k].mean(axis=0) for k in range(N_CLASSES)])
    return np.einsum("nc,ncj->nj", q, flips), clean, noisy, truth


def errors(world, argument, seed):
    """Mean row errors of the audit's own counts, of clean-count, and of the blend."""
    rng = np.random.default_rng(seed)
    probs, clean, noisy, truth = world(argument, rng)
    # A classifier: somewhat over-confident, somewhat wrong.
    probs = softmax(1.2 * np.log(probs + 1e-4) + 0.3 * rng.normal(size=probs.shape))
    posterior = as_posterior(probs, noisy)
    fits = {name: ESTIMATORS[name].function(posterior) for name in CANDIDATES}
    audited = rng.choice(len(noisy), N_AUDITED, replace=False)
    check_random_audit(posterior, audited)
    _, _, blended = blend_verified(posterior, fits, clean[audited], noisy[audited])
    counts = count_verified(clean[audited], noisy[audited], N_CLASSES)
    found = (normalize_counts(counts), fits["clean-count"].transition, blended.transition)
    return [np.abs(matrix - truth).sum() / N_CLASSES for matrix in found]


@pytest.mark.parametrize(
    ("world", "argument"),
    [
        (by_class, "sym-0.2"),
        (by_class, "sym-0.5"),
        (by_class, "pair-0.45"),
        (by_class, "random-0.3"),
        (by_example, 0.1),
        (by_example, 0.25),
        (by_example, 0.4),
    ],
)
def test_the_blend_is_as_good_as_the_better_of_its_sources(world, argument):
    audit, unaided, blended = np.mean([errors(world, argument, seed) for seed in range(100, 120)], axis=0)
    assert blended <= 1.05 * min(audit, unaided)


def urn_by_loops(row, kappa, counts):
    """log P of labels drawn one after another from a Pólya urn that holds kappa · row at first."""
    weights, total = kappa * row, 0.0
    for label in np.repeat(np.arange(len(row)), counts):
        total += np.log(weights[label] / weights.sum())
        weights[label] += 1
    return total


@given(transitions(max_classes=4), st.integers(0, 1000))
def test_evidence_equals_a_loop(transition, seed):
    counts = np.random.default_rng(seed).integers(0, 4, transition.shape)
    found = evidence(transition, counts)
    for place in (0, 40, 100):
        expected = sum(
            urn_by_loops(row, _KAPPAS[place], own) for row, own in zip(_seen(transition), counts, strict=True)
        )
        assert found[place] == pytest.approx(expected, rel=1e-6, abs=1e-4)


def test_evidence_of_a_row_sums_to_one():
    transition = np.array([[0.7, 0.2, 0.1], [0, 1, 0], [0, 0, 1]])
    total = np.zeros(len(_KAPPAS))
    for labels in itertools.product(range(3), repeat=4):
        counts = np.zeros((3, 3), int)
        counts[0] = np.bincount(labels, minlength=3)
        total += np.exp(evidence(transition, counts))
    np.testing.assert_allclose(total, 1, rtol=1e-5)


def test_for_large_kappa_evidence_is_the_likelihood():
    transition = noise.random_diagonal_dominant(4, 0.3, 0)
    counts = np.random.default_rng(0).integers(0, 5, (4, 4))
    assert evidence(transition, counts)[-1] == pytest.approx((counts * np.log(_seen(transition))).sum(), rel=5e-3)


def fit_of(transition, per_row=500):
    return count_fit(np.rint(per_row * transition).astype(np.int64))


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return as_posterior(rng.dirichlet(np.ones(4), 2000), rng.integers(0, 4, 2000))


def audit(truth, n, seed=0):
    clean = np.arange(n) % len(truth)
    return clean, noise.corrupt(clean, truth, random_state=seed)


def test_the_row_is_kappa_times_the_candidate_plus_the_counts(posterior):
    clean, given = audit(noise.symmetric(4, 0.6), 200)
    candidate = fit_of(noise.symmetric(4, 0.1))
    name, kappa, fit = blend_verified(posterior, {"only": candidate}, clean, given)
    counts = np.zeros((4, 4))
    for c, g in zip(clean, given, strict=True):
        counts[c, g] += 1
    expected = kappa * candidate.transition + counts
    assert name == "only"
    np.testing.assert_allclose(fit.transition, expected / expected.sum(axis=1, keepdims=True))
    assert kappa < 50


def test_labels_that_fit_leave_the_candidate(posterior):
    truth = noise.pair(4, 0.3)
    _, kappa, fit = blend_verified(posterior, {"right": fit_of(truth)}, *audit(truth, 200))
    assert kappa == _KAPPAS[-1]
    np.testing.assert_allclose(fit.transition, fit_of(truth).transition, atol=1e-3)


def test_the_first_candidate_gives_way_to_strong_evidence_only(posterior):
    truth = noise.symmetric(4, 0.3)
    right, close, wrong = fit_of(truth), fit_of(noise.symmetric(4, 0.33)), fit_of(noise.pair(4, 0.45))
    assert blend_verified(posterior, {"close": close, "right": right}, *audit(truth, 200))[0] == "close"
    assert blend_verified(posterior, {"wrong": wrong, "right": right}, *audit(truth, 200))[0] == "right"


def interval_width(posterior, fit):
    low, high = TransitionEstimate("blend", tuple("abcd"), fit, posterior.summary).confidence_interval()
    return (high - low).mean()


def test_intervals_narrow_with_verified_labels_and_widen_with_contradiction(posterior):
    truth = noise.symmetric(4, 0.3)
    fit = fit_of(truth)
    widths = [
        interval_width(posterior, blend_verified(posterior, {"a": fit}, *audit(truth, n))[2]) for n in (40, 800, 8000)
    ]
    assert widths[0] > widths[1] > widths[2]
    wrong = blend_verified(posterior, {"a": fit_of(noise.pair(4, 0.45))}, *audit(truth, 40))[2]
    assert interval_width(posterior, wrong) > 1.5 * widths[0]


def test_intervals_cover_what_contradicted_the_candidate(posterior):
    """95 % nominal; the candidate is far off, so the posterior rests on 400 labels and little else."""
    truth, covered = noise.symmetric(4, 0.5), []
    for seed in range(30):
        _, _, fit = blend_verified(posterior, {"wrong": fit_of(noise.symmetric(4, 0.1))}, *audit(truth, 400, seed))
        low, high = TransitionEstimate("blend", tuple("abcd"), fit, posterior.summary).confidence_interval()
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered) > 0.85


def test_resamples_survive_pickling(posterior):
    _, _, fit = blend_verified(posterior, {"a": fit_of(np.eye(4))}, *audit(noise.symmetric(4, 0.2), 100))
    drawn = pickle.loads(pickle.dumps(fit.resample))(np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, fit.resample(np.random.default_rng(0)))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)


def test_refusals(posterior):
    codes = np.array([0, 1])
    with pytest.raises(InputError, match="at least one verified label"):
        blend_verified(posterior, {"a": fit_of(np.eye(4))}, codes[:0], codes[:0])
    with pytest.raises(InputError, match="at least one estimate"):
        blend_verified(posterior, {}, codes, codes)
    with pytest.raises(InputError, match="2 rows and 1"):
        blend_verified(posterior, {"a": fit_of(np.eye(4))}, codes, codes[:1])


def test_an_audit_of_suspects_is_refused():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 3000)
    labels = (probs.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(0, 3)
    posterior = as_posterior(probs, labels)
    for seed in range(50):
        check_random_audit(posterior, np.random.default_rng(seed).choice(3000, 200, replace=False))
    suspects = np.argsort(probs[np.arange(3000), labels])
    for n_suspects in (20, 200):
        with pytest.raises(InputError, match="Draw the rows to verify at random"):
            check_random_audit(posterior, suspects[:n_suspects])
