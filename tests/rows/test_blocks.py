"""However the rows are cut into blocks, and however many threads read them, every result is that of the whole.

Exactly so for the first pass; in later ones a row within rounding of a threshold may fall either way.
"""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualt
from dualt import noise
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.estimators import ESTIMATORS, estimate_posterior, estimate_verified
from dualt.issues import find_posterior_issues
from dualt.labels import LabelCoder
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.posterior import Block
from dualt.transition import chunk_rows
from tests.strategies import same_summary


def sample(n_samples, n_classes, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    clean = rng.integers(0, n_classes, n_samples)
    logits = rng.normal(size=(n_samples, n_classes)) + 4 * np.eye(n_classes)[clean]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return probs.astype(dtype), noise.corrupt(clean, noise.symmetric(n_classes, 0.3), rng)


def cut(probs, labels, limits):
    """Return blocks with these limits, called b0, b1..."""
    edges = [0, *sorted(limits), len(probs)]
    parts = [(probs[a:b], labels[a:b]) for a, b in pairwise(edges) if b > a]
    return [Block.of_arrays(*part, f"b{number}") for number, part in enumerate(parts)]


def same_estimate(a, b):
    """The first pass is equal; of the labels that a later one counts, one in a thousand may fall either way."""
    assert same_summary(a.rows_summary, b.rows_summary)
    if a.estimator in ("t", "dual-t", "spade"):
        np.testing.assert_array_equal(a.transition, b.transition)
    np.testing.assert_allclose(a.fit.support, b.fit.support, rtol=1e-3, atol=1)
    np.testing.assert_allclose(a.transition, b.transition, atol=1e-3)


@settings(max_examples=30)
@given(
    st.integers(1, 300),
    st.lists(st.integers(0, 300), max_size=6),
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.sampled_from([1, 3]),
)
def test_the_summary_of_blocks_is_that_of_the_whole(n_samples, limits, dtype, n_jobs):
    probs, labels = sample(n_samples, 3, dtype)
    blocks = cut(probs, labels, [min(limit, n_samples) for limit in limits])
    posterior = NoisyPosterior.from_blocks(blocks, n_jobs=n_jobs)
    assert same_summary(posterior.summary, as_posterior(probs, labels).summary)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name not in ("oracle", "joint", "hoc", "views")])
def test_every_counting_estimator_gives_the_same_from_blocks(estimator, n_jobs):
    probs, labels = sample(150_000, 10)
    rows = chunk_rows(10, 4)
    blocks = cut(probs, labels, [1, 1000, rows - 1, rows + 1, 149_999])
    same_estimate(
        estimate_posterior(NoisyPosterior.from_blocks(blocks, n_jobs=n_jobs), estimator),
        dualt.estimate_transition(probs, labels, estimator),
    )


@pytest.mark.parametrize("estimator", ["joint", "hoc", "oracle"])
def test_estimators_that_gather_rows_give_the_same_from_blocks(estimator):
    probs, labels = sample(200, 3, np.float64)
    options = {"clean_labels": np.roll(labels, 1)} if estimator == "oracle" else {}
    posterior = NoisyPosterior.from_blocks(cut(probs, labels, [5, 90]))
    same_estimate(
        estimate_posterior(posterior, estimator, **options),
        dualt.estimate_transition(probs, labels, estimator, **options),
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_issues_of_blocks_are_those_of_the_whole(n_jobs):
    probs, labels = sample(120_000, 10)
    posterior = NoisyPosterior.from_blocks(cut(probs, labels, [17, 70_000]), n_jobs=n_jobs)
    found, whole = find_posterior_issues(posterior), dualt.find_label_issues(probs, labels)
    np.testing.assert_array_equal(found.given, whole.given)
    for name in ("probability_right", "suggested_probability", "by_pair"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-3, atol=1e-3)
    for name in ("suggested", "is_issue"):
        assert np.mean(getattr(found, name) != getattr(whole, name)) < 1e-3


def test_threads_change_nothing_for_arrays(monkeypatch):
    monkeypatch.setattr("dualt.rows.posterior._LEAST_ENTRIES", 1000)
    probs, labels = sample(120_000, 10)
    told = []
    _ = as_posterior(probs, labels, n_jobs=2, on_progress=lambda done, _: told.append(done)).summary
    assert told == [60_000, 120_000]
    same_estimate(*(dualt.estimate_transition(probs, labels, n_jobs=n_jobs) for n_jobs in (2, 1)))
    issues, alone = (dualt.find_label_issues(probs, labels, estimator="dual-t", n_jobs=n_jobs) for n_jobs in (2, 1))
    np.testing.assert_array_equal(issues.probability_right, alone.probability_right)


def test_verified_rows_are_found_in_their_blocks():
    probs, labels = sample(3000, 3)
    rows = np.random.default_rng(0).choice(3000, 200, replace=False)
    posterior = NoisyPosterior.from_blocks(cut(probs, labels, [1, 1500, 1501]))
    found, codes = posterior.take(rows)
    np.testing.assert_array_equal(found, probs[rows])
    np.testing.assert_array_equal(codes, labels[rows])
    blended = estimate_verified(posterior, estimate_posterior(posterior), (rows, labels[rows]))
    whole = dualt.estimate_transition(probs, labels, verified=(rows, labels[rows]))
    np.testing.assert_allclose(blended.transition, whole.transition, rtol=1e-9)  # sums of other chunks


def test_rows_without_a_label_are_left_out_of_every_part_of_a_block():
    probs, labels = sample(20, 3)
    parts, missing = [(probs[:10], labels[:10]), (probs[10:], labels[10:])], [3, 12, 15]
    posterior = NoisyPosterior.from_blocks([Block(partial(iter, parts), 20, 3, probs.dtype, missing=missing)])
    found, codes = posterior.take(np.arange(17))
    np.testing.assert_array_equal(found, np.delete(probs, missing, axis=0))
    np.testing.assert_array_equal(codes, np.delete(labels, missing))


def test_taking_rows_opens_only_their_blocks():
    opened = []

    def counted(start):
        opened.append(str(start))
        yield probs[start : start + 10], labels[start : start + 10]

    probs, labels = sample(100, 2)
    blocks = [Block(partial(counted, k), 10, 2, probs.dtype) for k in range(0, 100, 10)]
    posterior = NoisyPosterior.from_blocks(blocks)
    opened.clear()
    posterior.take(np.array([95, 33, 31]))
    assert opened == ["30", "90"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_chunks_are_all_rows_in_order_and_end_where_blocks_end(monkeypatch, n_jobs):
    monkeypatch.setattr("dualt.rows.posterior.chunk_rows", lambda *_: 32)
    probs, labels = sample(300, 3)
    chunks = list(NoisyPosterior.from_blocks(cut(probs, labels, [100, 130]), n_jobs=n_jobs).chunks())
    assert [len(codes) for _, codes in chunks] == [32, 32, 32, 4, 30, *[32] * 5, 10]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in chunks]), probs)
    np.testing.assert_array_equal(np.concatenate([codes for _, codes in chunks]), labels)


def test_labels_are_encoded_once(monkeypatch):
    encoded, encode = [], LabelCoder.encode
    kept, labels = as_posterior(*sample(1000, 3)), sample(1000, 3)[1]
    monkeypatch.setattr(LabelCoder, "encode", lambda *given: (encoded.append(len(given[1])), encode(*given))[1])
    assert kept.count(lambda probs, codes: codes).sum() == 1000
    np.testing.assert_array_equal(next(kept.chunks())[1], labels)
    assert encoded == [1000]
    many = as_posterior(np.full((9, 256), 1 / 256), np.zeros(9, int))
    assert many._codes.nbytes == 9, "a byte per row with up to 256 classes"


def test_class_names_are_the_union_over_blocks():
    probs = np.full((2, 3), 1 / 3)
    blocks = [Block.of_arrays(probs, np.array(names), str(names)) for names in (["b", "a"], ["a", "long name"])]
    assert NoisyPosterior.from_blocks(blocks).coder.names == ("a", "b", "long name")
    assert NoisyPosterior.from_blocks(blocks, ["long name", "b", "a"]).coder.names == ("long name", "b", "a")
    mixed = [Block.of_arrays(probs, np.array([1, 10])), Block.of_arrays(probs, np.array(["10", "9"]))]
    posterior = NoisyPosterior.from_blocks(mixed)
    assert posterior.coder.names == ("1", "9", "10")
    np.testing.assert_array_equal(posterior.take(np.arange(4))[1], [0, 2, 2, 1])
    with pytest.raises(LabelsError, match="Expected 3 different labels"):
        NoisyPosterior.from_blocks(blocks[:1])


def test_what_is_wrong_in_a_block_is_told_with_its_name_and_row():
    probs, labels = sample(30, 3)
    bad = probs.copy()
    bad[25, 1] = np.nan
    with pytest.raises(ProbabilitiesError, match=r"^In b2: .*row 25.*first row counts as 20"):
        _ = NoisyPosterior.from_blocks(cut(bad, labels, [10, 20])).summary
    wrong = np.where(np.arange(30) == 12, 3, labels)
    for n_jobs in (1, 2):
        with pytest.raises(LabelsError, match=r"^In b1: .*got 3 at row 12"):
            _ = NoisyPosterior.from_blocks(cut(probs, wrong, [10, 20]), n_jobs=n_jobs).summary


def test_blocks_of_other_types_and_unusable_numbers_of_threads():
    probs, labels = sample(6, 3)
    mixed = NoisyPosterior.from_blocks([Block.of_arrays(each, labels) for each in (probs, probs.astype(np.float64))])
    assert mixed.dtype == mixed.summary.sample_rows.dtype == np.float64
    for n_jobs in (0, 1.5, "2"):
        with pytest.raises(InputError, match="Expected n_jobs, a whole number"):
            dualt.estimate_transition(probs, labels, n_jobs=n_jobs)


def test_progress_tells_the_rows_of_every_pass():
    probs, labels = sample(100, 2)
    told = []
    posterior = NoisyPosterior.from_blocks(cut(probs, labels, [40]), on_progress=lambda *shown: told.append(shown))
    _ = posterior.summary
    assert told == [(40, 100), (100, 100)]
    list(posterior.chunks())
    assert told[2:] == [(40, 100), (100, 100)]


def test_every_probability_in_half_precision_is_converted_exactly():
    halves = np.arange(0x3C01, dtype=np.uint16).view(np.float16)  # from 0 to 1, with subnormals
    with np.errstate(invalid="ignore"):
        probs = np.stack([halves, 1 - halves], axis=1)
    for stored in (probs, probs.astype(">f2")):
        ((rows, _),) = as_posterior(stored, np.zeros(len(stored), int)).chunks()
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, probs.astype(np.float32))
