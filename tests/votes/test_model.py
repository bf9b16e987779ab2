"""The EM of votes beside one written with loops, and the laws of its result."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt.transition import softmax
from dualt.votes import model
from dualt.votes.model import calibrate, evenly_wrong, fit_overlap, fit_votes, tempered


def crowd(seed, n_items=60, n_annotators=5, n_classes=3, per_item=3, skill=0.75):
    """Return (item, annotator, vote) and the true classes of random annotators of differing skill."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    skills = np.clip(rng.normal(skill, 0.1, n_annotators), 0.4, 0.95)
    item = np.repeat(np.arange(n_items), per_item)
    annotator = np.concatenate([rng.choice(n_annotators, per_item, replace=False) for _ in range(n_items)])
    right = rng.random(len(item)) < skills[annotator]
    vote = np.where(right, truth[item], (truth[item] + rng.integers(1, n_classes, len(item))) % n_classes)
    return (item, annotator, vote), truth


def soft(truth, n_classes, seed, right=0.7):
    """Return probabilities of a classifier that is right that often."""
    rng = np.random.default_rng(seed)
    said = np.where(rng.random(len(truth)) < right, truth, rng.integers(n_classes, size=len(truth)))
    return np.eye(n_classes)[said] * 0.6 + 0.4 / n_classes


def loops(item, annotator, vote, n_items, n_annotators, n_classes, n_iter, overlap, rules=False, probs=None):
    """The model without verified items, one vote at a time; all annotators are rules, or none is."""
    votes = list(zip(item, annotator, vote, strict=True))
    n_votes = [sum(i == n for i, _, _ in votes) + (probs is not None) for n in range(n_items)]
    q = np.full((n_items, n_classes), 0.01) if probs is None else probs.copy()
    for i, _, v in votes:
        q[i, v] += 1
    first = q = np.array([row / sum(row) for row in q])
    tau, bias, several = 1.0, np.zeros(n_classes), np.array(n_votes) > 1
    for _ in range(n_iter):
        counts, pooled = np.zeros((n_annotators, n_classes, n_classes)), np.ones((n_classes, n_classes))
        share = len(votes) / (len(votes) + model.MAJORITY_VOTES * n_classes)
        taught = np.array([h * new + (1 - h) * old for h, new, old in zip(share * several, q, first, strict=True)])
        for i, a, v in votes:
            counts[a, :, v] += 0 if rules else q[i]
            pooled[:, v] += taught[i]
        frequent = sum(taught[several]) + 1
        shares = frequent**model.RULE_SHARES if rules else frequent
        prior = np.tile(shares / sum(shares), (n_items, 1))
        common = np.array([row / sum(row) for row in pooled])
        matrices = np.array([
            [(counts[a, y] + model.POOLING * common[y]) / (sum(counts[a, y]) + model.POOLING) for y in range(n_classes)]
            for a in range(n_annotators)
        ])  # fmt: skip
        if probs is not None:
            logs, said = np.log(probs), softmax(tau * np.log(probs) + bias)
            curvature = sum(p @ row**2 - (p @ row) ** 2 for p, row in zip(said, logs, strict=True))
            tau = np.clip(tau + np.clip(((q - said) * logs).sum() / curvature, -0.5, 0.5), 0.1, model.MAX_TEMPERATURE)
            frequent = sum(q[several]) + 1 if rules else frequent  # the majority of rules is no guide
            bias = bias + 0.9 * np.log(frequent / (sum(softmax(tau * logs + bias)[several]) + 1))
            prior = softmax(tau * logs + bias)
        q = prior.copy()
        for i, a, v in votes:
            q[i] *= matrices[a, :, v]
        q = np.array([row / sum(row) for row in q])
    logits = np.log(prior)
    for i, a, v in votes:
        rest = np.maximum(counts[a].sum(axis=1) - q[i], 0) + model.POOLING  # of a rule only the common row is left
        logits[i] += np.log((np.maximum(counts[a, :, v] - q[i], 0) + model.POOLING * common[:, v]) / rest)
    final = [np.exp(row / (1 + max(n - 1, 0) * overlap)) for n, row in zip(n_votes, logits, strict=True)]
    return np.array([row / sum(row) for row in final]), matrices, common


def test_votes_that_are_evenly_wrong_show_how_often_and_how_frequent_each_class_is():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 20_000, p=[0.7, 0.25, 0.05])
    wrong = (truth[:, None] + rng.integers(1, 3, (20_000, 3))) % 3
    votes = np.where(rng.random((20_000, 3)) < 0.8, truth[:, None], wrong)
    counts, seen = np.eye(3)[votes].sum(axis=1), []
    posterior = evenly_wrong(counts, lambda shares: seen.append(shares) or np.log(shares)[None])
    np.testing.assert_allclose(seen[0], [0.7, 0.25, 0.05], atol=0.01)
    weights = [0.7, 0.25, 0.05] * np.array([0.8, 0.1, 0.1]) ** 2 * [0.1, 0.1, 0.8]  # two votes for class 0, one for 2
    first = np.flatnonzero((np.sort(votes) == [0, 0, 2]).all(axis=1))[0]
    np.testing.assert_allclose(posterior[first], weights / weights.sum(), atol=0.01)


@pytest.mark.parametrize("n_votes", [2, 3])
def test_where_a_class_is_rare_what_is_called_wrong_at_least_is(n_votes):
    rng = np.random.default_rng(n_votes)
    truth = (rng.random(3000) < 0.03).astype(int)
    item = np.repeat(np.arange(3000), n_votes)
    who = rng.permuted(np.tile(np.arange(30), (3000, 1)), axis=1)[:, :n_votes].ravel()
    right = rng.random(len(item)) < rng.uniform(0.75, 0.98, 30)[who]
    fit = fit_votes(item, who, np.where(right, truth[item], 1 - truth[item]), 3000, 30, 2)
    assert fit.least_rate <= (fit.posterior.argmax(axis=1) != truth).mean()


def rule_votes(seed, n_items=2000, n_classes=3):
    """Return votes of nine rules and the true classes; each fires on many items of its class and on some others."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    rate = np.where(truth[:, None] == np.arange(9) % n_classes, 0.5, 0.08)
    item, annotator = np.nonzero(rng.random((n_items, 9)) < rate)
    return (item, annotator, annotator % n_classes), truth


@pytest.mark.parametrize("with_classifier", [False, True])
@pytest.mark.parametrize(("per_item", "overlap"), [(2, 0.4), (3, 0.0), (4, 0.4), ("rules", 0.4)])
def test_the_fit_is_that_of_loops(per_item, overlap, with_classifier):
    rules = per_item == "rules"
    votes, truth = rule_votes(0, n_items=120) if rules else crowd(per_item, n_items=25, per_item=per_item)
    assert not rules or {0, 1} < {*np.bincount(votes[0], minlength=120)}
    sizes, probs = (len(truth), 9 if rules else 5, 3), soft(truth, 3, 0) if with_classifier else None
    fit = fit_votes(*votes, *sizes, overlap=overlap, probs=probs, max_iter=5, tol=0)
    expected = loops(*votes, *sizes, 5, overlap, rules, probs)
    for found, own in zip((fit.posterior, fit.matrices, fit.common), expected, strict=True):
        np.testing.assert_allclose(found, own, atol=1e-10)
    stopped = fit_votes(*votes, *sizes, tol=1.5)  # posteriors of an item differ by 2 at most
    np.testing.assert_array_equal(stopped.posterior, fit_votes(*votes, *sizes, max_iter=1).posterior)


def test_single_votes_do_not_change_the_class_shares():
    (item, annotator, vote), _ = crowd(0)
    # A vote for class 0 on each of a hundred more items.
    more = np.arange(60, 160), np.zeros(100, int), np.zeros(100, int)
    alone = fit_votes(item, annotator, vote, 60, 5, 3, max_iter=1)
    both = (np.append(old, new) for old, new in zip((item, annotator, vote), more, strict=True))
    np.testing.assert_allclose(fit_votes(*both, 160, 5, 3, max_iter=1).shares, alone.shares)


@pytest.mark.parametrize("with_classifier", [False, True])
def test_the_fit_in_blocks_is_the_same(monkeypatch, with_classifier):
    votes, truth = crowd(0)
    options = {"probs": soft(truth, 3, 0) if with_classifier else None, "verified": ([3, 50], truth[[3, 50]])}
    whole = fit_votes(*votes, 60, 5, 3, **options)
    monkeypatch.setattr(model, "_BLOCK", 20)
    for name, value in fit_votes(*votes, 60, 5, 3, **options)._asdict().items():
        np.testing.assert_allclose(value, getattr(whole, name), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize(("tau", "bias"), [(0.6, [0.0, 0.0, 0.0]), (1.4, [0.5, -0.5, 0.0]), (5.0, [0.0, 0.0, 0.0])])
def test_calibration_finds_the_temperature_and_the_bias(tau, bias):
    logs = np.log(np.random.default_rng(0).dirichlet([1, 1, 1], 500))
    target = softmax(tau * logs + bias)
    prior = model.log_prior(np.ones(3), logs, tau, np.array(bias), slice(0, 9))
    np.testing.assert_allclose(np.exp(prior), target[:9], atol=1e-9)
    found: tuple = 1.0, np.zeros(3)
    for _ in range(50):
        found = calibrate(logs, target, np.ones(500), target.sum(axis=0) + 1, *found)
    assert found[0] == pytest.approx(min(tau, model.MAX_TEMPERATURE), rel=1e-3)
    if tau < model.MAX_TEMPERATURE:
        np.testing.assert_allclose(found[1] - found[1].mean(), bias, atol=1e-3)


@given(seed=st.integers(0, 10_000), with_classifier=st.booleans())
def test_renaming_and_reordering_permute_the_result(seed, with_classifier):
    (item, annotator, vote), truth = crowd(seed, n_items=40)
    probs = soft(truth, 3, seed) if with_classifier else None
    plain = fit_votes(item, annotator, vote, 40, 5, 3, probs=probs)
    rng = np.random.default_rng(seed)
    order, items, people, classes = (rng.permutation(n) for n in (len(item), 40, 5, 3))
    moved = None if probs is None else probs[np.argsort(items)][:, np.argsort(classes)]
    other = fit_votes(items[item][order], people[annotator][order], classes[vote][order], 40, 5, 3, probs=moved)
    np.testing.assert_allclose(other.posterior[items[:, None], classes], plain.posterior, atol=1e-6)
    back = other.matrices[people[:, None, None], classes[:, None], classes]
    np.testing.assert_allclose(back, plain.matrices, atol=1e-6)
    np.testing.assert_allclose(plain.posterior.sum(axis=1), 1)
    np.testing.assert_allclose(plain.matrices.sum(axis=2), 1)


def test_matrices_are_recovered_from_many_votes():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=4000)
    uneven = [[0.9, 0.1, 0], [0, 0.6, 0.4], [0.2, 0, 0.8]]
    true_matrices = np.array([np.eye(3) * 0.7 + 0.1, uneven, np.eye(3) * 0.4 + 0.2])
    votes = np.array([[rng.choice(3, p=matrix[y]) for y in truth] for matrix in true_matrices])
    item, annotator = np.tile(np.arange(4000), 3), np.repeat(np.arange(3), 4000)
    fit = fit_votes(item, annotator, votes.ravel(), 4000, 3, 3, overlap=0)
    assert np.abs(fit.matrices - true_matrices).max() < 0.07


def test_an_audit_refits_the_overlap_and_verified_items_are_certain():
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=400)
    hard = rng.random(400) < 0.25  # everybody fails on the same items
    vote = np.where(hard[:, None], 1 - truth[:, None], truth[:, None]).repeat(4, axis=1)
    vote = np.where(rng.random(vote.shape) < 0.05, 1 - vote, vote)
    item, annotator = np.repeat(np.arange(400), 4), np.tile(np.arange(4), 400)
    drawn = rng.choice(400, 100, replace=False)
    known, votes = (drawn, truth[drawn]), (item, annotator, vote.ravel(), 400, 4, 2)
    audited = fit_votes(*votes, audited=known)
    assert audited.overlap > 2 * model.OVERLAP
    consensus = fit_votes(*votes).posterior.argmax(axis=1)
    assert (audited.posterior.argmax(axis=1) == consensus).all()
    assert fit_votes(*votes, audited=(drawn, consensus[drawn])).overlap < model.OVERLAP, "always right, hence surer"
    verified = fit_votes(*votes, verified=known)
    assert verified.overlap == model.OVERLAP
    assert (verified.posterior[known] == 1).all()


def test_rules_with_one_class_each_are_better_than_their_majority():
    (item, annotator, vote), truth = rule_votes(0)
    rng = np.random.default_rng(0)
    fit = fit_votes(item, annotator, vote, 2000, 9, 3)
    counts = np.zeros((2000, 3))
    np.add.at(counts, (item, vote), 1)
    voted = counts.any(axis=1)
    majority = (counts + rng.random(counts.shape) * 0.01).argmax(axis=1)
    assert (fit.posterior.argmax(axis=1) == truth)[voted].mean() >= (majority == truth)[voted].mean() - 0.01


def test_people_who_met_no_item_of_a_rare_class_are_no_rules():
    """Rules have different classes; a hundred people with some 15 votes each have met no fraud."""
    rng = np.random.default_rng(0)
    truth = (rng.random(500) < 0.01).astype(int)
    item, people = np.repeat(np.arange(500), 3), np.concatenate([rng.choice(100, 3, replace=False) for _ in range(500)])
    vote = np.where(rng.random(1500) < 0.01, 1 - truth[item], truth[item])
    fit = fit_votes(item, people, vote, 500, 100, 2)
    wrong = (fit.posterior.argmax(axis=1) != truth).mean()
    assert fit.least_rate <= wrong + 0.01
    assert wrong < 0.02


def test_the_overlap_is_recovered_from_true_classes_and_from_votes_left_out():
    rng = np.random.default_rng(0)
    logits, voices = rng.normal(size=(5000, 3)) * 3, np.full(5000, 4)
    truth = (tempered(logits, voices, 1.0).cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    matrix = np.eye(3) * 0.7 + 0.1
    vote = (matrix[truth].cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    for part in ((logits, voices, np.eye(3)[truth]), (logits, voices, matrix.T[vote])):
        assert fit_overlap([part].copy, model.OVERLAP, most=5) == pytest.approx(1.0, abs=0.15)
    independent = crowd(0, per_item=4)[0]
    fit, sure = fit_votes(*independent, 60, 5, 3), fit_votes(*independent, 60, 5, 3, overlap=0)
    assert fit.overlap == model.OVERLAP  # votes do not lower it
    assert (sure.posterior.argmax(axis=1) == fit.posterior.argmax(axis=1)).all()
    assert (sure.posterior.max(axis=1) >= fit.posterior.max(axis=1)).all()


def test_many_votes_are_worth_at_least_one():
    """Weak annotators beside a good classifier: the consensus was right in 91%, and 37% were claimed."""
    rng = np.random.default_rng(0)
    truth, item, annotator = rng.integers(10, size=3000), np.repeat(np.arange(3000), 2), rng.integers(60, size=6000)
    vote = np.where(rng.random(6000) < 0.4, truth[item], rng.integers(10, size=6000))
    predicted = np.where(rng.random(3000) < 0.9, truth, rng.integers(10, size=3000))
    probs = np.where(predicted[:, None] == np.arange(10), 0.9, 0.1 / 9)
    fit = fit_votes(item, annotator, vote, 3000, 60, 10, probs=probs)
    assert fit.overlap <= 1
    assert 0.7 < fit.posterior.max(axis=1).mean() <= (fit.posterior.argmax(axis=1) == truth).mean()


def test_an_item_without_votes_has_the_class_shares_or_the_classifier():
    votes, truth = crowd(0)
    assert fit_votes(*votes, 61, 5, 3).posterior[60].sum() == pytest.approx(1)
    probs = np.vstack([soft(truth, 3, 0), [0.98, 0.01, 0.01]])
    assert fit_votes(*votes, 61, 5, 3, probs=probs).posterior[60].argmax() == 0
