"""Stored summaries: what comes back is what went in, parts make up the whole, and a tampered file is refused."""

import io as streams
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualt import files, io
from dualt.errors import FileError, InputError
from dualt.estimators import estimate_summary, estimate_transition
from dualt.io import summaries
from dualt.labels import LabelCoder
from dualt.rows import concatenate, summarize
from tests.strategies import posteriors

NAMES = ("ant", "bee", "cow")
RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(3), 40)
LABELS = RNG.integers(0, 3, 40)


def summary_of(probs, labels, **options):
    return summarize(probs, labels, LabelCoder(tuple(map(str, range(probs.shape[1]))), by_name=False), **options)


def stored_part(rows=slice(None), names=NAMES):
    return io.StoredSummary.of(summary_of(PROBS[rows], LABELS[rows]), names)


@given(data=posteriors(), single=st.booleans())
def test_a_summary_comes_back_as_it_was(tmp_path_factory, data, single):
    probs, labels = data
    summary = summary_of(probs.astype(np.float32) if single else probs, labels)
    stored = io.StoredSummary.of(summary, [f"née {number}" for number in range(probs.shape[1])])
    path = tmp_path_factory.mktemp("s") / "s.npz"
    io.save_summary(path, stored)
    loaded = io.load_summary(path)
    assert loaded == stored
    assert loaded.summary.sample_rows.dtype == summary.sample_rows.dtype


@given(data=posteriors(), cuts=st.sets(st.integers(1, 119), max_size=3))
def test_parts_one_after_another_are_one_pass(data, cuts):
    probs, labels = data
    parts = np.split(np.arange(len(probs)), sorted(cut for cut in cuts if cut < len(probs)))
    assert concatenate(summary_of(probs[rows], labels[rows]) for rows in parts) == summary_of(probs, labels)


@given(sizes=st.lists(st.integers(1, 60), min_size=2, max_size=5), size=st.integers(1, 40))
def test_of_more_rows_than_the_sample_holds_each_part_gives_its_share(sizes, size):
    ends = np.cumsum(sizes)
    probs = np.random.default_rng(7).dirichlet(np.ones(3), ends[-1])
    labels = np.arange(ends[-1]) % 3
    parts = np.split(np.arange(ends[-1]), ends[:-1])
    found = concatenate(summary_of(probs[rows], labels[rows], sample_size=size) for rows in parts)
    whole = summary_of(probs, labels, sample_size=size)
    for name in ("n_samples", "counts", "confidence_sums", "anchor_index", "anchor_rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    index = found.sample_index
    assert len(index) == len(set(index)) == min(size, ends[-1])
    np.testing.assert_array_equal(found.sample_rows, probs[index])
    np.testing.assert_array_equal(found.sample_labels, labels[index])
    if ends[-1] > size:  # the part merged last gives its share, rounded; the others' are thinned by chance
        assert abs((index >= ends[-2]).sum() - size * sizes[-1] / ends[-1]) < 0.51


def test_a_row_is_as_likely_sampled_from_a_small_part_as_from_a_large_one():
    """Over many sizes, parts merged first or last give neither more nor less than their share."""
    size, excess = 20, []
    rng = np.random.default_rng(3)
    for sizes in rng.integers(1, 60, (300, 4)):
        parts = [summary_of(np.full((n, 2), 0.5), np.zeros(n, int), sample_size=size) for n in sizes.tolist()]
        found = concatenate(parts).sample_index
        shares = np.diff(np.searchsorted(found, [0, *np.cumsum(sizes)]))
        excess.append(shares - len(found) * sizes / sizes.sum())
    error = np.std(excess, axis=0) / np.sqrt(len(excess))
    assert (np.abs(np.mean(excess, axis=0)) < 4 * error).all()


def test_estimates_from_parts_are_those_of_the_whole(tmp_path):
    parts = []
    for number, rows in enumerate((slice(0, 7), slice(7, 30), slice(30, 40))):
        io.save_summary(tmp_path / f"{number}.npz", stored_part(rows))
        parts.append(io.load_summary(tmp_path / f"{number}.npz"))
    merged = io.merge_summaries([io.merge_summaries(parts[:2]), parts[2]])
    assert set(merged.parts) == {part for one in parts for part in one.parts}
    for method in ("t", "dual-t", "spade"):
        found = estimate_summary(merged.summary, merged.class_names, method)
        assert found.to_dict() == estimate_transition(PROBS, LABELS, method, class_names=NAMES).to_dict()


@pytest.mark.parametrize("order", [[1, 0, 2], [2, 0, 1], [1, 2, 0]])
def test_classes_in_another_order_are_matched_by_name(order):
    rows, names = slice(9, 40), tuple(NAMES[code] for code in order)
    labels = np.array([order.index(label) for label in LABELS[rows]])
    other = io.StoredSummary.of(summary_of(PROBS[rows][:, order], labels), names)
    merged = io.merge_summaries([stored_part(slice(0, 9)), other])
    assert merged.class_names == NAMES
    assert merged.summary == summary_of(PROBS, LABELS)
    assert estimate_summary(merged.summary, NAMES, "dual-t").to_dict() == (
        estimate_transition(PROBS, LABELS, "dual-t", class_names=NAMES).to_dict()
    )


@pytest.mark.parametrize("method", ["clean-count", "confident-joint", "joint", "hoc", "oracle"])
def test_other_estimators_say_that_they_read_the_data_again(method):
    with pytest.raises(InputError, match=f"'{method}' has to read the data again.*t, dual-t, spade"):
        estimate_summary(stored_part().summary, NAMES, method)


def test_what_does_not_belong_together_is_not_merged():
    first = stored_part(slice(0, 9))
    with pytest.raises(InputError, match=r"ant, bee, cow in the first and ant, bee, dog in number 2.*--classes"):
        io.merge_summaries([first, stored_part(slice(9, 40), ("ant", "bee", "dog"))])
    both = io.merge_summaries([first, stored_part(slice(9, 20))])
    with pytest.raises(InputError, match="same rows in summaries number 1 and 2"):
        io.merge_summaries([both, first])
    with pytest.raises(InputError, match="at least one"):
        io.merge_summaries([])


def test_rows_must_be_numbered_from_zero():
    with pytest.raises(InputError, match="numbered from 0"):
        io.StoredSummary.of(summary_of(PROBS, LABELS, start=5), NAMES)


def test_the_name_says_the_format(tmp_path):
    with pytest.raises(FileError, match=r"ends in \.npz"):
        io.save_summary(tmp_path / "s.json", stored_part())
    assert list(tmp_path.iterdir()) == []


def sparse_part(n_classes=200):
    labels = np.arange(n_classes)
    return io.StoredSummary.of(summary_of(0.5 * np.eye(n_classes) + 0.5 / n_classes, labels), list(map(str, labels)))


def test_counts_of_many_classes_take_little_room(tmp_path):
    stored = sparse_part()
    io.save_summary(tmp_path / "s.npz", stored)
    assert (tmp_path / "s.npz").stat().st_size < stored.summary.counts.nbytes / 2


def test_what_is_written_can_be_read_however_large(tmp_path, monkeypatch):
    assert summaries._ALWAYS_UNPACKED == files._EXPANDED
    monkeypatch.setattr(summaries, "_ALWAYS_UNPACKED", 1000)
    monkeypatch.setattr(files, "_EXPANDED", 1000)
    stored = sparse_part()
    io.save_summary(tmp_path / "s.npz", stored)
    assert io.load_summary(tmp_path / "s.npz") == stored


def changed(name, place, value):
    def change(content):
        content[name] = content[name].copy()
        content[name][place] = value

    return change


def replaced(**new):
    return lambda content: content.update({name: value(content[name]) for name, value in new.items()})


LIES = {
    "another version": (replaced(version=lambda _: 2), "version 1, got 2"),
    "no version": (lambda content: content.pop("version"), "another kind of file"),
    "an array missing": (lambda content: content.pop("counts"), "it holds"),
    "an array more": (lambda content: content.update(extra=1), "it holds .*extra"),
    "fewer rows than counted": (replaced(n_samples=lambda n: n - 1), "counts"),
    "more rows than counted": (changed("counts", (0, 0), 10**6), "counts"),
    "a negative count": (changed("counts", (0, 0), -1), "counts"),
    "counts whose sum overflows": (
        replaced(counts=lambda c: c + np.array([[2**62, 2**62, 0], [2**62, 2**62, 0], [0, 0, 0]])), "counts",
    ),
    "counts as floats": (replaced(counts=lambda c: c.astype(float)), "counts is of type float64"),
    "oblong counts": (replaced(counts=lambda c: c[:, :2]), "counts"),
    "confidence above one": (changed("confidence_sums", 0, 2**60), "confidence"),
    "an anchor outside the data": (changed("anchor_index", (0, 0), 40), "anchors"),
    "an anchor twice": (replaced(anchor_index=lambda a: a * 0), "anchors"),
    "an anchor missing": (changed("anchor_index", (0, 0), -1), "anchors"),
    "anchors out of order": (replaced(anchor_rows=lambda a: a[:, ::-1]), "anchors"),
    "an anchor that is no probability": (changed("anchor_rows", (0, 0, 0), np.nan), "nan"),
    "anchors of other classes": (replaced(anchor_rows=lambda a: a[:, :, :2]), "anchors"),
    "a sample out of order": (replaced(sample_index=lambda i: i[::-1]), "sample"),
    "a sample outside the data": (changed("sample_index", -1, 99), "sample"),
    "a sample too small": (replaced(sample_index=lambda i: i[:-1]), "sample"),
    "a label of no class": (changed("sample_labels", 0, 3), "labels"),
    "a sample that is no probability": (changed("sample_rows", (0, 0), 5.0), "sum to 1"),
    "halves of different precision": (replaced(sample_rows=lambda r: r.astype(np.float32)), "types"),
    "a sample size of nothing": (replaced(sample_size=lambda _: 0), "sizes"),
    "a class name too few": (replaced(class_names=lambda n: n[:2]), "3 class names"),
    "class names as numbers": (replaced(class_names=lambda _: np.arange(3)), "class_names is of type int64"),
    "a class name twice": (replaced(class_names=lambda n: n[[0, 0, 1]]), "'ant' twice"),
    "no parts": (replaced(parts=lambda p: p[:0]), "parts"),
    "parts of another size": (replaced(parts=lambda p: p[:, :5]), "parts"),
    "objects": (replaced(class_names=lambda _: np.array([{}, 1, 2], dtype=object)), "Python objects"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, name):
    lie, message = LIES[name]
    io.save_summary(tmp_path / "s.npz", stored_part())
    with np.load(tmp_path / "s.npz", allow_pickle=False) as archive:
        content = dict(archive)
    lie(content)
    np.savez(tmp_path / "s.npz", **content, allow_pickle=True)
    with pytest.raises(FileError, match=message):
        io.load_summary(tmp_path / "s.npz")


def test_a_header_that_promises_too_much_is_refused(tmp_path):
    io.save_summary(tmp_path / "s.npz", stored_part())
    with zipfile.ZipFile(tmp_path / "s.npz") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    stream = streams.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (10**9, 10**9)})
    content["counts.npy"] = stream.getvalue()
    with zipfile.ZipFile(tmp_path / "s.npz", "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(FileError, match="promises"):
        io.load_summary(tmp_path / "s.npz")


@given(st.data())
def test_damage_never_escapes_as_another_error(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("s")
    io.save_summary(folder / "s.npz", stored_part())
    content = bytearray((folder / "s.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "s.npz").write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(FileError):
        io.load_summary(folder / "s.npz")
