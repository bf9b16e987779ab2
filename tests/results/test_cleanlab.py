"""Matrices and tables go to cleanlab and pandas, and come back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualt
from dualt.errors import TransitionError
from dualt.results.cleanlab import from_cleanlab_joint, to_cleanlab

CLASSES = ["cat", "dog", "fox"]


def sample(n_classes=3, n_samples=600):
    rng = np.random.default_rng(0)
    clean = rng.choice(n_classes, n_samples, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    labels = dualt.noise.corrupt(clean, dualt.noise.pair(n_classes, 0.3), random_state=1)
    probs = 0.1 / n_classes + 0.9 * np.eye(n_classes)[clean]
    return probs, labels


def test_by_hand():
    """Half of 100 cats, a fifth of them called dogs: 40 cats and 60 dogs are given."""
    found = to_cleanlab([[0.8, 0.2], [0.0, 1.0]], [40, 60])
    np.testing.assert_allclose(found.noise_matrix, [[0.8, 0.0], [0.2, 1.0]])
    np.testing.assert_allclose(found.joint, [[0.4, 0.0], [0.1, 0.5]], atol=1e-6)
    np.testing.assert_allclose(found.inverse_noise_matrix, [[1.0, 1 / 6], [0.0, 5 / 6]], atol=1e-6)


@given(st.integers(2, 6), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_there_and_back(n_classes, seed):
    matrix = dualt.noise.random_diagonal_dominant(n_classes, 0.3, random_state=seed)
    counts = np.random.default_rng(seed).integers(50, 500, n_classes)
    found = to_cleanlab(matrix, counts)
    np.testing.assert_allclose(dualt.from_cleanlab(found.noise_matrix), matrix, atol=1e-12)
    np.testing.assert_allclose(found.inverse_noise_matrix.sum(axis=0), 1)
    np.testing.assert_allclose(found.joint.sum(), 1)
    if (found.joint.sum(axis=0) > 0).all():
        np.testing.assert_allclose(from_cleanlab_joint(found.joint * 1000), matrix, atol=1e-9)


def test_cleanlab_agrees_on_the_inverse():
    pytest.importorskip("cleanlab")
    from cleanlab.internal.latent_algebra import compute_inv_noise_matrix

    estimate = dualt.estimate_transition(*sample())
    found = estimate.to_cleanlab()
    theirs = compute_inv_noise_matrix(estimate.clean_prior, found.noise_matrix)
    np.testing.assert_allclose(found.inverse_noise_matrix, theirs, atol=1e-6)


def test_what_cleanlab_estimates_is_our_confident_joint():
    pytest.importorskip("cleanlab")
    from cleanlab.count import estimate_joint, estimate_py_and_noise_matrices_from_probabilities

    probs, labels = sample()
    _, noise_matrix, _, _ = estimate_py_and_noise_matrices_from_probabilities(labels, probs)
    ours = dualt.estimate_transition(probs, labels, "confident-joint").transition
    np.testing.assert_allclose(dualt.from_cleanlab(noise_matrix), ours, atol=0.01)
    np.testing.assert_allclose(from_cleanlab_joint(estimate_joint(labels, probs)), ours, atol=0.01)


def test_cleanlab_learns_with_our_matrices():
    pytest.importorskip("cleanlab")
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    probs, labels = sample()
    found = dualt.estimate_transition(probs, labels).to_cleanlab()
    learned = CleanLearning(LogisticRegression()).fit(
        probs, labels, noise_matrix=found.noise_matrix, inverse_noise_matrix=found.inverse_noise_matrix
    )
    np.testing.assert_allclose(learned.noise_matrix, found.noise_matrix)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.8, 0.2], [0.0, 1.0]], "a transition matrix already"),
        ([[0.8, 0.2]], "square"),
        ([["a", "b"], ["c", "d"]], "square matrix of numbers"),
        ([[np.nan, 1], [0, 1]], "finite"),
    ],
)
def test_what_is_no_noise_matrix_is_refused(matrix, message):
    with pytest.raises(TransitionError, match=message):
        dualt.from_cleanlab(matrix)


def test_a_joint_without_a_class_is_refused():
    with pytest.raises(TransitionError, match="no examples of class 1"):
        from_cleanlab_joint([[5, 0], [1, 0]])


def test_an_estimate_as_a_frame():
    pytest.importorskip("pandas")
    probs, labels = sample()
    estimate = dualt.estimate_transition(probs, labels, class_names=CLASSES)
    frame = estimate.to_frame()
    assert frame.loc["cat", "dog"] == estimate.transition[0, 1]
    assert (frame.index.name, frame.columns.name) == ("true", "given")


def test_issues_as_a_frame():
    pytest.importorskip("pandas")
    probs, labels = sample()
    issues = dualt.find_label_issues(probs, labels, class_names=CLASSES)
    frame = issues.to_frame()
    assert len(frame) == len(labels)
    worst = frame[frame.is_issue].sort_values("probability_right", kind="stable")
    assert list(worst.index) == list(issues.indices)
    row = issues.indices[0]
    assert frame.given[row] == CLASSES[labels[row]]
    assert frame.suggested[row] == CLASSES[issues.suggested[row]]
