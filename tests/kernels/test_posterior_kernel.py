"""The compiled clean posterior and argmax against their twins in NumPy."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dualt import kernels
from dualt.rows.floats import surest
from dualt.transition import early_posterior

pytestmark = pytest.mark.skipif(kernels.library is None, reason="no compiled library")
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


@st.composite
def problems(draw):
    """Rows, a few more than are worked on together, and a matrix, both with zeros."""
    n_rows, n_classes = draw(st.integers(1, 70)), draw(st.integers(2, 40))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    probs, matrix = rng.dirichlet(np.full(n_classes, 0.2), n_rows), rng.dirichlet(np.full(n_classes, 0.5), n_classes)
    probs[rng.random(probs.shape) < 0.2] = 0
    matrix[rng.random(matrix.shape) < 0.2] = 0
    return probs.astype(dtype), (0.3 * matrix + 0.7 * np.eye(n_classes)).astype(dtype)


@given(problems(), st.integers(1, 10))
def test_the_posterior_is_that_of_numpy_up_to_rounding(problem, steps):
    probs, matrix = problem
    found = early_posterior(probs, matrix, steps)
    with mock.patch.object(kernels, "library", None):
        expected = early_posterior(probs, matrix, steps)
    assert_allclose(found, expected, rtol=TOLERANCE[probs.dtype.type], atol=TOLERANCE[probs.dtype.type])


@given(problems(), st.data())
def test_a_row_does_not_depend_on_its_company(problem, draw):
    """As it does in matrix products, where the result would depend on how rows are cut into chunks."""
    probs, matrix = problem
    whole = kernels.early_posterior(probs, matrix, 10)
    if whole is None:
        assert len(matrix) > 32  # or a machine without wide vectors
        return
    cut = draw.draw(st.integers(0, len(probs) - 1))
    assert_array_equal(kernels.early_posterior(np.ascontiguousarray(probs[cut:]), matrix, 10), whole[cut:])


@given(problems())
def test_the_surest_class_is_the_first_of_equals(problem):
    probs, _ = problem
    probs = np.round(probs, 1)
    best, value = surest(probs)
    assert_array_equal(best, probs.argmax(axis=1))
    assert_array_equal(value, probs.max(axis=1))
    assert_array_equal(surest(np.asfortranarray(probs))[0], best)
