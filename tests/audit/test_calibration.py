"""Calibration against a loop-written model, a derivative-free reference, and laws."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dualt.audit import calibration as c

BAYES = np.array([1.0, 1.0, 0.0, 0.0])


def problem(seed=0, n_rows=60, n_classes=3, strength=2.0):
    rng = np.random.default_rng(seed)
    transition = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(np.ones(n_classes), n_classes)
    scores = strength * rng.standard_normal((n_rows, n_classes))
    clean = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = np.array([rng.choice(n_classes, p=row) for row in clean])
    given = np.array([rng.choice(n_classes, p=transition[i]) for i in true])
    return clean @ transition, given, clean, transition, true


def known_of(p, given, q, transition, true):
    entries = np.log(0.999 * transition + 0.001 / len(transition)).T[given]
    columns = np.log(np.maximum(q, 1e-4)), entries, np.eye(len(transition))[given], np.log(np.maximum(p, 1e-4))
    return np.stack(columns, axis=-1), given, true


def fitted(*problem):
    return c.fit_calibration(*known_of(*problem), problem[3])


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


def loop_loss(parameters, p, given, q, transition, true):
    n_classes = len(transition)
    theta, offsets = parameters[:4], parameters[4:].reshape(n_classes, n_classes)
    found = loop_posterior(p, given, q, transition, theta, offsets)
    nll = -sum(np.log(row[i]) for row, i in zip(found, true, strict=True))
    return nll + 2 * ((theta - BAYES) ** 2).sum() + (offsets**2).sum() / 2


def test_posterior_is_the_formula():
    p, given, q, transition, true = problem()
    rng = np.random.default_rng(1)
    theta, offsets = rng.standard_normal(4), rng.standard_normal(transition.shape)
    found = c.Calibration(theta, offsets, transition).posterior(*known_of(p, given, q, transition, true)[:2])
    np.testing.assert_allclose(found, loop_posterior(p, given, q, transition, theta, offsets), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_without_verified_rows_it_would_be_bayes_rule():
    p, given, q, transition, true = problem()
    bayes_rule = c.Calibration(BAYES, np.zeros_like(transition), transition)
    found = bayes_rule.posterior(*known_of(p, given, q, transition, true)[:2])
    bayes = q * transition.T[given]
    np.testing.assert_allclose(found, bayes / bayes.sum(axis=1, keepdims=True), atol=1e-2)


def test_fit_is_the_minimum_of_the_loop_written_loss():
    made = problem(n_rows=40)
    found = fitted(*made)
    reference = minimize(loop_loss, np.r_[BAYES, np.zeros(9)], made, tol=1e-12).x
    np.testing.assert_allclose(np.r_[found.theta, found.offsets.ravel()], reference, atol=2e-4)


def test_relabelling_classes_permutes_the_fit():
    p, given, q, transition, true = made = problem(n_rows=80)
    order = np.array([2, 0, 1])
    back = np.argsort(order)
    found = fitted(*made)
    other = fitted(p[:, order], back[given], q[:, order], transition[np.ix_(order, order)], back[true])
    np.testing.assert_allclose(other.theta, found.theta, atol=1e-4)
    np.testing.assert_allclose(other.offsets, found.offsets[np.ix_(order, order)], atol=1e-4)


def test_rows_that_fit_leave_the_offsets_small_and_rows_that_do_not_are_followed():
    p, given, q, transition, _ = made = problem(5, 400)
    fits = np.abs(fitted(*made).offsets).max()
    # The classifier repeats the errors of the labels: half of the labels "0" are truly 1, and nothing shows it.
    wrong = np.random.default_rng(6).random(400) < 0.5
    hidden = np.where((given == 0) & wrong, 1, given)
    model = fitted(p, given, q, transition, hidden)
    assert 2 * fits < np.abs(model.offsets).max()
    mean = model.posterior(*known_of(*made)[:2])[given == 0].mean(axis=0)
    np.testing.assert_allclose(mean, np.bincount(hidden[given == 0], minlength=3) / (given == 0).sum(), atol=0.05)


def test_folds_are_even_and_drawn_at_random():
    one, other = (c.assign_folds(60, np.random.default_rng(seed)) for seed in (0, 1))
    assert np.bincount(one).tolist() == np.bincount(other).tolist() == [12] * 5
    assert (one != other).any()


@pytest.mark.parametrize(("n_rows", "n_classes"), [(30, 150), (1, 3)])
def test_many_classes_and_few_rows(n_rows, n_classes):
    made = problem(7, n_rows, n_classes)
    found = fitted(*made)
    assert np.isfinite(found.theta).all()
    assert (found.offsets[:, np.setdiff1d(np.arange(n_classes), made[1])] == 0).all()
