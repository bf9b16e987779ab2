"""Calibration against a loop-written model, scipy's optimiser, a dense Hessian, and laws."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dualt.audit import calibration as c
from dualt.audit import calibration_fit as fit

BAYES = np.array([1.0, 1.0, 0.0, 0.0])


def problem(seed=0, n_rows=60, n_classes=3, strength=2.0):
    rng = np.random.default_rng(seed)
    transition = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), n_classes)
    scores = strength * rng.standard_normal((n_rows, n_classes))
    clean = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = np.array([rng.choice(n_classes, p=row) for row in clean])
    given = np.array([rng.choice(n_classes, p=transition[i]) for i in true])
    return clean @ transition, given, clean, transition, true


def loop_posterior(p, given, q, transition, theta, offsets):
    n_classes = len(transition)
    result = np.empty(p.shape)
    for k, j in enumerate(given):
        for i in range(n_classes):
            entry = (1 - 1e-3) * transition[i, j] + 1e-3 / n_classes
            score = theta[0] * np.log(max(q[k, i], 1e-4)) + theta[1] * np.log(entry)
            score += theta[2] * (i == j) + theta[3] * np.log(max(p[k, i], 1e-4)) + offsets[i, j]
            result[k, i] = np.exp(score)
        result[k] /= result[k].sum()
    return result


def loop_loss(parameters, p, given, q, transition, true, weights, scale):
    n_classes = len(transition)
    theta, offsets = parameters[:4], parameters[4:].reshape(n_classes, n_classes)
    found = loop_posterior(p, given, q, transition, theta, offsets)
    nll = -sum(w * np.log(row[i]) for w, row, i in zip(weights, found, true, strict=True))
    return nll + 2 * ((theta - BAYES) ** 2).sum() + (offsets**2).sum() / (2 * scale**2)


def test_posterior_is_the_formula():
    p, given, q, transition, _ = problem()
    rng = np.random.default_rng(1)
    theta, offsets = rng.standard_normal(4), rng.standard_normal(transition.shape)
    found = c.Calibration(theta, offsets, 1, transition).posterior(p, given, q)
    np.testing.assert_allclose(found, loop_posterior(p, given, q, transition, theta, offsets), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_without_verified_rows_it_would_be_bayes_rule():
    p, given, q, transition, _ = problem()
    found = c.Calibration(BAYES, np.zeros_like(transition), 1, transition).posterior(p, given, q)
    bayes = q * transition.T[given]
    np.testing.assert_allclose(found, bayes / bayes.sum(axis=1, keepdims=True), atol=1e-2)


@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_the_minimum_that_scipy_finds(weighted):
    p, given, q, transition, true = problem(n_rows=40)
    weights = np.random.default_rng(2).uniform(0.5, 3, 40) if weighted else np.ones(40)
    found = c.fit_calibration(p, given, q, transition, true, weights, scale=0.5)
    normal = weights * 40 / weights.sum()
    start = np.r_[BAYES, np.zeros(9)]
    reference = minimize(loop_loss, start, (p, given, q, transition, true, normal, 0.5), tol=1e-12).x
    np.testing.assert_allclose(np.r_[found.theta, found.offsets.ravel()], reference, atol=2e-4)


def test_newton_step_and_evidence_are_those_of_the_dense_hessian():
    p, given, q, transition, true = problem(n_rows=25, n_classes=3)
    features = c._features(p, given, q, transition)
    data = fit.VerifiedColumns.of(features, given, true, np.ones(25))
    rng = np.random.default_rng(3)
    point = fit.Point(BAYES + 0.1 * rng.standard_normal(4), 0.1 * rng.standard_normal((3, 3)))
    scale = 0.7

    def loss(x):
        return fit.loss(data, fit.Point(x[:4], x[4:].reshape(3, 3)), scale)

    x = np.r_[point.theta, point.offsets.ravel()]
    eye, h = np.eye(len(x)), 1e-4
    slope = np.array([(loss(x + h * e) - loss(x - h * e)) / (2 * h) for e in eye])
    hessian = np.array(
        [
            [
                (loss(x + h * (a + b)) - loss(x + h * (a - b)) - loss(x - h * (a - b)) + loss(x - h * (a + b)))
                / (4 * h * h)
                for a in eye
            ]
            for b in eye
        ]
    )
    step, decrement, log_det = fit.newton_step(data, point, scale)
    expected = np.linalg.solve(hessian, slope)
    np.testing.assert_allclose(np.r_[step.theta, step.offsets.ravel()], expected, atol=1e-4)
    assert decrement == pytest.approx(slope @ expected, rel=1e-4)
    assert log_det == pytest.approx(np.linalg.slogdet(hessian)[1], abs=1e-3)


@pytest.mark.parametrize("n_rows", [2, 9])
def test_block_solves_in_both_forms(n_rows):
    rng = np.random.default_rng(4)
    rows, diagonal, right = 0.2 * rng.random((n_rows, 5)), 1 + rng.random(5), rng.standard_normal((5, 3))
    dense = np.diag(diagonal) - rows.T @ rows
    block = fit.Block.of(diagonal, rows)
    np.testing.assert_allclose(block.solve(right), np.linalg.solve(dense, right), rtol=1e-9)
    assert block.log_det == pytest.approx(np.linalg.slogdet(dense)[1])


def test_relabelling_classes_permutes_the_fit():
    p, given, q, transition, true = problem(n_rows=80)
    order = np.array([2, 0, 1])
    back = np.argsort(order)
    found = c.fit_calibration(p, given, q, transition, true)
    other = c.fit_calibration(p[:, order], back[given], q[:, order], transition[np.ix_(order, order)], back[true])
    np.testing.assert_allclose(other.theta, found.theta, atol=1e-5)
    np.testing.assert_allclose(other.offsets, found.offsets[np.ix_(order, order)], atol=1e-5)
    assert other.scale == pytest.approx(found.scale)


def test_rows_that_fit_leave_the_offsets_small_and_rows_that_do_not_are_followed():
    p, given, q, transition, true = problem(5, 400)
    fits = c.fit_calibration(p, given, q, transition, true)
    # The classifier repeats the errors of the labels: half of the labels "0" are truly 1, and nothing shows it.
    wrong = np.random.default_rng(6).random(400) < 0.5
    hidden = np.where((given == 0) & wrong, 1, given)
    follows = c.fit_calibration(p, given, q, transition, hidden)
    assert fits.scale < 0.4 < follows.scale
    mean = follows.posterior(p, given, q)[given == 0].mean(axis=0)
    np.testing.assert_allclose(mean, np.bincount(hidden[given == 0], minlength=3) / (given == 0).sum(), atol=0.05)


def test_a_class_without_rows_gets_the_unit_row():
    np.testing.assert_array_equal(c.to_transition(np.array([[3.0, 1], [0, 0]])), [[0.75, 0.25], [0, 1]])


def test_cross_calibration_has_not_seen_the_row():
    p, given, q, transition, true = problem(n_rows=60)
    strata = np.repeat([0, 1], [20, 40])
    folds = c.assign_folds(strata, 5, np.random.default_rng(0))
    assert np.bincount(folds[:20]).tolist() == [4] * 5
    assert np.bincount(folds[20:]).tolist() == [8] * 5
    models, unseen = c.cross_calibrate(p, given, q, transition, true, np.ones(60), folds, 0.5)
    changed = true.copy()
    changed[folds == 0] = (true[folds == 0] + 1) % 3
    _, again = c.cross_calibrate(p, given, q, transition, changed, np.ones(60), folds, 0.5)
    np.testing.assert_array_equal(again[folds == 0], unseen[folds == 0])
    found = list(c.posteriors(models, p, given, q))
    np.testing.assert_array_equal(found[0][folds == 0], unseen[folds == 0])


def test_many_classes_and_few_rows():
    p, given, q, transition, true = problem(7, 30, 150)
    found = c.fit_calibration(p, given, q, transition, true)
    assert np.isfinite(found.theta).all()
    assert (found.offsets[:, np.setdiff1d(np.arange(150), given)] == 0).all()


def test_one_class_only_or_a_single_row_is_no_trouble():
    p, given, q, transition, true = problem(n_rows=1)
    assert np.isfinite(c.fit_calibration(p, given, q, transition, true).offsets).all()
