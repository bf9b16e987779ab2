"""The compiled pass over rows against its twin in NumPy: the same summaries, the same complaints."""

import ctypes.util
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import dualt
from dualt import kernels
from dualt.errors import DualtError, InputError
from dualt.labels import LabelCoder
from dualt.rows import summary
from dualt.rows.summary import CONFIDENCE_UNIT, summarize
from dualt.transition import chunk_rows
from dualt.validation import check_probability_chunk

compiled = pytest.mark.skipif(kernels.library is None, reason="no compiled library")


def without_library():
    return mock.patch.object(kernels, "library", None)


def coder(n_classes):
    return LabelCoder(tuple(map(str, range(n_classes))))


@st.composite
def rows(draw):
    """Rows around the number that is dealt with together, with equal entries, and their labels."""
    n_classes, n_rows = draw(st.integers(2, 40)), draw(st.integers(1, 3 * kernels.GROUP + 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    probs = rng.integers(1, draw(st.sampled_from([2, 4, 1000])), (n_rows, n_classes), endpoint=True).astype(float)
    probs[rng.random(probs.shape) < 0.3] = 0
    probs[probs.sum(axis=1) == 0, 0] = 1
    probs /= probs.sum(axis=1, keepdims=True)
    return probs.astype(draw(st.sampled_from([np.float16, np.float32, np.float64]))), rng.integers(
        n_classes, size=n_rows
    )


def outcome(probs, labels):
    """Return the summary as a dictionary of lists, or what is wrong."""
    try:
        found = vars(summarize(probs, labels, coder(probs.shape[1])))
    except InputError as error:
        return type(error), str(error)
    return {name: np.asarray(value).tolist() for name, value in found.items()}


@compiled
@given(rows())
def test_both_ways_give_one_summary(data):
    found = outcome(*data)
    with without_library():
        assert outcome(*data) == found


@compiled
@given(rows(), st.data())
def test_both_ways_refuse_the_same(data, draw):
    probs, labels = data
    row, column = (draw.draw(st.integers(0, length - 1)) for length in probs.shape)
    probs[row, column] = draw.draw(st.sampled_from([-0.0, -0.5, 1.5, np.nan, -np.nan, np.inf, -np.inf, 1e-40]))
    found = outcome(probs, labels)
    with without_library():
        assert outcome(probs, labels) == found


@compiled
def test_only_a_chunk_around_a_row_in_doubt_goes_the_slow_way(monkeypatch):
    """A negative zero is a probability, of which the kernel is not sure; the twin's copies must stay small."""
    read = []

    def watched(chunk, start):
        read.append(len(chunk))
        return check_probability_chunk(chunk, start)

    monkeypatch.setattr(summary, "check_probability_chunk", watched)
    probs = np.full((150_000, 100), 0.01, np.float32)
    probs[[0, 140_000], :2] = 0.02, -0.0
    labels = np.arange(len(probs)) % 100
    found = outcome(probs, labels)
    assert read == [chunk_rows(100, 4)] * 2
    with without_library():
        assert outcome(probs, labels) == found


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_reads_up_to_the_group_with_a_bad_row(dtype):
    n_classes, bad = 5, 2 * kernels.GROUP + 7
    probs = np.full((300, n_classes), 0.2, dtype)
    probs[bad, 3] = -0.2
    labels = np.arange(300) % n_classes
    scan = summary.Scan(probs)
    done, hits = scan._read_compiled(probs, labels)
    assert done == 2 * kernels.GROUP
    assert_array_equal(hits, np.arange(done * n_classes))  # as large as the largest of the first rows
    first = np.bincount(labels[:done])
    assert_array_equal(scan.counts[0], first)  # the first of equals
    assert_array_equal(scan.sums, first * round(float(dtype(0.2)) / CONFIDENCE_UNIT))


def test_a_library_that_is_missing_damaged_old_or_not_wanted_is_not_used(tmp_path, monkeypatch):
    monkeypatch.delenv("DUALT_KERNELS", raising=False)
    (tmp_path / "text.so").write_text("no library")
    for name in (tmp_path / "none.so", tmp_path / "text.so", Path(ctypes.util.find_library("m") or "none")):
        assert kernels._load(name)[0] is None
    monkeypatch.setenv("DUALT_KERNELS", "0")
    assert kernels._load(Path(kernels.__file__).with_name("compiled.so")) == (None, "DUALT_KERNELS=0")


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_the_status_says_whether_they_are_used_and_why_not():
    code = "from dualt import kernels; print(kernels.status())"
    assert run_python(code, DUALT_KERNELS="0").stdout == "compiled kernels not in use (DUALT_KERNELS=0)\n"
    used = "compiled kernels in use\n" if kernels.library else "compiled kernels not in use"
    assert run_python(code).stdout.startswith(used)
    with without_library():
        assert kernels.status().startswith("compiled kernels not in use (")


def test_a_library_that_is_required_and_missing_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALT_KERNELS", "require")
    with pytest.raises(kernels.KernelsError, match=r"require.*not compiled.* Install a wheel"):
        kernels._load(tmp_path / "none.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(DualtError, match=r"text\.so cannot be loaded"):
        kernels._load(tmp_path / "text.so")
    if kernels.library:
        assert run_python("import dualt", DUALT_KERNELS="require").returncode == 0


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [63, 64, 65, 71, 200])
def test_rows_of_many_classes_are_read_as_in_numpy(n_classes, dtype):
    rng = np.random.default_rng(n_classes)
    probs = rng.integers(0, 4, (150, n_classes)).astype(dtype)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = rng.integers(n_classes, size=150)
    found = outcome(probs, labels)
    with without_library():
        assert outcome(probs, labels) == found


def test_the_estimate_is_the_same_without_the_library():
    code = (
        "import numpy as np, dualt; rng = np.random.default_rng(0);"
        "probs = rng.dirichlet(np.full(7, 0.3), 5_000).astype(np.float32);"
        "labels = (probs.cumsum(axis=1) < rng.random((5_000, 1))).sum(axis=1).clip(0, 6);"
        "estimate = dualt.estimate_transition(probs, labels);"
        "print(dualt.kernels.library is None, *estimate.transition.ravel().tolist())"
    )
    (is_off, *one), (was_off, *other) = (run_python(code, **off).stdout.split() for off in ({"DUALT_KERNELS": "0"}, {}))
    np.testing.assert_allclose(np.array(one, float), np.array(other, float), atol=1e-6)
    assert (is_off, was_off) == ("True", str(kernels.library is None))


@compiled
def test_random_labels_do_not_multiply_rounding():
    """No row is sure of its class, and rounding alone decided which class counted: seen as a difference of 0.09."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_classes, n_rows = rng.integers([3, 80], [8, 400])
        probs = rng.dirichlet(np.full(n_classes, 50), n_rows).astype(np.float32)
        labels = rng.integers(0, n_classes, n_rows)
        found = dualt.estimate_transition(probs, labels)
        with without_library():
            np.testing.assert_allclose(dualt.estimate_transition(probs, labels).transition, found.transition, atol=1e-3)
