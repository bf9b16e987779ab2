"""One pass over probabilities and labels: rows are checked and counted, and a small, mergeable summary is kept.

Rows that are kept (anchors and the sample) are remembered by number during the pass and fetched at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels
from dualt.labels import Codes, LabelCoder
from dualt.rng import stream
from dualt.rows.chunks import add_counts, entries_at, working_dtype
from dualt.transition import chunk_rows
from dualt.validation import ROW_SUM_TOLERANCE, check_probability_chunk, check_same_length

# Self-confidences are summed as whole multiples of this, so that sums do not depend on the order.
CONFIDENCE_UNIT = 2.0**-32
# Anchors have at most this many entries (8 MB in float32), the sample half as many and at most this many rows.
_KEPT_ENTRIES, _SAMPLE_ROWS = 1 << 21, 1 << 15
_LOOKED_AT = 256
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class PosteriorSummary:
    """What is known of probabilities and given labels after one pass.

    `counts[l, j]` are the rows whose largest probability is class l and whose given label is j; `confidence_sums` the
    sums of p[y] over the rows given label y, in units of `CONFIDENCE_UNIT`; anchors the rows with the largest
    probability of each class, best first, (n_classes, n_anchors), −1 where there are fewer; the sample is a uniform one
    of all rows, in the order of the data.
    """

    n_samples: int
    counts: NDArray[np.int64]
    confidence_sums: NDArray[np.int64]
    anchor_index: NDArray[np.int64]
    anchor_rows: NDArray[Any]
    sample_index: NDArray[np.int64]
    sample_labels: Codes
    sample_rows: NDArray[Any]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.counts)

    def thinned(self, size: int) -> PosteriorSummary:
        """Return the same with a random part of the sample, at most `size` rows."""
        if len(self.sample_index) <= size:
            return self
        kept = _choose(len(self.sample_index), size)
        sample = {name: getattr(self, name)[kept] for name in ("sample_index", "sample_labels", "sample_rows")}
        return replace(self, **sample)

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PosteriorSummary):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]


def merge(parts: Sequence[PosteriorSummary]) -> PosteriorSummary:
    """Return the summary of consecutive parts, at least one, each summarised with its `start` in the whole."""
    if len(parts) == 1:
        return parts[0]
    index = np.concatenate([part.anchor_index for part in parts], axis=1)
    rows = np.concatenate([part.anchor_rows for part in parts], axis=1)
    classes = np.arange(len(index))
    value = np.where(index >= 0, rows[classes, :, classes], -np.inf)
    best = np.lexsort((index, -value))[:, : parts[0].anchor_index.shape[1]]
    return PosteriorSummary(
        n_samples=sum(part.n_samples for part in parts),
        counts=reduce(np.add, (part.counts for part in parts)),
        confidence_sums=reduce(np.add, (part.confidence_sums for part in parts)),
        anchor_index=np.take_along_axis(index, best, axis=1),
        anchor_rows=np.take_along_axis(rows, best[:, :, None], axis=1),
        sample_index=np.concatenate([part.sample_index for part in parts]),
        sample_labels=np.concatenate([part.sample_labels for part in parts]),
        sample_rows=np.concatenate([part.sample_rows for part in parts]),
    )


def sample_rows(n_samples: int, n_classes: int) -> NDArray[np.int64]:
    """Return which rows of a whole data set to sample, ascending: all of them if they fit."""
    return _choose(n_samples, int(np.clip(_KEPT_ENTRIES // (2 * n_classes), 1, _SAMPLE_ROWS)))


def _choose(n_rows: int, size: int) -> NDArray[np.int64]:
    """Return at most `size` of the numbers below `n_rows`, the same in every run, ascending."""
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(stream(0, "sample of rows").choice(n_rows, size, replace=False, shuffle=False))


def summarize(
    pred_probs: NDArray[Any],
    noisy_labels: NDArray[Any],
    coder: LabelCoder,
    *,
    start: int = 0,
    sampled: NDArray[np.int64] | None = None,
    n_anchors: int | None = None,
    codes: NDArray[Any] | None = None,
) -> PosteriorSummary:
    """Return the `PosteriorSummary` of a part of the rows, validating them on the way.

    `pred_probs` is an array or a memory map of any float type and layout, which is neither changed nor copied whole;
    `start` is the number of its first row in the whole data, `sampled` are the numbers of the rows to sample (by
    default those of `sample_rows`), and `codes` is where to put the class indices of the labels for later passes. As
    many rows are kept per class as fit 8 MB in float32, from 2 to 8, or `n_anchors`.
    """
    check_same_length(len(pred_probs), len(noisy_labels))
    codes = coder.encode_small(noisy_labels, start, codes)
    n_classes, dtype = coder.n_classes, working_dtype(pred_probs.dtype)
    n_anchors = n_anchors or int(np.clip(_KEPT_ENTRIES // n_classes**2, 2, 8))
    scan = Scan(n_anchors, _reached_by(pred_probs, n_anchors, dtype))
    scan.read(pred_probs, codes, start)
    best = scan.anchors()
    anchor_rows = pred_probs[np.maximum(best - start, 0)].astype(dtype, copy=False)
    anchor_rows[best < 0] = 0
    sampled = start + sample_rows(len(pred_probs), n_classes) if sampled is None else sampled
    places = sampled - start
    # Short rows are taken several times as fast as they are indexed; of other layouts all would be copied.
    rows = pred_probs.take(places, axis=0) if pred_probs.flags.c_contiguous else pred_probs[places]
    return PosteriorSummary(
        n_samples=len(pred_probs),
        counts=scan.counts,
        confidence_sums=scan.sums,
        anchor_index=best,
        anchor_rows=anchor_rows,
        sample_index=sampled,
        sample_labels=codes[places].astype(np.intp),
        sample_rows=rows.astype(dtype, copy=False),
    )


def _reached_by(pred_probs: NDArray[Any], n_rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return for each column what is just below an entry that at least `n_rows` rows reach: no anchor is below it."""
    together = min(_LOOKED_AT, len(pred_probs) // n_rows)
    if together == 0:
        return np.full(pred_probs.shape[1], -1, dtype)
    groups = pred_probs[: together * n_rows].astype(dtype, copy=False).reshape(n_rows, together, -1)
    return np.asarray(np.nextafter(groups.max(axis=1).min(axis=0), np.array(-1, dtype)))


class Scan:
    """The running state of the pass: `counts` and `sums` as in the summary, and candidates for the anchors.

    Candidates, entries above the floor of their column, gather in a buffer. When it is full, the best of each column
    are kept, and the worst of these is the new floor.
    """

    def __init__(self, n_anchors: int, floor: NDArray[Any]) -> None:
        n_classes = len(floor)
        self.counts = np.zeros((n_classes, n_classes), np.int64)
        self.sums = np.zeros(n_classes, np.int64)
        self._floor, self._n_anchors, self._capacity = floor, n_anchors, 8 * n_anchors * n_classes
        self._candidates: list[tuple[NDArray[np.intp], NDArray[Any], NDArray[np.int64]]] = []
        self._buffered = 0
        self._hits = np.empty(kernels.GROUP * n_classes + self._capacity, np.int64)

    def read(self, probs: NDArray[Any], codes: NDArray[Any], start: int) -> None:
        """Read rows and their class indices; `start` is the number of the first."""
        dtype = self._floor.dtype
        n_rows = at_once = chunk_rows(probs.shape[1], dtype.itemsize)
        if kernels.library and probs.dtype == dtype and probs.flags.c_contiguous:
            at_once = max(
                n_rows, _ROWS_AT_ONCE
            )  # nothing has to be converted: the kernel reads many chunks in one call
        low = 0
        while low < len(probs):
            chunk = np.ascontiguousarray(probs[low : low + at_once], dtype)
            labels = codes[low : low + at_once].astype(np.intp, copy=False)
            done = self._read_compiled(chunk, labels, start + low) if kernels.library else 0
            if done == 0:  # there is no kernel, or it has come to a row in doubt
                done = min(n_rows, len(chunk))
                self._read_chunk(chunk[:done], labels[:done], start + low)
            low += done

    def _read_chunk(self, chunk: NDArray[Any], labels: Codes, start: int) -> None:
        check_probability_chunk(chunk, start)
        n_classes = len(self.sums)
        add_counts(self.counts.reshape(-1), chunk.argmax(axis=1) * n_classes + labels)
        # Whole numbers, whose sum stays below 2^53: bincount adds them exactly, in whatever order.
        own = np.rint(entries_at(chunk, labels) / CONFIDENCE_UNIT)
        self.sums += np.bincount(labels, own, n_classes).astype(np.int64)
        rows, columns = (chunk > self._floor).nonzero()
        self._keep(columns, chunk[rows, columns], rows + start)

    def _read_compiled(self, chunk: NDArray[Any], labels: Codes, start: int) -> int:
        """Return how many rows the compiled kernel read: as far as hits have room, up to some that may be bad."""
        done, n_hits = kernels.scan_rows(
            chunk,
            labels,
            self._floor,
            tolerance=ROW_SUM_TOLERANCE,
            unit=CONFIDENCE_UNIT,
            counts=self.counts,
            sums=self.sums,
            hits=self._hits,
        )
        places = self._hits[:n_hits]
        rows, columns = np.divmod(places, len(self.sums))
        self._keep(columns, chunk.ravel()[places], rows + start)
        return done

    def _keep(self, column: NDArray[np.intp], value: NDArray[Any], row: NDArray[np.int64]) -> None:
        """Take entries that exceed the floor of their column, in the order of their rows, as candidates."""
        self._candidates.append((column, value, row))
        self._buffered += len(row)
        if self._buffered > self._capacity:
            self._compact()

    def _compact(self) -> NDArray[np.intp]:
        """Keep the best of each column only, sorted, and return their ranks."""
        column, value, row = (np.concatenate(arrays) for arrays in zip(*self._candidates, strict=True))
        # Equal entries stay in the order of their rows; small integers are sorted in linear time.
        order = np.lexsort((-value, column.astype(np.min_scalar_type(len(self.sums)))))
        column, value, row = column[order], value[order], row[order]
        sizes = np.bincount(column, minlength=len(self.sums))
        rank = np.arange(len(column)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        best = rank < self._n_anchors
        column, value, row, rank = column[best], value[best], row[best], rank[best]
        last = rank == self._n_anchors - 1
        self._floor = self._floor.copy()
        self._floor[column[last]] = value[last]
        self._candidates, self._buffered = [(column, value, row)], 0
        return rank

    def anchors(self) -> NDArray[np.int64]:
        """Return row numbers (n_classes, n_anchors), best first; −1 where there are fewer."""
        rank = self._compact()
        ((column, _, row),) = self._candidates
        index = np.full((len(self.sums), self._n_anchors), -1, np.int64)
        index[column, rank] = row
        return index
