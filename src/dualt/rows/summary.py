"""One pass over probabilities and labels: rows are checked and counted, and a small, mergeable summary is kept.

Rows that are kept (anchors and the sample) are remembered by number during the pass, and fetched from their block
at its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels
from dualt.errors import InputError
from dualt.labels import Codes, LabelCoder
from dualt.rows.chunks import add_counts, as_rows, rows_at, working_dtype
from dualt.transition import chunk_rows
from dualt.validation import ROW_SUM_TOLERANCE, check_probability_chunk, check_same_length

# Merging a few costs little more than merging two.
MERGED_TOGETHER = 8
# Self-confidences are summed as whole multiples of this, so that sums do not depend on the order.
CONFIDENCE_UNIT = 2.0**-32
_KEPT_ENTRIES = 1 << 21
_SAMPLE_ROWS = 1 << 15
_LOOKED_AT = 256
_HIGHEST = 2**32 - 1
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class PosteriorSummary:
    """What is known of probabilities and given labels after one pass.

    Attributes
    ----------
    n_samples : int
    counts : (n_classes, n_classes)
        `counts[l, j]`: rows whose largest probability is class l and whose given label is j.
    confidence_sums : (n_classes,)
        Sum of p[y] over the rows given label y, in units of `CONFIDENCE_UNIT`.
    anchor_index : (n_classes, n_anchors)
        Row numbers with the largest probability of each class, best first; −1 where there are fewer.
    anchor_rows : (n_classes, n_anchors, n_classes)
        Their probabilities.
    sample_index, sample_labels : (n_sample,)
    sample_rows : (n_sample, n_classes)
        A uniform sample of rows, in the order of the data: all of them if they fit.
    sample_size : int
        How many rows the sample may hold.

    Notes
    -----
    Whether a row is in the sample depends on its number only, so the summary of A and B read together
    equals the summary of A merged with that of B, provided B was told where it starts.
    """

    n_samples: int
    counts: NDArray[np.int64]
    confidence_sums: NDArray[np.int64]
    anchor_index: NDArray[np.int64]
    anchor_rows: NDArray[Any]
    sample_index: NDArray[np.int64]
    sample_labels: Codes
    sample_rows: NDArray[Any]
    sample_size: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.counts)

    def thinned(self, size: int) -> PosteriorSummary:
        """Return the same with at most `size` rows in the sample, chosen as the sample is.

        Every k-th row would be no sample where classes take turns.
        """
        if len(self.sample_index) <= size:
            return self
        places = lowest_priority(self.sample_index, size)
        return replace(
            self,
            sample_index=self.sample_index[places],
            sample_labels=self.sample_labels[places],
            sample_rows=self.sample_rows[places],
        )

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """How often each class is given as a label."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def predicted_counts(self) -> NDArray[np.int64]:
        """How often each class has the largest probability."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def agreement(self) -> float:
        """Share of rows whose largest probability is that of the given label."""
        return float(np.trace(self.counts) / self.n_samples)

    @property
    def mean_self_confidence(self) -> NDArray[np.float64]:
        """Mean of p[j] over the rows given label j; NaN for a class without labels."""
        with np.errstate(invalid="ignore"):
            return self.confidence_sums * CONFIDENCE_UNIT / self.label_counts

    @property
    def anchor_floor(self) -> NDArray[Any]:
        """What a later row must exceed to become an anchor of each class."""
        last = self.anchor_rows[np.arange(self.n_classes), -1, np.arange(self.n_classes)]
        return np.where(self.anchor_index[:, -1] >= 0, last, np.array(-1, last.dtype))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PosteriorSummary):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def merge(self, *others: PosteriorSummary) -> PosteriorSummary:
        """Return the summary of this part and the others.

        Row numbers are taken as they are: summarise every part with `start` at its place in the whole.
        """
        for other in others:
            if self.anchor_rows.shape != other.anchor_rows.shape or self.sample_size != other.sample_size:
                raise InputError(
                    f"Expected summaries of the same classes and sizes, got {self.n_classes} and {other.n_classes}"
                    f" classes, {self.anchor_index.shape[1]} and {other.anchor_index.shape[1]} anchors per class."
                )
        parts = (self, *others)
        index = np.concatenate([part.anchor_index for part in parts], axis=1)
        rows = np.concatenate([part.anchor_rows for part in parts], axis=1)
        classes = np.arange(self.n_classes)
        value = np.where(index >= 0, rows[classes, :, classes], -np.inf)
        best = np.lexsort((index, -value))[:, : self.anchor_index.shape[1]]
        sampled = np.concatenate([part.sample_index for part in parts])
        kept: Any = lowest_priority(sampled, self.sample_size)
        kept = kept[np.argsort(sampled[kept], kind="stable")]
        if len(kept) == len(sampled) and (np.diff(kept) == 1).all():
            kept = slice(None)  # all of them, as they are: no copy
        return PosteriorSummary(
            n_samples=sum(part.n_samples for part in parts),
            counts=reduce(np.add, (part.counts for part in parts)),
            confidence_sums=reduce(np.add, (part.confidence_sums for part in parts)),
            anchor_index=np.take_along_axis(index, best, axis=1),
            anchor_rows=np.take_along_axis(rows, best[:, :, None], axis=1),
            sample_index=sampled[kept],
            sample_labels=np.concatenate([part.sample_labels for part in parts])[kept],
            sample_rows=np.concatenate([part.sample_rows for part in parts])[kept],
            sample_size=self.sample_size,
        )


def merge_all(parts: Iterable[PosteriorSummary]) -> PosteriorSummary:
    """Return the summary of all parts, at least one, each told where it starts; few are held at a time."""
    remaining = iter(parts)
    merged = next(remaining)
    while some := list(islice(remaining, MERGED_TOGETHER)):
        merged = merged.merge(*some)
    return merged


def summarize(
    pred_probs: NDArray[Any],
    noisy_labels: NDArray[Any],
    coder: LabelCoder,
    *,
    start: int = 0,
    n_anchors: int | None = None,
    sample_size: int | None = None,
    sampled: NDArray[np.int64] | None = None,
    after: PosteriorSummary | None = None,
    codes: NDArray[Any] | None = None,
) -> PosteriorSummary:
    """Return the `PosteriorSummary` of a part of the rows, validating them on the way.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Array or memory map, of any float type and layout; it is neither changed nor copied whole.
    noisy_labels : (n_samples,) or one-hot (n_samples, n_classes)
    coder
        Reads the labels.
    start
        Row number of the part's first row in the whole data.
    n_anchors, sample_size
        How many rows to keep per class and as a sample; by default as many as fit 8 MB in float32,
        at most 8 and 32,768.
    sampled
        Numbers of the rows to sample, where that is known for the whole data.
    after
        A summary of earlier rows that this one is going to be merged with: anchors that it would push out at once are
        not kept.
    codes : (n_samples,)
        Where to put the class indices of the labels, if later passes want them.
    """
    check_same_length(len(pred_probs), len(noisy_labels))
    codes = coder.encode_small(noisy_labels, start, codes)
    n_classes, dtype = coder.n_classes, working_dtype(pred_probs.dtype)
    n_anchors = n_anchors or int(np.clip(_KEPT_ENTRIES // n_classes**2, 2, 8))
    sample_size = sample_size or rows_of_sample(n_classes)
    floor = after.anchor_floor if after else _reached_by(pred_probs, n_anchors, dtype)
    scan = Scan(AnchorTracker(n_classes, n_anchors, dtype, floor))
    scan.read(pred_probs, codes, start)
    if sampled is None:
        sampled = sample_rows(start, len(pred_probs), sample_size)
    best = scan.anchors.best()
    anchor_rows = pred_probs[np.maximum(best - start, 0)].astype(dtype, copy=False)
    anchor_rows[best < 0] = 0
    return PosteriorSummary(
        n_samples=len(pred_probs),
        counts=scan.counts,
        confidence_sums=scan.sums,
        anchor_index=best,
        anchor_rows=anchor_rows,
        sample_index=sampled,
        sample_labels=codes[sampled - start].astype(np.intp),
        sample_rows=rows_at(pred_probs, sampled - start).astype(dtype, copy=False),
        sample_size=sample_size,
    )


def _reached_by(pred_probs: NDArray[Any], n_rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return what is just below an entry that `n_rows` rows reach, for each column: the least of as many maxima.

    Entries below it need not be remembered as anchors.
    """
    together = min(_LOOKED_AT, len(pred_probs) // n_rows)
    if together == 0:
        return np.full(pred_probs.shape[1], -1, dtype)
    groups = pred_probs[: together * n_rows].astype(dtype, copy=False).reshape(n_rows, together, -1)
    return np.asarray(np.nextafter(groups.max(axis=1).min(axis=0), np.array(-1, dtype)))


def rows_of_sample(n_classes: int) -> int:
    """Return how many rows a sample holds if nothing else is said."""
    return int(np.clip(_KEPT_ENTRIES // (2 * n_classes), 1, _SAMPLE_ROWS))


class Scan:
    """The running state of the pass.

    Attributes
    ----------
    counts : (n_classes, n_classes)
        `counts[l, j]`: rows that are largest at class l and have the label j.
    sums : (n_classes,)
        Sums of p[j] over the rows with label j, in units of `CONFIDENCE_UNIT`.
    """

    def __init__(self, anchors: AnchorTracker) -> None:
        n_classes = len(anchors.floor)
        self.anchors = anchors
        self.counts = np.zeros((n_classes, n_classes), np.int64)
        self.sums = np.zeros(n_classes, np.int64)
        self._hits = np.empty(kernels.GROUP * n_classes + anchors.capacity, np.int64)

    def read(self, probs: NDArray[Any], codes: NDArray[Any], start: int) -> None:
        """Read rows and their class indices; `start` is the number of the first."""
        dtype = self.anchors.floor.dtype
        rows, low = chunk_rows(probs.shape[1], dtype.itemsize), 0
        # Where nothing has to be converted, the kernel reads many chunks in one call.
        direct = kernels.library and probs.dtype == dtype and probs.flags.c_contiguous
        while low < len(probs):
            some = slice(low, low + (max(rows, _ROWS_AT_ONCE) if direct else rows))
            chunk, labels = as_rows(probs[some], dtype), codes[some].astype(np.intp, copy=False)
            done = self._read_compiled(chunk, labels, start + low) if kernels.library else 0
            if done < len(chunk):  # there is no kernel, or it has come to a row in doubt
                rest = slice(done, done + rows)
                self._read_chunk(chunk[rest], labels[rest], start + low + done)
                done = min(done + rows, len(chunk))
            low += done

    def _read_chunk(self, chunk: NDArray[Any], labels: Codes, start: int) -> None:
        check_probability_chunk(chunk, start)
        predicted, n_classes = chunk.argmax(axis=1), len(self.sums)
        add_counts(self.counts.reshape(-1), predicted * n_classes + labels)
        own = chunk[np.arange(len(chunk)), labels]
        # Whole numbers, whose sum stays below 2^53: bincount adds them exactly, in whatever order.
        self.sums += np.bincount(labels, np.rint(own / CONFIDENCE_UNIT), n_classes).astype(np.int64)
        self.anchors.read(chunk, start)

    def _read_compiled(self, chunk: NDArray[Any], labels: Codes, start: int) -> int:
        """Return how many rows the compiled kernel read: all, or those before some that may be bad."""
        n_classes, done, full = chunk.shape[1], 0, True
        while full and done < len(chunk):
            rest = chunk[done:]
            n_rows, n_hits = kernels.scan_rows(
                rest,
                labels[done:],
                self.anchors.floor,
                tolerance=ROW_SUM_TOLERANCE,
                unit=CONFIDENCE_UNIT,
                counts=self.counts,
                sums=self.sums,
                hits=self._hits,
            )
            places = self._hits[:n_hits]
            rows, columns = np.divmod(places, n_classes)
            self.anchors.keep(columns, rest.ravel()[places], rows + (start + done))
            done += n_rows
            full = n_hits + kernels.GROUP * n_classes > len(self._hits)
        return done


class AnchorTracker:
    """The `n_anchors` largest entries of every column of a stream of chunks.

    Entries that exceed `floor`, the worst entry kept of their column, gather in a buffer. It is sorted when it holds
    `capacity` of them, which raises the floor.
    """

    def __init__(self, n_classes: int, n_anchors: int, dtype: np.dtype[Any], floor: NDArray[Any] | None = None) -> None:
        self.capacity = 8 * n_anchors * n_classes
        self.floor = np.full(n_classes, -1, dtype) if floor is None else floor.astype(dtype)
        self._n_anchors = n_anchors
        self._kept: list[tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64]]] = []
        self._buffered = 0

    def read(self, chunk: NDArray[Any], start: int) -> None:
        """Take candidates from a chunk, whose first row has the number `start`."""
        rows, columns = (chunk > self.floor).nonzero()
        self.keep(columns, chunk[rows, columns], rows + start)

    def keep(self, column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64]) -> None:
        """Take entries that exceed the floor of their column, in the order of their rows, as candidates."""
        self._kept.append((column, value, row))
        self._buffered += len(row)
        if self._buffered > self.capacity:
            self._compact()

    def _compact(self) -> NDArray[np.intp]:
        """Keep the best of each column only, sorted, and return their ranks."""
        column, value, row = (np.concatenate(arrays) for arrays in zip(*self._kept, strict=True))
        # Equal entries stay in the order of their rows; small integers are sorted in linear time.
        order = np.lexsort((-value, column.astype(np.min_scalar_type(len(self.floor)))))
        column, value, row = column[order], value[order], row[order]
        sizes = np.bincount(column, minlength=len(self.floor))
        rank = np.arange(len(column)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        best = rank < self._n_anchors
        column, value, row, rank = column[best], value[best], row[best], rank[best]
        last = rank == self._n_anchors - 1
        self.floor = self.floor.copy()
        self.floor[column[last]] = value[last]
        self._kept, self._buffered = [(column, value, row)], 0
        return rank

    def best(self) -> NDArray[np.int64]:
        """Return row numbers (n_classes, n_anchors), best first; −1 where there are fewer."""
        rank = self._compact()
        ((column, _, row),) = self._kept
        index = np.full((len(self.floor), self._n_anchors), -1, np.int64)
        index[column, rank] = row
        return index


def sample_rows(start: int, n_rows: int, size: int) -> NDArray[np.int64]:
    """Return which of the rows `start` … `start + n_rows − 1` to sample: the `size` with the lowest hash, ascending."""
    # Below the guess are some ten standard deviations more rows than needed, which leaves few to be sorted.
    guess = min(int((size + 10 * size**0.5 + 10) / n_rows * (_HIGHEST + 1)), _HIGHEST)
    number = _below(guess, start, n_rows)
    if len(number) < min(size, n_rows):
        number = _below(_HIGHEST, start, n_rows)
    return number[lowest_priority(number, size)]


def _below(ceiling: int, start: int, n_rows: int) -> NDArray[np.int64]:
    """Return those of `n_rows` row numbers from `start` whose hash is at most `ceiling`."""
    found = []
    for low in range(start, start + n_rows, _ROWS_AT_ONCE):
        high = min(low + _ROWS_AT_ONCE, start + n_rows)
        number = np.arange(low, high)
        found.append(number[priority(number) <= np.uint32(ceiling)])
    return np.concatenate(found)


def lowest_priority(number: NDArray[np.int64], size: int) -> NDArray[np.intp]:
    """Return the places of the `size` rows that come first by the hash of their number."""
    if len(number) <= size:
        return np.arange(len(number))
    # The number itself settles ties of the hash, which start beyond 2^32 rows.
    key = (priority(number).astype(np.uint64) << np.uint64(32)) + (number & 0xFFFFFFFF).astype(np.uint64)
    return np.flatnonzero(key <= np.partition(key, size - 1)[size - 1])


def priority(number: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Hash row numbers to uniform 32-bit integers (the finaliser of MurmurHash3, one to one below 2^32)."""
    mixed = number.astype(np.uint32)
    if len(number) and number.max() > _HIGHEST:
        mixed ^= ((number >> 32) * 0x9E3779B1).astype(np.uint32)
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
