import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import kernels
from dualt.labels import LabelCoder
from dualt.rows.summary import CONFIDENCE_UNIT, merge, sample_rows, summarize
from tests.strategies import posteriors, same_summary


@pytest.fixture(scope="module", params=["compiled", "numpy"], autouse=True)
def way(request):
    """Run every test with the compiled pass and with its twin."""
    if request.param == "compiled" and kernels.library is None:
        pytest.skip("no compiled library")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(kernels, "library", None)
        yield


def coder(probs):
    return LabelCoder(tuple(map(str, range(probs.shape[1]))))


def reference(probs, labels):
    """The same by loops over rows."""
    n_classes = probs.shape[1]
    counts = np.zeros((n_classes, n_classes), int)
    for row, label in zip(probs, labels, strict=True):
        counts[list(row).index(max(row)), label] += 1
    return counts, [min(range(len(probs)), key=lambda i, j=j: (-probs[i, j], i)) for j in range(n_classes)]


@given(posteriors(dtype=np.float32))
def test_summary_equals_a_loop(data):
    probs, labels = data
    for array in data:
        array.setflags(write=False)
    summary = summarize(probs, labels, coder(probs))
    counts, anchors = reference(probs, labels)
    assert summary.counts.tolist() == counts.tolist()
    assert summary.label_counts.tolist() == np.bincount(labels, minlength=probs.shape[1]).tolist()
    assert summary.predicted_counts.tolist() == np.bincount(probs.argmax(axis=1), minlength=probs.shape[1]).tolist()
    assert summary.agreement == pytest.approx((probs.argmax(axis=1) == labels).mean())
    assert summary.anchor_index.tolist() == anchors
    np.testing.assert_array_equal(summary.anchor_rows, probs[anchors])
    for j in range(probs.shape[1]):
        own = probs[labels == j, j].astype(float)
        assert abs(summary.confidence_sums[j] * CONFIDENCE_UNIT - own.sum()) <= CONFIDENCE_UNIT * (len(own) + 1)


def test_zeros_are_anchors_where_there_is_nothing_else():
    probs = np.eye(3)[[0, 1]]
    found = summarize(probs, np.array([0, 1]), coder(probs))
    assert found.anchor_index.tolist() == reference(probs, [0, 1])[1] == [0, 1, 0]


@given(posteriors(), st.integers(0, 119), st.sets(st.integers(0, 119)))
def test_merged_parts_equal_one_pass(data, cut, sampled):
    probs, labels = data
    cut, sampled = min(cut, len(probs) - 1), np.array(sorted(row for row in sampled if row < len(probs)), int)
    whole = summarize(probs, labels, coder(probs), sampled=sampled)
    np.testing.assert_array_equal(whole.sample_rows, probs[sampled])
    if cut:
        parts = [
            summarize(
                probs[low:high], labels[low:high], coder(probs), start=low,
                sampled=sampled[(sampled >= low) & (sampled < high)],
            )
            for low, high in ((0, cut), (cut, len(probs)))
        ]  # fmt: skip
        assert same_summary(merge(parts), whole)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_chunks_leave_no_seam(n_classes):
    """Enough rows for several calls of the kernel and, with sixty classes, several chunks in each."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(n_classes, 0.3), 70_000).astype(np.float32)
    probs[::7] = probs[0]
    labels = rng.integers(0, n_classes, len(probs))
    chosen = np.sort(rng.choice(len(probs), 1000, replace=False))
    summary = summarize(probs, labels, coder(probs), sampled=chosen)
    counts = np.zeros((n_classes, n_classes), int)
    np.add.at(counts, (probs.argmax(axis=1), labels), 1)
    np.testing.assert_array_equal(summary.counts, counts)
    np.testing.assert_array_equal(summary.anchor_index, probs.argmax(axis=0))
    np.testing.assert_array_equal(summary.sample_index, chosen)
    np.testing.assert_array_equal(summary.sample_rows, probs[chosen])
    np.testing.assert_array_equal(summary.sample_labels, labels[chosen])


def test_layouts_and_types_give_the_same_summary():
    rng = np.random.default_rng(1)
    probs = np.round(rng.dirichlet(np.ones(4), 500) * 256) / 256
    probs[:, 0] += 1 - probs.sum(axis=1)
    probs = np.clip(probs, 0, 1)
    labels = rng.integers(0, 4, 500)
    expected = summarize(probs, labels, coder(probs))
    for other in (
        np.asfortranarray(probs),
        probs.astype(">f8"),
        probs.astype(np.float32),
        probs.astype(np.float16),
        np.repeat(probs, 2, axis=0)[::2],
    ):
        assert same_summary(summarize(other, labels, coder(probs)), expected)


def test_the_sample_is_uniform():
    """Each tenth of a million rows holds a tenth of the sample, within five standard deviations."""
    sample = sample_rows(1_000_000, 10)
    assert len(np.unique(sample)) == len(sample) == 1 << 15
    share = np.histogram(sample, bins=10, range=(0, 1_000_000))[0]
    assert np.abs(share - share.mean()).max() < 5 * np.sqrt(share.mean())
    np.testing.assert_array_equal(sample_rows(1_000, 10), np.arange(1_000))
    assert 1 << 19 < 1_000 * len(sample_rows(1_000_000, 1_000)) <= 1 << 20, "4 MB in float32"


def test_a_thinner_sample_is_uniform_and_keeps_its_rows_together():
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 30_000)
    labels = np.arange(30_000) % 3
    few = summarize(probs, labels, coder(probs)).thinned(3_000)
    np.testing.assert_array_equal(few.sample_rows, probs[few.sample_index])
    np.testing.assert_array_equal(few.sample_labels, labels[few.sample_index])
    assert np.abs(np.bincount(few.sample_labels) - 1_000).max() < 5 * np.sqrt(1_000)


def test_ascending_data_is_tracked_too():
    """Every chunk beats the one before: the worst case of the buffer."""
    values = np.linspace(0, 1, 400_000, dtype=np.float32)
    probs = np.stack([values, 1 - values], axis=1)
    summary = summarize(probs, np.zeros(len(probs), int), coder(probs))
    assert summary.anchor_index.tolist() == [399_999, 0]
