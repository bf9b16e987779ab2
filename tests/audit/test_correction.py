"""Estimates corrected by verified rows: a dense reference, laws, coverage, and one refusal for each bad audit."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import dualt
from dualt import noise
from dualt.audit import Audit, calibration, correct_by_audit, corrected_fit
from dualt.audit.design import draw_rows
from dualt.audit.verified import and_more, check_drawn_at_random
from dualt.errors import InputError
from dualt.rows import as_posterior

N, C = 3000, 4


@pytest.fixture(scope="module")
def data():
    """Noise that grows with difficulty, and a classifier that repeats part of it: (probs, given, clean)."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, C, N)
    hard = rng.beta(0.7, 2, N)
    given = np.where(rng.random(N) < 0.6 * hard, (clean + 1) % C, clean)
    seen = np.where(rng.random(N) < 0.3, given, clean)
    scores = (2 + 3 * (1 - hard))[:, None] * np.eye(C)[seen] + rng.normal(size=(N, C))
    probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return probs, given, clean


def draw(data, size=200, seed=0):
    return np.random.default_rng(seed).choice(len(data[1]), size, replace=False)


def truth_of(data):
    counts = np.zeros((C, C))
    np.add.at(counts, (data[2], data[1]), 1)
    return counts / counts.sum(axis=1, keepdims=True)


def test_the_joint_is_that_of_all_rows_at_once(data):
    probs, given, clean = data
    rows = draw(data)
    base = dualt.estimate_transition(probs, given).transition
    result = correct_by_audit(as_posterior(probs, given), base, Audit(rows, clean[rows]))
    dense = result.calibration.predict(probs, given)
    dense[rows] = np.eye(C)[clean[rows]]
    expected = np.array([[dense[given == j, i].sum() for j in range(C)] for i in range(C)])
    np.testing.assert_allclose(result.joint, expected, rtol=1e-6)
    np.testing.assert_allclose(result.joint.sum(axis=0), np.bincount(given))
    np.testing.assert_allclose(result.transition.sum(axis=1), 1)
    assert result.verified.joint.sum() == pytest.approx(1)


def test_an_audit_brings_matrix_rate_and_probabilities_nearer_to_the_truth(data):
    probs, given, clean = data
    truth, wrong = truth_of(data), given != clean
    errors, gaps = [], []
    for seed in range(5):
        rows = draw(data, 300, seed)
        estimate = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
        issues = dualt.find_label_issues(probs, given, verified=(rows, clean[rows]))
        errors.append(dualt.l1_error(estimate.transition, truth, normalize=True))
        gaps.append(abs(issues.probability_right.mean() - (~wrong).mean()))
    plain = dualt.estimate_transition(probs, given)
    assert np.mean(errors) < 0.7 * dualt.l1_error(plain.transition, truth, normalize=True)
    assert np.mean(gaps) < abs(dualt.find_label_issues(probs, given).probability_right.mean() - (~wrong).mean())


def test_the_rate_is_held_by_its_interval(data):
    probs, given, clean = data
    rate, posterior = (given != clean).mean(), as_posterior(probs, given)
    transition = dualt.estimate_transition(probs, given).transition
    held, classes = [], []
    for seed in range(15):
        rows = draw_rows(np.arange(N), 150, seed)
        result = correct_by_audit(posterior, transition, Audit(rows, clean[rows]))
        low, high = result.noise_rate_interval()
        held.append(low <= rate <= high)
        lows, highs = result.transition_interval()
        classes.append(np.diagonal((lows <= truth_of(data)) & (truth_of(data) <= highs)))
    assert np.mean(held) >= 0.88  # nominally .95, of 15 draws
    assert np.mean(classes) >= 0.92


def test_the_estimate_carries_what_the_audit_showed(data, tmp_path):
    probs, given, clean = data
    rows = draw(data)
    estimate = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
    assert estimate.estimator == f"{dualt.estimators.DEFAULT_ESTIMATOR} + 200 verified"
    low, high = estimate.noise_rate_interval()
    assert (low, high) == estimate.noise_rate_interval(0.95)
    assert low <= estimate.noise_rate <= high
    narrow = estimate.noise_rate_interval(0.5)
    assert low < narrow[0] <= narrow[1] < high
    lows, highs = estimate.confidence_interval()
    assert (lows <= estimate.transition).all()
    assert (estimate.transition <= highs).all()
    assert estimate.noise_rate == pytest.approx(1 - np.trace(estimate.audit.joint) / N, abs=1e-6)
    again = pickle.loads(pickle.dumps(estimate))
    np.testing.assert_array_equal(again.audit.joint, estimate.audit.joint)
    assert again.replicates.shape[1:] == (C, C)
    estimate.save(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["audit"]["n_verified"] == 200


def test_classes_that_no_row_has_take_no_share(tmp_path):
    """Their rows of the matrix may equal others, so that label shares and matrix alone leave the prior open."""
    rng = np.random.default_rng(0)
    clean = rng.choice(5, 60, p=[0.5, 0.47, 0.03, 0, 0])
    scores = np.exp(3 * np.eye(5)[clean] + rng.normal(size=(60, 5)))
    probs = scores / scores.sum(axis=1, keepdims=True)
    estimate = dualt.estimate_transition(probs, clean, verified=(np.arange(60), clean))
    np.testing.assert_allclose(estimate.clean_prior, np.bincount(clean, minlength=5) / 60, atol=1e-9)
    assert estimate.noise_rate == pytest.approx(0, abs=1e-9)
    assert estimate.noise_rate_interval()[1] < 0.1
    assert dualt.noisy_accuracy(clean, clean, estimate).bounds[0] > 0.9


def test_no_verified_row_is_predicted_by_a_model_that_has_seen_it(data):
    probs, given, clean = data
    rows, posterior = np.sort(draw(data, 60)), as_posterior(probs, given)
    folds = calibration.assign_folds(60, np.random.default_rng([7, *rows.tolist()]))
    changed = np.where(folds == 0, (clean[rows] + 1) % C, clean[rows])
    base = noise.symmetric(C, 0.2)
    first, second = (correct_by_audit(posterior, base, Audit(rows, true)).verified for true in (clean[rows], changed))
    np.testing.assert_array_equal(first.posterior[folds == 0], second.posterior[folds == 0])
    assert (first.posterior[folds == 1] != second.posterior[folds == 1]).any()


def test_support_and_draws_say_how_much_is_known(data):
    probs, given, clean = data
    rows = draw(data, 300)
    result = correct_by_audit(as_posterior(probs, given), noise.symmetric(C, 0.2), Audit(rows, clean[rows]))
    fit, rng = corrected_fit(result), np.random.default_rng(0)
    support = np.bincount(clean[rows])
    np.testing.assert_array_equal(fit.support, support)
    drawn = np.array([fit.resample(rng) for _ in range(500)])[:, np.arange(C), np.arange(C)]
    share = np.diagonal(fit.transition)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(share * (1 - share) / (support + 1)), rtol=0.2)


def test_verified_rows_are_counted_in_the_issues(data):
    probs, given, clean = data
    rows = np.union1d(draw(data), [0, N - 1])
    issues = dualt.find_label_issues(probs, given, verified=(rows, clean[rows]))
    np.testing.assert_allclose(issues.by_pair.sum(axis=1), np.bincount(given))
    assert issues.expected_count == pytest.approx((1 - issues.probability_right.astype(float)).sum(), rel=1e-5)
    with pytest.raises(InputError, match="verified labels or a transition, got both"):
        dualt.find_label_issues(probs, given, np.eye(C), verified=(rows, clean[rows]))


def test_a_census_is_the_truth(data):
    probs, given, clean = some = [each[:500] for each in data]
    estimate = dualt.estimate_transition(probs, given, verified=(np.arange(500), clean))
    np.testing.assert_allclose(estimate.transition, truth_of(some), atol=1e-9)
    np.testing.assert_allclose(estimate.noise_rate_interval(), (given != clean).mean(), atol=1e-6)


def test_threads_blocks_and_float32_change_nothing(data):
    probs, given, clean = data
    rows = draw(data)
    one = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
    for pred_probs, options in ((probs, {"n_jobs": 3}), (probs.astype(np.float32), {})):
        other = dualt.estimate_transition(pred_probs, given, verified=(rows, clean[rows]), **options)
        np.testing.assert_allclose(other.transition, one.transition, atol=2e-3)


def test_suspects_are_refused(data):
    probs, given, clean = data
    posterior = as_posterior(probs, given)
    for seed in range(20):
        rows = draw(data, 100, seed)
        check_drawn_at_random(posterior, Audit(rows, clean[rows]))
    chance = 0.02 + 0.3 * (1 - probs[np.arange(N), given])
    rows = np.flatnonzero(np.random.default_rng(1).random(N) < chance)
    with pytest.raises(InputError, match="Draw the rows to verify at random"):
        dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))


def test_neither_the_order_of_the_verified_rows_nor_repeats_count(data):
    probs, given, clean = data
    rows = draw(data, 100)
    audits = [(own, clean[own]) for own in (rows, np.sort(rows), np.r_[rows, rows[:5]])]
    found = [dualt.estimate_transition(probs, given, verified=audit) for audit in audits]
    assert len({each.noise_rate_interval() for each in found}) == 1
    assert found[2].estimator.endswith("+ 100 verified")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows, true: (rows + N, true), "from 0 to 2,999, got"),
        (lambda rows, true: (np.r_[rows, rows[:1]], np.r_[true, (true[:1] + 1) % C]), "one true class for every"),
        (lambda rows, true: (rows, np.where(true == 1, 9, true)), "as true class of row 24 .*got '9'"),
        (lambda rows, true: (rows, np.where(true == 1, np.nan, true)), "as true class of row 24 .*got 'nan'"),
        (lambda rows, true: (rows, np.char.add(true.astype(str), "x")), "got '0x'"),
        (lambda rows, true: (rows[:9], true[:9]), "at least 10 verified rows, got 9. Verify 1 more"),
        (lambda rows, true: (rows[:0], true[:0]), "at least one label"),
        (lambda rows, true: (rows, true[:-1]), "50 rows and 49 values"),
    ],
)
def test_bad_audits_are_refused(data, change, message):
    probs, given, clean = data
    rows = draw(data, 50)
    with pytest.raises(InputError, match=message):
        dualt.estimate_transition(probs, given, verified=change(rows, clean[rows]))


def test_noise_by_class_is_not_hurt():
    clean = np.random.default_rng(1).integers(0, 3, 2000)
    truth = noise.pair(3, 0.3)
    given = noise.corrupt(clean, truth, random_state=2)
    probs = truth[clean] * 0.9 + 0.1 / 3
    rows = np.random.default_rng(3).choice(2000, 200, replace=False)
    plain = dualt.estimate_transition(probs, given)
    helped = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
    assert dualt.l1_error(helped, truth) < dualt.l1_error(plain, truth) + 0.05


def test_verified_positions_are_those_of_the_probabilities(data):
    """Labels are aligned by index: a position could be meant in either order, and is refused."""
    probs, given, clean = data
    rows, order = draw(data, 200), np.random.default_rng(9).permutation(N)
    frame, labels = pd.DataFrame(probs).iloc[order], pd.Series(given)
    for function in (dualt.estimate_transition, dualt.find_label_issues):
        with pytest.raises(InputError, match=r"same index in two orders.*labels\.loc\[probs\.index\]"):
            function(frame, labels, verified=(rows, clean[rows]))
    straight = dualt.estimate_transition(probs, given, verified=(rows, clean[rows]))
    places = np.argsort(order)[rows]
    shuffled = dualt.estimate_transition(frame, labels.loc[frame.index], verified=(places, clean[rows]))
    assert shuffled.noise_rate == pytest.approx(straight.noise_rate, abs=0.02)


def test_errors_name_rows_as_the_user_counts_them_where_labels_are_missing(data):
    probs, given, clean = data
    labels = given.astype(object)
    labels[:5] = None
    rows = np.arange(100, 200)
    for audit, got in [
        (Audit(np.append(rows, 150), np.append(clean[rows], (clean[150] + 1) % C)), "row 150"),
        (Audit(rows, clean[rows], given=(given[rows] + (rows == 120)) % C), "row 120"),
        (Audit(rows, np.where(rows == 130, 9, clean[rows])), "row 130"),
    ]:
        with pytest.raises(InputError, match=got):
            dualt.estimate_transition(probs, labels, verified=audit)
    assert (and_more(1), and_more(3)) == ("", " (and 2 more)")
