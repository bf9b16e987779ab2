import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dualt
from dualt import noise
from dualt.errors import InputError, UnknownNameError
from dualt.estimators import comparable
from dualt.estimators.confident_joint import count_confident
from dualt.rows import as_posterior
from tests.strategies import posteriors, transitions

SLOW = {"joint", "hoc"}
QUICK = [name for name in comparable(n_classes=2) if name not in SLOW]


def separable(transition, per_class=200, dtype=np.float64):
    """Exact posteriors of separable classes, with labels that realise each row exactly."""
    clean = np.repeat(np.arange(len(transition)), per_class)
    noisy = noise.corrupt(clean, transition, random_state=0, exact=True)
    return transition[clean].astype(dtype), noisy, clean


def dual_t_by_loops(probs, labels):
    n, n_classes = probs.shape
    t_club = [list(probs[max(range(n), key=lambda k, i=i: (probs[k, i], -k))]) for i in range(n_classes)]
    t_spade = [[0.0] * n_classes for _ in range(n_classes)]
    for row, label in zip(probs, labels, strict=True):
        t_spade[list(row).index(max(row))][label] += 1
    for i, row in enumerate(t_spade):
        total = sum(row)
        t_spade[i] = [value / total for value in row] if total else [float(i == j) for j in range(n_classes)]
    return np.array(
        [
            [sum(t_club[i][k] * t_spade[k][j] for k in range(n_classes)) for j in range(n_classes)]
            for i in range(n_classes)
        ]
    )


@given(posteriors())
def test_dual_t_equals_a_loop(data):
    probs, labels = data
    np.testing.assert_allclose(
        dualt.estimate_transition(probs, labels, "dual-t").transition, dual_t_by_loops(*data), atol=1e-9
    )


@pytest.mark.parametrize("estimator", QUICK)
@settings(max_examples=10)
@given(data=posteriors())
def test_every_estimate_is_row_stochastic_and_the_input_is_not_changed(estimator, data):
    before = [array.copy() for array in data]
    estimate = dualt.estimate_transition(*data, estimator)
    assert estimate.transition.min() >= 0
    np.testing.assert_allclose(estimate.transition.sum(axis=1), 1, atol=1e-9)
    low, high = estimate.confidence_interval()
    assert (low <= estimate.transition).all()
    assert (estimate.transition <= high).all()
    assert low.min() >= -1e-6
    assert high.max() <= 1 + 1e-6
    for array, copy in zip(data, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("estimator", QUICK)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 5))
def test_relabelling_classes_permutes_the_estimate(estimator, seed, n_classes):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_classes, 0.5), 80)
    # Labels that follow the probabilities: under pure chance T is singular, and rounding decides ties.
    labels = np.where(rng.random(80) < 0.8, probs.argmax(axis=1), rng.integers(0, n_classes, 80))
    order = rng.permutation(n_classes)
    place = np.argsort(order)
    plain = dualt.estimate_transition(probs, labels, estimator).transition
    permuted = dualt.estimate_transition(probs[:, order], place[labels], estimator).transition
    np.testing.assert_allclose(permuted, plain[np.ix_(order, order)], atol=1e-9)


@pytest.mark.parametrize("estimator", sorted(SLOW))
@settings(max_examples=2)
@given(data=posteriors(), seed=st.integers(0, 10_000), n_classes=st.integers(2, 5))
def test_the_laws_hold_for_the_slow_estimators(estimator, data, seed, n_classes):
    assume(len(data[1]) > 2)  # hoc asks for two neighbours
    test_every_estimate_is_row_stochastic_and_the_input_is_not_changed.hypothesis.inner_test(estimator, data)
    test_relabelling_classes_permutes_the_estimate.hypothesis.inner_test(estimator, seed, n_classes)


@pytest.mark.parametrize("name", ["sym-0.2", "sym-0.5", "pair-0.45"])
def test_exact_posteriors_of_separable_classes(name):
    """`t` is right there, and dual-T counts the noise twice: T @ T."""
    truth = noise.from_name(name, 10)
    probs, noisy, clean = separable(truth, per_class=900)
    np.testing.assert_allclose(dualt.estimate_transition(probs, noisy, "t").transition, truth, atol=1e-12)
    np.testing.assert_allclose(dualt.estimate_transition(probs, noisy, "dual-t").transition, truth @ truth, atol=2e-3)
    for estimator in ("spade", "confident-joint"):
        np.testing.assert_allclose(dualt.estimate_transition(probs, noisy, estimator).transition, truth, atol=2e-3)
    found = dualt.estimate_transition(probs, noisy, "oracle", clean_labels=clean).transition
    np.testing.assert_allclose(found, truth, atol=2e-3)


def test_over_confident_posteriors_are_what_dual_t_is_for():
    truth = noise.pair(5, 0.3)
    _, noisy, clean = separable(truth, per_class=1000)
    probs = np.eye(5)[clean] * 0.999 + 0.0002
    assert dualt.l1_error(dualt.estimate_transition(probs, noisy, "dual-t").transition, truth) < 0.02


def test_factors_and_anchors():
    probs = np.array([[0.7, 0.3], [0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    estimate = dualt.estimate_transition(probs, [0, 1, 1, 1], "dual-t")
    assert estimate.anchors.tolist() == [1, 2]
    np.testing.assert_allclose(estimate.t_club, [[0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_allclose(estimate.t_spade, [[0.5, 0.5], [0, 1]])
    np.testing.assert_allclose(estimate.transition, [[0.45, 0.55], [0.1, 0.9]])
    assert dualt.estimate_transition(probs, [0, 1, 1, 1], "confident-joint").t_club is None


def test_a_class_never_predicted_gets_the_unit_vector():
    estimate = dualt.estimate_transition([[0.6, 0.3, 0.1]] * 20, [0, 1] * 10, "spade", class_names=list("abc"))
    np.testing.assert_allclose(estimate.transition, [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    assert "class-never-predicted" in [notice.code for notice in estimate.warnings]


def quantile_anchor_by_loops(probs, quantile):
    """The released code's rule, on copies: zero what reaches the percentile, take the largest of the rest."""
    rows = []
    for i in range(probs.shape[1]):
        column = probs[:, i].copy()
        threshold = np.percentile(column, 100 * quantile, method="higher")
        column[column >= threshold] = 0.0
        rows.append(probs[np.argmax(column)])
    return np.array(rows)


@given(st.integers(0, 1000), st.integers(60, 200))
def test_quantile_anchors_follow_the_released_rule(seed, n):
    probs = np.random.default_rng(seed).dirichlet(np.ones(3), n)
    labels = np.arange(n) % 3
    found = dualt.estimate_transition(probs, labels, "t", anchor="quantile", quantile=0.97).transition
    np.testing.assert_allclose(found, quantile_anchor_by_loops(probs, 0.97))


def confident_counts_by_loops(probs, labels):
    n_classes = probs.shape[1]
    means = [np.mean([p[j] for p, y in zip(probs, labels, strict=True) if y == j]) for j in range(n_classes)]
    counts = np.zeros((n_classes, n_classes), int)
    for p, y in zip(probs, labels, strict=True):
        reached = [k for k in range(n_classes) if p[k] >= means[k] - 1e-12]  # a class's only example reaches its mean
        if reached:
            counts[y, max(reached, key=lambda k: p[k])] += 1
    return np.maximum(counts, np.eye(n_classes, dtype=int))


@given(st.integers(0, 1000), st.integers(2, 5), st.sampled_from([12, 100]))
def test_confident_joint_equals_a_loop(seed, n_classes, n_rows):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(n_classes, 0.4), n_rows)
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes))
    counts = confident_counts_by_loops(probs, labels)
    np.testing.assert_array_equal(count_confident(as_posterior(probs, labels)), counts)
    joint = (counts / counts.sum(axis=1, keepdims=True) * np.bincount(labels)[:, None]).T
    found = dualt.estimate_transition(probs, labels, "confident-joint").transition
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), atol=1e-5)


@given(transitions(), st.integers(0, 1000))
def test_oracle_counts_pairs(transition, seed):
    rng = np.random.default_rng(seed)
    n_classes = len(transition)
    clean, noisy = rng.integers(0, n_classes, 50), rng.integers(0, n_classes, 50)
    probs = rng.dirichlet(np.ones(n_classes), 50)
    found = dualt.estimate_transition(probs, noisy, "oracle", clean_labels=clean)
    assert found.fit.support.tolist() == np.bincount(clean, minlength=n_classes).tolist()
    for i in range(n_classes):
        expected = np.bincount(noisy[clean == i], minlength=n_classes) / max((clean == i).sum(), 1)
        np.testing.assert_allclose(found.transition[i], expected if (clean == i).any() else np.eye(n_classes)[i])


def test_estimators_for_few_classes_are_compared_up_to_a_hundred():
    assert {*comparable(100)} - {*comparable(101)} == SLOW


def test_unknown_methods_and_options_are_named():
    data = [[0.5, 0.5]], [0]
    with pytest.raises(UnknownNameError, match="Did you mean 'dual-t'"):
        dualt.estimate_transition(*data, "dual_t")
    with pytest.raises(InputError, match=r"no option 'shrunk'\. Its options: random_state"):
        dualt.estimate_transition(*data, "joint", shrunk=0.1)
    with pytest.raises(InputError, match="pass clean_labels, in Python"):
        dualt.estimate_transition(*data, "oracle")
    with pytest.raises(UnknownNameError, match="'max'"):
        dualt.estimate_transition(*data, "t", anchor="maximum")
