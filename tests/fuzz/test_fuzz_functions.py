"""Public functions with arguments of every kind: a valid result or an error of ours, and the input as it was."""

import copy
import warnings
from traceback import extract_tb

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from fuzz_arguments import DTYPES, JUNK, LAYOUTS, class_names, labels_for, matrices, probabilities, scalars
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dualt
from dualt import noise
from dualt.errors import DualtError, DualtWarning
from dualt.transition import compose, noise_rates, to_noisy

# Of scikit-learn's, about convergence and the shape of labels.
SKLEARN = UserWarning
METHODS = ("t", "dual-t", "spade", "confident-joint", "clean-count", "hoc")


def same(a, b):
    """Tell whether two arguments are equal, NaN included."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return repr(a) == repr(b)


def call(function, *arguments, allowed=DualtWarning, **options):
    """Return the result, or None if it was refused; other exceptions and warnings fail the test."""
    before = [copy.deepcopy(argument) for argument in arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", allowed)
        try:
            return function(*arguments, **options)
        except DualtError:
            return None
        finally:
            assert all(map(same, before, arguments)), "the input was changed"


def assert_stochastic(matrix, rows=None):
    assert matrix.ndim == 2
    assert rows is None or len(matrix) == rows
    assert np.isfinite(matrix).all()
    assert matrix.min() >= 0
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-3)


@settings(max_examples=80)
@given(st.data(), st.sampled_from(METHODS))
def test_estimate_transition(data, method):
    probs = data.draw(probabilities())
    labels = data.draw(labels_for(probs))
    found = call(dualt.estimate_transition, probs, labels, method, class_names=data.draw(class_names()))
    if found is not None:
        assert_stochastic(found.transition, np.asarray(probs).shape[1])
        assert np.isfinite(found.confidence_interval()).all()
        assert 0 <= found.noise_rate <= 1
        assert found.to_dict()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_and_type_of_the_same_numbers_do_not_matter(dtype, layout):
    whole = np.random.default_rng(0).integers(1, 9, (40, 4)) * 0.125
    plain = np.eye(4)[whole.argmax(axis=1)] if np.dtype(dtype).kind in "biu" else whole
    plain = (plain / plain.sum(axis=1, keepdims=True)).astype(dtype)
    labels = plain.argmax(axis=1)
    labels[::5] = (labels[::5] + 1) % 4
    for method in ("t", "clean-count"):
        estimate = call(dualt.estimate_transition, LAYOUTS[layout](plain), labels, method)
        reference = dualt.estimate_transition(plain.astype(np.float64), labels, method)
        np.testing.assert_allclose(estimate.transition, reference.transition, atol=1e-6)


@settings(max_examples=80)
@given(st.data())
def test_find_label_issues(data):
    probs = data.draw(probabilities())
    labels = data.draw(labels_for(probs))
    transition = data.draw(st.one_of(st.none(), matrices(), st.sampled_from(METHODS), st.text(max_size=5)))
    limits = {name: data.draw(st.one_of(st.none(), scalars())) for name in ("threshold", "top")}
    found = call(dualt.find_label_issues, probs, labels, transition, **limits)
    if found is not None:
        n_samples, n_classes = np.asarray(probs).shape
        assert len(found) == len(found.ranking) == n_samples
        assert ((found.probability_right >= 0) & (found.probability_right <= 1 + 1e-6)).all()
        assert (found.suggested < n_classes).all()
        assert 0 <= found.expected_count <= n_samples * (1 + 1e-6)
        assert np.isfinite(found.by_pair).all()


@settings(max_examples=80)
@given(probabilities(), matrices(), st.one_of(st.just(100), scalars()), st.one_of(st.just(1e-4), scalars()))
def test_clean_posterior(probs, matrix, max_steps, tolerance):
    max_steps = min(max_steps, 50) if isinstance(max_steps, int) else max_steps
    found = call(dualt.clean_posterior, probs, matrix, max_steps=max_steps, tolerance=tolerance)
    if found is not None:
        assert_stochastic(found, len(probs))
    back = call(to_noisy, probs, matrix)
    if back is not None:
        np.testing.assert_allclose(back.sum(axis=1), 1, atol=2e-2)  # as near as the input's rows


@settings(max_examples=80)
@given(st.data(), st.booleans())
def test_corrupt(data, exact):
    matrix = data.draw(matrices())
    labels = data.draw(labels_for(matrix))
    rng = data.draw(st.one_of(st.just(0), scalars()))
    noisy = call(noise.corrupt, labels, matrix, rng, exact=exact, class_names=data.draw(class_names()))
    if noisy is not None:
        given_labels = np.asarray(labels)
        assert len(noisy) == len(given_labels)
        assert noisy.dtype.kind in "biufU"


@settings(max_examples=80)
@given(matrices(), matrices(), st.booleans())
def test_algebra_of_matrices(a, b, normalize):
    distance = call(dualt.l1_error, a, b, normalize=normalize)
    if distance is not None:
        assert 0 <= distance <= 2 * (1 if normalize else len(a)) + 1e-9
        assert dualt.l1_error(b, a, normalize=normalize) == pytest.approx(distance)
    both = call(compose, a, b)
    if both is not None:
        assert_stochastic(both)
    rates = call(noise_rates, a)
    assert rates is None or ((rates >= -1e-9) & (rates <= 1)).all()


@settings(max_examples=80)
@given(scalars(), scalars(), st.sampled_from(["symmetric", "pair", "random_diagonal_dominant"]))
def test_matrices_by_rate(n_classes, rate, name):
    n_classes = min(n_classes, 50) if isinstance(n_classes, (int, float)) else n_classes
    matrix = call(getattr(noise, name), n_classes, rate)
    if matrix is not None:
        assert_stochastic(matrix, n_classes)


@settings(max_examples=80)
@given(st.one_of(st.text(max_size=12), st.from_regex(r"(sym|pair|random|clean)-?[-+0-9.eE_a-z٣]{0,6}")))
def test_matrices_by_name(name):
    matrix = call(noise.from_name, name, 4)
    if matrix is not None:
        assert_stochastic(matrix, 4)


@settings(max_examples=30)
@given(st.data(), st.sampled_from(["reweight", "posterior", "clean"]))
def test_robust_classifier(data, correction):
    rng = np.random.default_rng(data.draw(st.integers(0, 5)))
    labels = data.draw(labels_for(np.full((30, 3), 1 / 3)))
    good = rng.normal(size=(30, 3)) + np.repeat(np.eye(3) * 3, 10, axis=0)
    model = call(dualt.RobustClassifier(correction=correction, cv=2).fit, good, labels, allowed=SKLEARN)
    if model is not None:
        assert_stochastic(model.transition_, len(model.classes_))
        assert_stochastic(model.predict_proba(good))


@settings(max_examples=30)
@given(st.one_of(JUNK, hnp.arrays(np.float64, (30, 2))))
@example(np.vstack([[-np.inf, np.inf], np.zeros((29, 2))]))
def test_features_are_for_the_classifier_to_judge(features):
    """What is wrong with them, it says in its own words. Adding up infinities of both signs, scikit-learn warns."""
    try:
        call(dualt.RobustClassifier(cv=2).fit, features, np.arange(30) % 3, allowed=SKLEARN)
    except (ValueError, TypeError):
        pass
    except RuntimeWarning as warning:
        if not any("sklearn/utils/validation" in frame.filename for frame in extract_tb(warning.__traceback__)):
            raise
