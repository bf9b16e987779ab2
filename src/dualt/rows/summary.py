"""One pass over probabilities and labels: rows are checked and counted, and a small, mergeable summary is kept.

Rows that are kept (anchors and the sample) are remembered by number during the pass and fetched at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int64
from dataclasses import dataclass, replace
from functools import cached_property, reduce
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
# The sample has at most this many entries (4 MB in float32), and at most this many rows.
_SAMPLE_ENTRIES, _SAMPLE_ROWS = 1 << 20, 1 << 15
# Rows that the largest entries are first guessed from, rows of one call of the kernel, and entries it may find.
_LOOKED_AT, _ROWS_AT_ONCE, _MOST_HITS = 256, 1 << 16, 1 << 14


@dataclass(frozen=True, eq=False)
class PosteriorSummary:
    """What is known of probabilities and given labels after one pass.

    `counts[l, j]` are the rows whose largest probability is class l and whose given label is j; `confidence_sums` the
    sums of p[y] over the rows given label y, in units of `CONFIDENCE_UNIT`; anchors the rows with the largest
    probability of each class, the first of equals; the sample is a uniform one of all rows, in the order of the data.
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

    @cached_property
    def best_sampled(self) -> NDArray[np.intp]:
        """Places in the sample of the rows with the largest probability of each class, best first: eight at most."""
        return np.asarray(np.argsort(-self.sample_rows, axis=0, kind="stable")[:8].T)

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


def merge(parts: Sequence[PosteriorSummary]) -> PosteriorSummary:
    """Return the summary of consecutive parts, at least one, each summarised with its `start` in the whole."""
    if len(parts) == 1:
        return parts[0]
    index, rows = (np.stack([getattr(part, name) for part in parts]) for name in ("anchor_index", "anchor_rows"))
    classes = np.arange(rows.shape[1])
    best = rows[:, classes, classes].argmax(axis=0)
    return PosteriorSummary(
        n_samples=sum(part.n_samples for part in parts),
        counts=reduce(np.add, (part.counts for part in parts)),
        confidence_sums=reduce(np.add, (part.confidence_sums for part in parts)),
        anchor_index=index[best, classes],
        anchor_rows=rows[best, classes],
        sample_index=np.concatenate([part.sample_index for part in parts]),
        sample_labels=np.concatenate([part.sample_labels for part in parts]),
        sample_rows=np.concatenate([part.sample_rows for part in parts]),
    )


def sample_rows(n_samples: int, n_classes: int) -> NDArray[np.int64]:
    """Return which rows of a whole data set to sample, ascending: all of them if they fit."""
    return _choose(n_samples, int(np.clip(_SAMPLE_ENTRIES // n_classes, 1, _SAMPLE_ROWS)))


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
    codes: NDArray[Any] | None = None,
) -> PosteriorSummary:
    """Return the `PosteriorSummary` of a part of the rows, at least one, validating them on the way.

    `pred_probs`, of any float type and layout, is neither changed nor copied whole; `start` is the number of its first
    row in the data, `sampled` are the numbers of the rows to sample, and `codes` is where to put the label codes.
    """
    check_same_length(len(pred_probs), len(noisy_labels))
    codes = coder.encode_small(noisy_labels, start, codes)
    scan = Scan(pred_probs)
    scan.read(pred_probs, codes, start)
    sampled = start + sample_rows(len(pred_probs), coder.n_classes) if sampled is None else sampled
    places = sampled - start
    # Short rows are taken several times as fast as they are indexed; of other layouts all would be copied.
    rows = pred_probs.take(places, axis=0) if pred_probs.flags.c_contiguous else pred_probs[places]
    return PosteriorSummary(
        n_samples=len(pred_probs),
        counts=scan.counts,
        confidence_sums=scan.sums,
        anchor_index=scan.anchors,
        anchor_rows=pred_probs[scan.anchors - start].astype(scan.highest.dtype, copy=False),
        sample_index=sampled,
        sample_labels=codes[places].astype(np.intp),
        sample_rows=rows.astype(scan.highest.dtype, copy=False),
    )


class Scan:
    """The running state of the pass: `counts` and `sums` as in the summary, and the largest entry of each column."""

    def __init__(self, pred_probs: NDArray[Any]) -> None:
        n_classes, dtype = pred_probs.shape[1], working_dtype(pred_probs.dtype)
        self.counts = np.zeros((n_classes, n_classes), np.int64)
        self.sums = np.zeros(n_classes, np.int64)
        self.anchors = np.zeros(n_classes, np.int64)
        # Just below what the first rows reach: few entries are above it, the largest among them.
        self.highest = np.nextafter(pred_probs[:_LOOKED_AT].astype(dtype).max(axis=0), np.array(-1, dtype))
        self._hits = np.empty(kernels.GROUP * n_classes + _MOST_HITS, np.int64)

    def read(self, probs: NDArray[Any], codes: NDArray[Any], start: int) -> None:
        """Read rows and their class indices; `start` is the number of the first."""
        dtype = self.highest.dtype
        n_rows = at_once = chunk_rows(probs.shape[1], dtype.itemsize)
        if kernels.library and probs.dtype == dtype and probs.flags.c_contiguous:
            # Nothing has to be converted: the kernel reads many chunks in one call.
            at_once = max(n_rows, _ROWS_AT_ONCE)
        low = 0
        while low < len(probs):
            chunk = np.ascontiguousarray(probs[low : low + at_once], dtype)
            labels = codes[low : low + at_once].astype(np.intp, copy=False)
            done, places = self._read_compiled(chunk, labels) if kernels.library else (0, self._hits)
            if done == 0:  # there is no kernel, or it has come to a row in doubt
                done = min(n_rows, len(chunk))
                places = self._read_chunk(chunk[:done], labels[:done], start + low)
            self._keep(chunk, places, start + low)
            low += done

    def _read_compiled(self, chunk: NDArray[Any], labels: Codes) -> tuple[int, NDArray[np.int64]]:
        """Return how many rows the kernel has read, and what `_read_chunk` returns for them.

        It stops before rows that are not plainly probabilities, before labels that are no classes, and where it finds
        so many entries that there may be no room for those of `GROUP` rows more.
        """
        labels, n_hits = np.ascontiguousarray(labels, np.int64), c_int64()
        scan = getattr(kernels.library, f"scan_rows_{kernels.TYPES[chunk.dtype]}")
        given = *kernels.addresses(chunk, labels), *chunk.shape, ROW_SUM_TOLERANCE, 1 / CONFIDENCE_UNIT
        found = kernels.addresses(self.highest, self.counts, self.sums, self._hits)
        done: int = scan(*given, *found, len(self._hits), byref(n_hits))
        return done, self._hits[: n_hits.value]

    def _read_chunk(self, chunk: NDArray[Any], labels: Codes, start: int) -> NDArray[np.intp]:
        """Add rows to `counts` and `sums`; return the places of entries above the largest of their column."""
        check_probability_chunk(chunk, start)
        n_classes = len(self.sums)
        add_counts(self.counts.reshape(-1), chunk.argmax(axis=1) * n_classes + labels)
        # Whole numbers, whose sum stays below 2^53: bincount adds them exactly, in whatever order.
        own = np.rint(entries_at(chunk, labels) / CONFIDENCE_UNIT)
        self.sums += np.bincount(labels, own, n_classes).astype(np.int64)
        return np.flatnonzero(chunk > self.highest)

    def _keep(self, chunk: NDArray[Any], places: NDArray[np.intp], start: int) -> None:
        """Take the largest entry of each column, the first of equals, of those at these places of a flat chunk."""
        rows, columns = np.divmod(places, len(self.sums))
        values = chunk.ravel()[places]
        order = np.lexsort((-rows, values))  # of several for a column, the last is assigned
        self.highest[columns[order]] = values[order]
        self.anchors[columns[order]] = rows[order] + start
