"""The compiled clean posterior and argmax against their twins in NumPy, and both against the plain computation."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dualt import estimate_transition, kernels, noise
from dualt.estimators.confident_joint import confident_pairs
from dualt.kernels.posterior import PosteriorKernel, split_background
from dualt.rows.chunks import surest
from dualt.transition import EM_STEPS, EarlyPosterior, early_posterior

compiled = pytest.mark.skipif(kernels.library is None, reason="no compiled library")
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-12}


def plain_posterior(probs, matrix, powers=(1,) * EM_STEPS, start=None):
    """Return the posterior as the formula says it, in float64, with the factor of each step to a power."""
    probs, matrix = probs.astype(float), matrix.astype(float)
    posterior = np.full(probs.shape, 1 / len(matrix)) if start is None else start
    for power in powers:
        posterior = posterior * ((probs / np.maximum(posterior @ matrix, 1e-300)) @ matrix.T) ** power
    return posterior


def plain_scores(posterior, matrix, labels):
    weights = posterior * matrix.astype(float).T[labels]
    shares = weights / weights.sum(axis=1, keepdims=True)
    return shares[np.arange(len(labels)), labels], shares.argmax(axis=1), shares.max(axis=1)


@st.composite
def problems(draw, most_classes=80):
    """Rows, a few more than are worked on together, and a matrix, both with zeros."""
    n_rows, n_classes = draw(st.integers(1, 70)), draw(st.integers(2, most_classes))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    probs, matrix = rng.dirichlet(np.full(n_classes, 0.2), n_rows), rng.dirichlet(np.full(n_classes, 0.5), n_classes)
    probs[rng.random(probs.shape) < 0.2] = 0
    matrix[rng.random(matrix.shape) < 0.2] = 0
    matrix = 0.3 * matrix + 0.7 * np.eye(n_classes)
    return probs.astype(dtype), (matrix / matrix.sum(axis=1, keepdims=True)).astype(dtype)


@compiled
@given(problems(), st.booleans())
def test_the_posterior_is_that_of_numpy_up_to_rounding(problem, goes_on):
    probs, matrix = problem
    start = np.full_like(probs, 0.5) + probs if goes_on else None
    found = EarlyPosterior(matrix, probs.dtype)(probs, start=start)
    with mock.patch.object(kernels, "library", None):
        expected = EarlyPosterior(matrix, probs.dtype)(probs, start=start)
    assert_allclose(found, expected, rtol=TOLERANCE[probs.dtype.type], atol=TOLERANCE[probs.dtype.type])


@pytest.mark.parametrize("library", [kernels.library, None])
@pytest.mark.parametrize("n_classes", [5, 80])
def test_steps_that_go_on_cube_every_other_factor(n_classes, library):
    rng = np.random.default_rng(0)
    probs, matrix = rng.dirichlet(np.ones(n_classes), 50), noise.symmetric(n_classes, 0.3)
    with mock.patch.object(kernels, "library", library):
        first = EarlyPosterior(matrix)(probs)
        for steps, powers in ((3, (1, 3, 1)), (4, (3, 1, 3, 1))):
            found = EarlyPosterior(matrix, steps=steps)(probs, start=first)
            assert_allclose(found, plain_posterior(probs, matrix, powers, first), rtol=1e-9)
            assert_allclose(found.sum(axis=1), 1)
    assert_allclose(first, plain_posterior(probs, matrix))  # it was not written over


@pytest.mark.parametrize("n_classes", [5, 80])
def test_six_steps_that_go_on_are_nearer_to_convergence_than_twelve_plain_ones(n_classes):
    rng = np.random.default_rng(0)
    probs, matrix = rng.dirichlet(np.full(n_classes, 0.3), 200), noise.symmetric(n_classes, 0.4)
    probs = 0.99 * probs + 0.01 / n_classes
    converged = plain_posterior(probs, matrix, (1,) * 3_000)
    plain = plain_posterior(probs, matrix, (1,) * 12, probs)
    for library in (kernels.library, None):
        with mock.patch.object(kernels, "library", library):
            found = EarlyPosterior(matrix, steps=6)(probs, start=probs)
        assert np.abs(found - converged).sum() < np.abs(plain - converged).sum()


@pytest.mark.parametrize("library", [kernels.library, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [3, 80])
def test_steps_that_go_on_from_the_wrong_class_stay_finite(n_classes, dtype, library):
    """The factor of a class that was taken to be impossible is huge, and its cube would be infinite."""
    probs = np.eye(n_classes, dtype=dtype)[[0, 1]]
    start = np.full_like(probs, 1e-30)
    start[:, 2] = 1
    with mock.patch.object(kernels, "library", library):
        found = EarlyPosterior(np.eye(n_classes), dtype, 6)(probs, start=start)
    assert_allclose(found, probs, atol=1e-6)


@compiled
@given(problems(), st.data())
def test_a_row_does_not_depend_on_its_company(problem, draw):
    """As it does in matrix products, where the result would depend on how rows are cut into chunks."""
    probs, matrix = problem
    kernel = PosteriorKernel(matrix, EM_STEPS)
    whole = kernel.posterior(probs)
    cut = draw.draw(st.integers(0, len(probs) - 1))
    assert_array_equal(kernel.posterior(probs[cut:]), whole[cut:])


@pytest.mark.parametrize("n_samples", [3_000, 40_000])
@pytest.mark.parametrize("library", [kernels.library, None])
def test_dual_t_of_many_classes_is_the_product_of_its_factors(n_samples, library):
    """Whether most pairs of classes never occur together, or many do."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_samples) % 301
    probs = rng.random((n_samples, 301), dtype=np.float32) + 20 * np.eye(301, dtype=np.float32)[rng.permutation(labels)]
    probs /= probs.sum(axis=1, keepdims=True)
    with mock.patch.object(kernels, "library", library):
        found = estimate_transition(probs, labels, "dual-t")
    spade = found.fit.spade_counts / found.fit.spade_counts.sum(axis=1, keepdims=True)
    assert_allclose(found.transition, found.t_club @ spade, atol=1e-6)


@pytest.mark.parametrize("library", [kernels.library, None])
@given(problem=problems(32))
def test_of_few_classes_the_posterior_is_exact(library, problem):
    probs, matrix = problem
    with mock.patch.object(kernels, "library", library):
        found = early_posterior(probs, matrix)
    assert_allclose(found, plain_posterior(probs, matrix), atol=TOLERANCE[probs.dtype.type])


def among_neighbours(n_classes, rate, size=5):
    """Return the matrix of classes that are taken for others of their group."""
    group = np.arange(n_classes) // size
    matrix = (group[:, None] == group) * 1.0
    np.fill_diagonal(matrix, 0)
    matrix *= rate / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return matrix


def counted(matrix, rng, n=50):
    """Return the matrix as it comes out of counting n labels of each class, with what shrinkage adds to every entry."""
    counts = np.array([rng.multinomial(n, row / row.sum()) for row in matrix]) + 1 / len(matrix)
    return counts / counts.sum(axis=1, keepdims=True)


MATRICES = {
    "symmetric": lambda c, rng: noise.symmetric(c, 0.5),
    "pair": lambda c, rng: noise.pair(c, 0.45),
    "neighbours": lambda c, rng: among_neighbours(c, 0.4),
    "counted symmetric": lambda c, rng: counted(noise.symmetric(c, 0.2), rng),
    "counted neighbours": lambda c, rng: counted(among_neighbours(c, 0.4), rng),
    "uneven": lambda c, rng: 0.8 * np.eye(c) + 0.2 * rng.dirichlet(np.full(c, 20.0), c),
}


@pytest.mark.parametrize("library", [kernels.library, None])
@pytest.mark.parametrize("sharpness", [1, 4, 8])
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n_classes", [33, 64, 100, 250, 400])
def test_of_many_classes_no_row_is_far_from_exact(n_classes, name, sharpness, library):
    """Whether rows are flat or sure. The matrix of uneven background entries is the one that is not met exactly."""
    rng = np.random.default_rng(n_classes)
    matrix = MATRICES[name](n_classes, rng)
    logits = rng.normal(size=(64, n_classes))
    clean = rng.integers(n_classes, size=64)
    logits[np.arange(64), clean] += sharpness
    probs = np.exp(1.5 * logits)
    probs = (probs / probs.sum(axis=1, keepdims=True)) @ matrix
    labels = np.where(rng.random(64) < 0.3, rng.integers(n_classes, size=64), clean)
    with mock.patch.object(kernels, "library", library):
        reader = EarlyPosterior(matrix)
        found, (best, sureness), scores = reader(probs), reader.clearest(probs), reader.scores(probs, labels)
    exact = plain_posterior(probs, matrix)
    whole, largest, given_label = (0.04, 0.01, 0.15) if name == "uneven" else (1e-9, 1e-9, 1e-9)
    if library and n_classes >= 256:  # where only the likely classes of a row are told apart
        largest, given_label = 0.03, 0.35
    elif library and n_classes >= 64 and name == "symmetric":  # as here, where they are tied to no other
        largest, given_label = 0.01, 0.02
    assert np.abs(found - exact).sum(axis=1).max() < whole
    assert_allclose(sureness, exact.max(axis=1), atol=largest)
    assert_allclose(exact[np.arange(64), best], exact.max(axis=1), atol=largest)
    right, _, probability = plain_scores(exact, matrix, labels)
    assert_allclose(scores[0], right, atol=given_label)
    assert_allclose(scores[2], probability, atol=given_label)
    assert np.abs(scores[0] - right).mean() < (0.03 if name == "uneven" else 0.01)


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [64, 65, 199])
@settings(max_examples=8)
@given(n_probable=st.integers(1, 14), seed=st.integers(0, 2**32 - 1))
def test_rows_whose_unlikely_classes_are_alike_are_exact(n_classes, dtype, n_probable, seed):
    """However many are likely, and whichever label is given."""
    rng = np.random.default_rng(seed)
    probs, labels = np.empty((30, n_classes)), rng.integers(n_classes, size=30)
    for row in probs:
        row[:] = rng.uniform(0, 0.3) / n_classes
        row[rng.permutation(n_classes)[:n_probable]] = rng.integers(1, 4, n_probable)
    likely = probs >= 1
    probs[likely] *= ((1 - (probs * ~likely).sum(axis=1)) / (probs * likely).sum(axis=1)).repeat(n_probable)
    labels[::3], labels[1] = probs[::3].argmax(axis=1), 0
    probs, matrix = probs.astype(dtype), noise.symmetric(n_classes, rng.uniform(0.05, 0.6)).astype(dtype)
    reader = EarlyPosterior(matrix, dtype)
    exact, close = plain_posterior(probs, matrix), {"atol": 1e-4 if dtype is np.float32 else 1e-9}
    best, sureness = reader.clearest(probs)
    assert_allclose(sureness, exact.max(axis=1), **close)
    assert_allclose(exact[np.arange(30), best], exact.max(axis=1), **close)
    right, suggested, probability = reader.scores(probs, labels)
    expected = plain_scores(exact, matrix, labels)
    assert_allclose(right, expected[0], **close)
    assert_allclose(probability, expected[2], **close)
    shares = exact * matrix.astype(float).T[labels]
    assert_allclose(shares[np.arange(30), suggested], shares.max(axis=1), **close)


@pytest.mark.parametrize("library", [kernels.library, None])
@given(problem=problems(), seed=st.integers(0, 100))
def test_fused_answers_are_those_of_the_dense_posterior(library, problem, seed):
    probs, matrix = problem
    labels = np.random.default_rng(seed).integers(len(matrix), size=len(probs))
    close = {"rtol": 1e-3, "atol": 10 * TOLERANCE[probs.dtype.type]}
    with mock.patch.object(kernels, "library", library):
        posterior = early_posterior(probs, matrix)
        best, sureness = EarlyPosterior(matrix, probs.dtype).clearest(probs)
        right, suggested, probability = EarlyPosterior(matrix, probs.dtype).scores(probs, labels)
    assert_array_equal(best, posterior.argmax(axis=1))
    assert_array_equal(sureness, posterior.max(axis=1))
    weights = posterior * matrix.T[labels]
    total = weights.sum(axis=1)
    known = total > 1e-30
    own = weights[np.arange(len(labels)), labels]
    assert_allclose(right[known], own[known] / total[known], **close)
    assert_allclose(probability[known], weights.max(axis=1)[known] / total[known], **close)
    places = np.arange(len(labels))[known]
    assert_allclose(weights[places, suggested[known]] / total[known], probability[known], **close)


@pytest.mark.parametrize("library", [kernels.library, None])
@pytest.mark.parametrize("n_classes", [3, 50])
def test_a_label_that_is_ruled_out_leaves_the_clean_posterior(library, n_classes):
    """Found in review: class 0 was suggested, with probability 0."""
    probs = np.eye(n_classes)[[2, 1]]
    with mock.patch.object(kernels, "library", library):
        right, suggested, probability = EarlyPosterior(np.eye(n_classes), probs.dtype).scores(probs, np.array([1, 1]))
    assert_array_equal(right, [0, 1])
    assert_array_equal(suggested, [2, 1])
    assert_array_equal(probability, [1, 1])


@compiled
def test_a_label_that_is_no_class_is_not_looked_up():
    probs = np.full((3, 3), 1 / 3)
    found = PosteriorKernel(np.eye(3), 10).scores(probs, np.array([-1, 3, 2**62]))
    assert_array_equal(found[0], 0)
    with pytest.raises(ValueError, match="label for each"):
        PosteriorKernel(np.eye(3), 10).scores(probs, np.array([0]))
    with pytest.raises(ValueError, match="3 classes"):
        PosteriorKernel(np.eye(3), 10).posterior(np.full((3, 2), 0.5))


def test_what_stands_out_of_the_background():
    matrix = noise.pair(40, 0.2)
    background, kept = split_background(matrix)
    assert_array_equal(background, 0)
    assert_array_equal(kept, matrix > 0)
    background, kept = split_background(noise.symmetric(40, 0.39))
    assert_allclose(background, 0.01)
    assert_array_equal(kept, np.eye(40, dtype=bool))
    rough = np.random.default_rng(0).dirichlet(np.full(200, 0.3), 200)
    background, kept = split_background(rough)
    assert kept.sum(axis=1).max() == 32
    assert_allclose(np.where(kept, rough, background[:, None]).sum(axis=1), 1)


@given(problem=problems(), seed=st.integers(0, 100))
def test_the_surest_class_is_the_first_of_equals(problem, seed):
    """Of all, and of those that reach the floor of their column, with zeros of either sign."""
    rng = np.random.default_rng(seed)
    probs = np.round(problem[0], 1)
    probs[(probs == 0) & (rng.random(probs.shape) < 0.2)] = -0.0
    floor = np.round(rng.random(probs.shape[1]), 1).astype(probs.dtype)
    best, value = surest(np.asfortranarray(probs))
    assert_array_equal(best, probs.argmax(axis=1))
    assert_array_equal(value, probs.max(axis=1))
    above = [place for place in (loop_surest(row, floor) for row in probs) if place >= 0]
    assert_array_equal(confident_pairs(floor, probs, np.zeros(len(probs), int)), above)


def loop_surest(row, floor):
    """Return the first largest of the entries that reach their floor."""
    return max((k for k in range(len(row)) if row[k] >= floor[k]), key=row.__getitem__, default=-1)


@pytest.mark.parametrize("library", [kernels.library, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_that_a_matrix_rules_out_do_not_explode(library, dtype):
    """Most entries of a row are positive and equal, so that zeros lie below its background: differences cancel."""
    rng, n_classes = np.random.default_rng(0), 40
    matrix = np.eye(n_classes) * 0.7
    for step in range(1, 25):
        matrix += np.roll(np.eye(n_classes), step, axis=1) * 0.3 / 24
    clean = rng.integers(0, n_classes, 500)
    scores = 6 * (rng.normal(size=(500, n_classes)) + 5 * np.eye(n_classes)[clean])
    probs = np.exp(scores - scores.max(axis=1, keepdims=True))
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(dtype)
    with mock.patch.object(kernels, "library", library):
        best, sureness = EarlyPosterior(matrix, dtype).clearest(probs)
        posterior = EarlyPosterior(matrix, dtype)(probs)
    assert (best == clean).mean() > 0.98
    assert sureness.max() <= 1 + 1e-4
    assert posterior.min() >= 0
    np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-3)
