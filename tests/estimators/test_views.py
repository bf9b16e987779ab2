"""Several models as voices: what they find, laws of symmetry, and a reference written with loops."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import dualt
from dualt.estimators import views
from dualt.estimators._counts import pooled_rows
from dualt.estimators.clean_count import calibrated_sample, supported_shares
from dualt.estimators.views import calibrate_members, hear, pooled_posterior
from dualt.rows import as_posterior
from dualt.transition import softmax


def drawn(n_rows=3000, n_classes=3, rate=0.25, accuracies=(0.85, 0.8, 0.75), seed=0):
    """True classes, given labels, and models whose votes err independently."""
    rng = np.random.default_rng(seed)
    clean = rng.integers(n_classes, size=n_rows)
    given = dualt.noise.corrupt(clean, dualt.noise.pair(n_classes, rate), random_state=seed)
    members = []
    for accuracy in accuracies:
        right = rng.random(n_rows) < accuracy
        vote = np.where(right, clean, (clean + rng.integers(1, n_classes, n_rows)) % n_classes)
        sure = rng.uniform(0.5, 0.9, n_rows)[:, None]
        members.append(np.where(vote[:, None] == np.arange(n_classes), sure, (1 - sure) / (n_classes - 1)))
    return clean, given.astype(np.intp), np.stack(members)


def happened(clean, given):
    return pd.crosstab(clean, given, normalize="index").to_numpy()


def rate(heard, given):
    return 1 - heard.posterior[np.arange(len(given)), given].mean()


def test_independent_voices_find_the_matrix():
    clean, given, members = drawn()
    found = hear(calibrate_members(members, given), given, 2)
    assert np.abs(found.transition - happened(clean, given)).sum() / 3 < 0.06
    assert rate(found, given) == pytest.approx((clean != given).mean(), abs=0.02)
    claimed = dualt.estimate_transition(members, given, determined=True).noise_rate_interval()
    # These models contradict each other more often than labels look wrong, so it is their mean that claims.
    alone = dualt.estimate_transition(members.mean(axis=0), given).noise_rate_interval()
    assert claimed == pytest.approx(alone, abs=1e-3)
    assert 0 < claimed[0] < (clean != given).mean()
    assert (found.posterior.argmax(axis=1) == clean).mean() > 0.9


def test_the_order_of_models_and_classes_does_not_matter():
    _, given, members = drawn(800)
    found = hear(calibrate_members(members, given), given, 2)
    turned = hear(calibrate_members(members[::-1], given), given, 2)
    np.testing.assert_allclose(found.posterior, turned.posterior, atol=1e-6)
    order, labels = [2, 0, 1], np.array([1, 2, 0])[given]
    renamed = hear(calibrate_members(members[:, :, order], labels), labels, 2)
    np.testing.assert_allclose(renamed.posterior, found.posterior[:, order], atol=1e-6)


def test_the_voices_are_bayes_rule_by_loops(monkeypatch):
    """From the majority; each class has one vote more of every voice; what three models' levels say counts as √3."""
    _, given, members = drawn(60)
    monkeypatch.setattr(views, "LEVELS", 2)
    found = hear(members.astype(np.float32), given, 2)
    transition = None
    for _ in range(2):
        voices = [given.tolist()]
        for member in members:
            probs = member if transition is None else dualt.transition.early_posterior(member, transition)
            middle = np.median(probs.max(axis=1))
            voices.append([int(row.argmax()) + 3 * int(row.max() >= middle) for row in probs])
        posterior = np.full((60, 3), 0.01)
        for row, voice in np.ndindex(60, len(voices)):
            posterior[row, voices[voice][row] % 3] += 1
        posterior = np.array([row / sum(row) for row in posterior])
        for _ in range(2):
            weights = np.tile(posterior.mean(axis=0), (60, 1))
            for voice in voices:
                counts = np.zeros((3, 6))
                for row, clean in np.ndindex(60, 3):
                    counts[clean, voice[row]] += posterior[row][clean]
                counts = counts + counts.sum(axis=0) / 60
                for row, clean in np.ndindex(60, 3):
                    named = counts[clean, voice[row] % 3 :: 3].sum()
                    level = counts[clean, voice[row]] / named if voice is not voices[0] else 1
                    weights[row, clean] *= named / counts[clean].sum() * level ** (1 / np.sqrt(3))
            posterior = np.array([row / sum(row) for row in weights])
        counts = np.zeros((3, 3))
        for row in range(60):
            counts[:, given[row]] += posterior[row]
        transition = pooled_rows(counts)
    np.testing.assert_allclose(found.posterior, posterior, atol=1e-5)
    np.testing.assert_allclose(found.transition, counts / counts.sum(axis=1, keepdims=True), atol=1e-5)


def test_nobody_votes_for_the_class_of_a_single_typo():
    pixels, digits = load_digits(return_X_y=True)
    pixels, clean = pixels[digits < 5], digits[digits < 5]
    given = dualt.noise.corrupt(clean, dualt.noise.symmetric(5, 0.1), random_state=0)
    given[0] = 9
    probs = dualt.cross_fit(pixels, given, kind="embedding")
    assert probs.members[:, :, -1].max() < 1e-6  # no other row has this label
    found = dualt.estimate_transition(probs, given)
    wrong = (given != clean).mean()
    assert found.clean_prior[-1] < 0.005
    assert found.noise_rate == pytest.approx(wrong, abs=0.02)
    assert found.noise_rate_interval()[0] <= wrong


@pytest.mark.parametrize("n_steps", [2, 100])
def test_a_rare_class_does_not_come_to_mean_a_hard_example(monkeypatch, n_steps):
    """Models that are unsure of the same rows: as voices of their own they would give it 37% of the rows, not 10."""
    monkeypatch.setattr(views, "TRANSITION_STEPS", n_steps)
    rng = np.random.default_rng(0)
    clean = (rng.random(6000) < 0.1).astype(np.intp)
    hard, members = rng.random(6000) < 0.3, []
    given = np.where(rng.random(6000) < np.where(hard, 0.2, 0.02), 1 - clean, clean)
    for accuracy in (0.9, 0.88, 0.86):
        vote = np.where(rng.random(6000) < np.where(hard, accuracy, 0.99), clean, 1 - clean)
        sure = np.where(hard, rng.uniform(0.6, 0.8, 6000), rng.uniform(0.9, 1, 6000))
        members.append(np.where(vote[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None]))
    found = dualt.estimate_transition(np.stack(members), given, determined=True)
    assert found.clean_prior[1] == pytest.approx(clean.mean(), abs=0.03)
    assert np.abs(found.transition - happened(clean, given)).sum() / 2 < 0.1  # as voices of their own .13 and .58
    assert found.noise_rate_interval()[0] <= (given != clean).mean()


def test_labels_that_no_model_contradicts_are_not_claimed():
    """Where models are unsure of a rare class, the voices find it in rows that all call common."""
    rng = np.random.default_rng(0)
    rare, wrong = 0.9 * rng.random(4000) ** 8, rng.random(4000) < 0.12
    given = ((rng.random(4000) < rare) ^ wrong).astype(np.intp)
    seen = (rare + rng.normal(0, 0.17, (3, 4000))).clip(0.01, 0.99)
    found = dualt.estimate_transition(np.stack([1 - seen, seen], axis=2), given, determined=True)
    assert 0.8 * wrong.mean() < found.noise_rate_interval()[0] < wrong.mean() < 0.7 * found.noise_rate


def test_clean_labels_and_good_models_leave_little_noise():
    clean, _, members = drawn(rate=0, accuracies=(0.97, 0.96, 0.95))
    assert rate(hear(calibrate_members(members, clean), clean, 2), clean) < 0.02


def informed_by_loops(calibrated, given):
    """What each model explains of the labels' entropy, as a share of the largest."""
    entropy = -sum(share * np.log(share) for share in np.bincount(given) / len(given))
    logs = [np.mean([np.log(row[label]) for row, label in zip(probs, given, strict=True)]) for probs in calibrated]
    return [(1 + log / entropy) / (1 + max(logs) / entropy) for log in logs]


def test_good_models_claim_the_rate_less_their_disagreement():
    _, given, members = drawn(accuracies=(0.98, 0.98, 0.95))
    weights = informed_by_loops(calibrate_members(members, given), given)
    predicted = list(zip(weights, members.argmax(axis=2), strict=True))
    apart = max(v * w * np.mean(a != b) for v, a in predicted for w, b in predicted)  # not that of the two good ones
    found = dualt.estimate_transition(members, given, determined=True)
    error = 1.96 * np.sqrt(found.noise_rate * (1 - found.noise_rate) / len(given))
    assert 0.1 < found.noise_rate_interval()[0] == pytest.approx(found.noise_rate - apart - error, abs=0.001)


def test_the_noise_rate_is_that_of_the_voices():
    """Shares of rare classes are ill-determined by matrix and label shares, so they come from the voices."""
    _, given, members = drawn(accuracies=(0.98, 0.97))
    voices = hear(calibrate_members(members, given), given, 2)
    found = dualt.estimate_transition(members, given, determined=True)
    np.testing.assert_allclose(found.clean_prior, voices.posterior.mean(axis=0), atol=0.002)
    assert found.noise_rate == pytest.approx(rate(voices, given), abs=0.002)


def test_the_voices_are_believed_as_far_as_the_models_agree():
    """The counts get the weight (disputed share / .45)³; a row counts by the best informed pair that differs there."""
    for accuracies, all_counts in (((0.9, 0.85), False), ((0.8, 0.75, 0.7), False), ((0.7, 0.7, 0.7), True)):
        _, given, members = drawn(accuracies=accuracies)
        calibrated = calibrate_members(members, given)
        explained, disputed = informed_by_loops(calibrated, given), 0.0
        for named in zip(*(probs.argmax(axis=1) for probs in calibrated), strict=True):
            pairs = ((a, b) for a in range(len(named)) for b in range(a) if named[a] != named[b])
            disputed += max((explained[a] * explained[b] for a, b in pairs), default=0) / len(given)
        assert (disputed >= 0.45) == all_counts
        counts = dualt.estimate_transition(members.mean(axis=0), given, determined=True).transition
        heard, weight = hear(calibrated, given, 2), min(1, (disputed / 0.45) ** 3)
        assert heard.belief == pytest.approx(1 - weight, abs=1e-4)
        found = dualt.estimate_transition(members, given, determined=True).transition
        np.testing.assert_allclose(found, weight * counts + (1 - weight) * heard.transition, atol=2e-3)


def test_a_model_that_guesses_does_not_change_what_the_others_say():
    _, given, members = drawn(accuracies=(0.9, 0.85))
    guesses = np.random.default_rng(1).dirichlet(np.ones(members.shape[2]), len(given))
    alone = dualt.estimate_transition(members, given, determined=True)
    beside = dualt.estimate_transition([*members, guesses], given, determined=True)
    np.testing.assert_allclose(beside.transition, alone.transition, atol=0.03)
    assert beside.noise_rate == pytest.approx(alone.noise_rate, abs=0.01)
    assert beside.noise_rate_interval()[0] == pytest.approx(alone.noise_rate_interval()[0], abs=0.03) != 0


def test_weak_models_that_share_their_errors_do_not_outvote_good_labels():
    rng = np.random.default_rng(0)
    clean, shared = rng.integers(4, size=(2, 4000))
    given = np.where(rng.random(4000) < 0.1, rng.integers(4, size=4000), clean)
    hard, members = rng.random(4000) < 0.5, []
    for _ in range(4):  # on hard rows all see the same wrong class, and half of the time something else
        seen = np.where(hard, np.where(rng.random(4000) < 0.5, shared, rng.integers(4, size=4000)), clean)
        sure = np.where(hard, 0.45, 0.9)[:, None]
        members.append(np.where(seen[:, None] == np.arange(4), sure, (1 - sure) / 3))
    outvoted = rate(hear(calibrate_members(members, given), given, 2), given)
    found = dualt.estimate_transition(members, given, determined=True).noise_rate
    assert max(0.3, found / 0.6) < outvoted


def test_overconfident_probabilities_are_brought_back():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 5000)
    labels = (probs.cumsum(axis=1) < rng.random((5000, 1))).sum(axis=1).clip(max=2)
    for power in (0.5, 2):
        bent = probs**power / (probs**power).sum(axis=1, keepdims=True)
        assert np.abs(calibrate_members([bent], labels)[0] - probs).mean() < 0.03 < np.abs(bent - probs).mean()


def test_the_pool_holds_bayes_rule_by_loops(monkeypatch):
    _, given, members = drawn(50)
    transition = dualt.noise.pair(3, 0.3)
    monkeypatch.setattr(views, "_stacked", lambda calibrated, labels, _: np.ones((50, 3)))
    found = pooled_posterior(members.astype(np.float32), given, transition, None)
    clean = dualt.transition.early_posterior(members.mean(axis=0), transition)
    for row in range(50):
        joint = np.array([clean[row, true] * transition[true, given[row]] for true in range(3)])
        weights = np.sqrt(np.maximum(joint / joint.sum(), 1e-6))
        np.testing.assert_allclose(found[row], weights / weights.sum(), rtol=1e-3)


def test_the_stacked_model_is_the_one_that_labels_were_drawn_from():
    """Models that count 1.2 and .3, a bias, and a matrix: all are found from the labels."""
    rng = np.random.default_rng(0)
    members = rng.dirichlet(np.full(3, 0.3), (2, 6000)).astype(np.float32)
    logs = np.log(np.maximum(members, 1e-4))
    clean_probs = softmax(1.2 * logs[0] + 0.3 * logs[1] + [0.7, -0.7, 0])
    clean = (clean_probs.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1).clip(max=2)
    transition = dualt.noise.pair(3, 0.3)
    given = dualt.noise.corrupt(clean, transition, random_state=0)
    expected = clean_probs * transition.T[given]
    expected /= expected.sum(axis=1, keepdims=True)
    found = views._stacked(list(members), given, transition)
    assert np.abs(found - expected).mean() < 0.02
    assert np.abs(views._stacked([members[0]], given, transition) - expected).mean() > 0.03
    rare = np.tile(np.float32([0.6, 0.3999, 0.0001]), (20, 1))  # a class that no row is likely to have
    assert np.isfinite(views._stacked([rare], np.arange(20) % 2, transition)).all()


def test_levels_of_confidence_are_equally_frequent():
    _, _, members = drawn(900)
    votes = views._votes(members[0].astype(np.float32), None)
    np.testing.assert_array_equal(votes % 3, members[0].argmax(axis=1))
    np.testing.assert_allclose(np.bincount(votes // 3), 900 / views.LEVELS, atol=2)
    sure = members[0].max(axis=1)
    assert sure[votes // 3 == 2].min() >= sure[votes // 3 == 1].max()


def test_a_second_model_ranks_what_one_repeats():
    """Labels by a rule that the first model repeats: the second knows better."""
    clean, given, members = drawn(rate=0.2)
    copied = np.where(given[:, None] == np.arange(3), 0.9, 0.05)
    members = np.stack([copied, *members[:2]])
    calibrated = calibrate_members(members, given)
    found = hear(calibrated, given, 1)
    pooled = pooled_posterior(calibrated, given, found.transition, found)
    wrong, rows = clean != given, np.arange(len(given))
    assert wrong[np.argsort(pooled[rows, given])[: wrong.sum()]].mean() > 0.75
    assert wrong[np.argsort(copied[rows, given])[: wrong.sum()]].mean() < 0.3


def test_several_models_are_taken_in_any_form():
    _, given, members = drawn(600)
    found = dualt.estimate_transition(members, given, determined=True)
    assert found.estimator == "views"
    np.testing.assert_allclose(found.transition.sum(axis=1), 1)
    for same in (list(members), tuple(members), members.astype(np.float64), [pd.DataFrame(one) for one in members]):
        again = dualt.estimate_transition(same, given, determined=True)
        np.testing.assert_allclose(again.transition, found.transition, atol=1e-3)
    assert dualt.estimate_transition(members[:1], given).estimator == "clean-count"
    low, high = found.noise_rate_interval()
    assert 0 <= low <= found.noise_rate <= high == 1
    assert np.asarray(found.confidence_interval(0.9)).shape[-2:] == (3, 3)


def test_the_answer_chooses_the_reading():
    _, given, members = drawn(1500)
    false, true, unknown = (dualt.estimate_transition(members, given, determined=each) for each in (False, True, None))
    np.testing.assert_allclose(false, dualt.estimate_transition(members.mean(0), given, determined=False), atol=0.01)
    sample = calibrated_sample(as_posterior(members, given))
    share = supported_shares(sample, true.transition, 1).most
    np.testing.assert_allclose(unknown, np.eye(3) + share * (true.transition - np.eye(3)))
    _, given, members = drawn(1500, accuracies=(0.97, 0.96))
    true, unknown = (dualt.estimate_transition(members, given, determined=answer) for answer in (True, None))
    assert 0 < unknown.noise_rate_interval()[0] <= true.noise_rate_interval()[0]


def test_what_the_labels_contradict_is_not_believed_without_an_answer():
    """Clean labels of classes that overlap: good models contradict labels that are right, all in the same way."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 4000)
    given = (probs.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1).clip(max=2)
    members = np.stack([p / p.sum(axis=1, keepdims=True) for p in (probs * rng.uniform(0.8, 1.2, (2, 4000, 3)))])
    true, unknown = (dualt.estimate_transition(members, given, determined=answer) for answer in (True, None))
    assert true.noise_rate > 0.25
    assert unknown.noise_rate < 0.5 * true.noise_rate
    np.testing.assert_allclose(unknown.clean_prior.sum(), 1)
    assert unknown.noise_rate_interval()[0] == 0


def test_rows_without_a_label_and_the_way_from_cross_fit():
    rng = np.random.default_rng(0)
    clean = rng.integers(2, size=200)
    features = rng.normal(size=(200, 3)) + 2 * np.eye(2, 3)[clean]
    given = np.where(rng.random(200) < 0.1, 1 - clean, clean).astype(object)
    given[[3, 9]] = None
    probs = dualt.cross_fit(features, given, cv=2)
    estimate = dualt.estimate_transition(probs, given)
    assert (estimate.estimator, estimate.fit.determined) == ("views", False)
    issues = dualt.find_label_issues(probs, given, determined=True)
    assert len(issues) == 200
    assert not issues.is_issue[[3, 9]].any()
    assert (given != clean)[issues.ranking[:10]].mean() > 0.5
    alone = dualt.find_label_issues(probs[probs.labelled], given[probs.labelled], determined=True)
    np.testing.assert_allclose(issues.probability_right[probs.labelled], alone.probability_right, atol=1e-6)


def test_a_known_matrix_and_verified_labels_go_with_several_models():
    clean, given, members = drawn(600)
    issues = dualt.find_label_issues(members, given, happened(clean, given), determined=True)
    assert (given != clean)[issues.ranking[:60]].mean() > 0.8
    checked = np.arange(0, 600, 5)
    audited = dualt.find_label_issues(members, given, verified=(checked, clean[checked]))
    assert audited.transition_estimate.estimator == "views + 120 verified"
