"""Matrices, posteriors and labels as Hypothesis strategies, and what tests say about arrays."""

from __future__ import annotations

import dataclasses
import mmap

import numpy as np
from hypothesis import strategies as st


@st.composite
def transitions(draw, min_classes=2, max_classes=6):
    n_classes = draw(st.integers(min_classes, max_classes))
    seed = draw(st.integers(0, 2**32 - 1))
    sharpness = draw(st.sampled_from([0.1, 1.0, 5.0]))
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(n_classes, sharpness), n_classes)


@st.composite
def posteriors(draw, max_rows=120, max_classes=6, dtype=np.float64):
    """Probabilities and labels; some are saturated, some tied, classes may lack labels or predictions."""
    n_classes = draw(st.integers(2, max_classes))
    n_rows = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    probs = rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.05, 0.5, 3.0]))), n_rows)
    kind = draw(st.sampled_from(["plain", "rounded", "one-hot"]))
    if kind == "rounded":
        probs = np.round(probs * 4) + 0.25
        probs /= probs.sum(axis=1, keepdims=True)
    elif kind == "one-hot":
        probs = np.eye(n_classes)[probs.argmax(axis=1)]
    labels = rng.integers(0, n_classes, n_rows)
    return probs.astype(dtype), labels


def read_only(values):
    """Return a copy that cannot be written."""
    array = np.array(values)
    array.setflags(write=False)
    return array


def is_mapped(array):
    """Return whether an array, or what it is a view of, is a file in memory."""
    return isinstance(array, mmap.mmap) or (array is not None and is_mapped(getattr(array, "base", None)))


def same_summary(one, other):
    """Return whether two summaries of rows are equal in every field."""
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
