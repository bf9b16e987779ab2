"""One pass over probabilities and labels: all that the estimators need, small and mergeable.

A block of rows is read in chunks that fit a core's cache; each chunk is validated and reduced while it
is there, so nothing is read from memory twice. Rows that are kept (anchors and the sample) are
remembered by number and fetched from the block at its end.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.estimators.counting import add_counts
from dualt.estimators.rows import as_rows, working_dtype
from dualt.estimators.tracking import AnchorTracker, RowSampler, lowest_priority, priority
from dualt.labels import Codes, LabelCoder
from dualt.transition import chunk_rows
from dualt.validation import check_same_length, largest_entries

# Self-confidences are summed as whole multiples of this, so that sums do not depend on the order.
CONFIDENCE_UNIT = 2.0**-24
_PANEL_ROWS = 1 << 16
_KEPT_ENTRIES = 1 << 21
_SAMPLE_ROWS = 1 << 15


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

    @property
    def sample_ceiling(self) -> int:
        """The hash of a row's number above which it cannot be in the sample."""
        full = len(self.sample_index) == self.sample_size
        return int(priority(self.sample_index).max() if full else np.iinfo(np.uint32).max)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PosteriorSummary):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def merge(self, other: PosteriorSummary) -> PosteriorSummary:
        """Return the summary of both parts.

        Row numbers are taken as they are: summarise the second part with `start` at its place in the whole.
        """
        if self.anchor_rows.shape != other.anchor_rows.shape or self.sample_size != other.sample_size:
            raise InputError(
                f"Expected summaries of the same classes and sizes, got {self.n_classes} and {other.n_classes}"
                f" classes, {self.anchor_index.shape[1]} and {other.anchor_index.shape[1]} anchors a class."
            )
        index = np.concatenate([self.anchor_index, other.anchor_index], axis=1)
        rows = np.concatenate([self.anchor_rows, other.anchor_rows], axis=1)
        classes = np.arange(self.n_classes)
        value = np.where(index >= 0, rows[classes, :, classes], -np.inf)
        best = np.lexsort((index, -value))[:, : self.anchor_index.shape[1]]
        sampled = np.concatenate([self.sample_index, other.sample_index])
        kept = lowest_priority(sampled, self.sample_size)
        kept = kept[np.argsort(sampled[kept], kind="stable")]
        return PosteriorSummary(
            n_samples=self.n_samples + other.n_samples,
            counts=self.counts + other.counts,
            confidence_sums=self.confidence_sums + other.confidence_sums,
            anchor_index=np.take_along_axis(index, best, axis=1),
            anchor_rows=np.take_along_axis(rows, best[:, :, None], axis=1),
            sample_index=sampled[kept],
            sample_labels=np.concatenate([self.sample_labels, other.sample_labels])[kept],
            sample_rows=np.concatenate([self.sample_rows, other.sample_rows])[kept],
            sample_size=self.sample_size,
        )


def summarize(
    pred_probs: NDArray[Any],
    noisy_labels: NDArray[Any],
    coder: LabelCoder,
    *,
    start: int = 0,
    n_anchors: int | None = None,
    sample_size: int | None = None,
    after: PosteriorSummary | None = None,
) -> PosteriorSummary:
    """Return the `PosteriorSummary` of a block of rows, validating them on the way.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Array or memory map, of any float type and layout; it is neither changed nor copied whole.
    noisy_labels : (n_samples,) or one-hot (n_samples, n_classes)
    coder
        Reads the labels.
    start
        Row number of the block's first row in the whole data.
    n_anchors, sample_size
        How many rows to keep per class and as a sample; by default as many as fit 8 MB in float32,
        at most 8 and 32,768.
    after
        A summary of earlier rows that this one is going to be merged with: rows that it would push out at once
        are not kept.
    """
    n_classes = coder.n_classes
    check_same_length(len(pred_probs), len(noisy_labels))
    n_anchors = n_anchors or int(np.clip(_KEPT_ENTRIES // n_classes**2, 2, 8))
    sample_size = sample_size or int(np.clip(_KEPT_ENTRIES // (2 * n_classes), 1, _SAMPLE_ROWS))
    scan = _Scan(n_classes, n_anchors, sample_size, start, working_dtype(pred_probs.dtype), after)
    for low in range(0, len(pred_probs), _PANEL_ROWS):
        panel = slice(low, low + _PANEL_ROWS)
        scan.read_panel(pred_probs[panel], coder.encode(noisy_labels[panel], start + low), start + low)
    return scan.finish(pred_probs, noisy_labels, coder)


class _Scan:
    """The running state of one pass over a block."""

    def __init__(
        self,
        n_classes: int,
        n_anchors: int,
        sample_size: int,
        start: int,
        dtype: np.dtype[Any],
        after: PosteriorSummary | None,
    ) -> None:
        self._start = start
        self._dtype = dtype
        self._n_samples = 0
        self._counts = np.zeros(n_classes * n_classes, np.int64)
        self._confidence = np.zeros(n_classes, np.int64)
        self._anchors = AnchorTracker(n_classes, n_anchors, dtype, None if after is None else after.anchor_floor)
        self._sampler = RowSampler(sample_size) if after is None else RowSampler(sample_size, after.sample_ceiling)

    def read_panel(self, probs: NDArray[Any], labels: Codes, start: int) -> None:
        """Validate and reduce up to `_PANEL_ROWS` rows, a cache-sized chunk at a time."""
        n_classes, dtype = probs.shape[1], self._dtype
        rows = chunk_rows(n_classes, dtype.itemsize)
        predicted = np.empty(len(probs), np.intp)
        own = np.empty(len(probs), dtype)
        firsts = np.arange(0, rows * n_classes, n_classes)
        for low in range(0, len(probs), rows):
            part = slice(low, low + rows)
            chunk = as_rows(probs[part], dtype)
            predicted[part], largest = largest_entries(chunk, start + low)
            np.take(chunk, firsts[: len(chunk)] + labels[part], out=own[part], mode="clip")
            self._anchors.read(chunk, predicted[part], largest, start + low)
        add_counts(self._counts, predicted * n_classes + labels)
        # Whole numbers, whose sum stays below 2^53: bincount adds them exactly, in whatever order.
        units = np.rint(np.multiply(own, 1 / CONFIDENCE_UNIT, out=own), out=own)
        self._confidence += np.bincount(labels, units, n_classes).astype(np.int64)
        self._sampler.read(start, len(probs))
        self._n_samples += len(probs)

    def finish(self, probs: NDArray[Any], labels: NDArray[Any], coder: LabelCoder) -> PosteriorSummary:
        """Fetch the kept rows from the block they came from."""
        n_classes, dtype = coder.n_classes, self._dtype
        index = self._anchors.best()
        rows = probs[np.maximum(index - self._start, 0)].astype(dtype, copy=False)
        rows[index < 0] = 0
        sampled = self._sampler.chosen()
        return PosteriorSummary(
            n_samples=self._n_samples,
            counts=self._counts.reshape(n_classes, n_classes),
            confidence_sums=self._confidence,
            anchor_index=index,
            anchor_rows=rows,
            sample_index=sampled,
            sample_labels=coder.encode(labels[sampled - self._start]) if len(sampled) else np.empty(0, np.intp),
            sample_rows=probs[sampled - self._start].astype(dtype, copy=False),
            sample_size=self._sampler.size,
        )
