"""One pass over probabilities and labels: what it keeps for the estimators, small and mergeable.

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

from dualt.errors import InputError
from dualt.labels import Codes, LabelCoder
from dualt.rows.anchors import AnchorTracker
from dualt.rows.floats import rows_at, working_dtype
from dualt.rows.sample import lowest_priority, sample_rows
from dualt.rows.scan import CONFIDENCE_UNIT, Scan
from dualt.validation import check_same_length

# Merging a few costs little more than merging two.
MERGED_TOGETHER = 8
_KEPT_ENTRIES = 1 << 21
_SAMPLE_ROWS = 1 << 15
_LOOKED_AT = 256


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
        return self if len(self.sample_index) <= size else _keep(self, lowest_priority(self.sample_index, size))

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


@dataclass(frozen=True)
class SummaryOnly:
    """A posterior whose rows are not at hand any more: enough for estimators that read them once."""

    summary: PosteriorSummary


def concatenate(parts: Iterable[PosteriorSummary]) -> PosteriorSummary:
    """Return the summary of the rows of parts that number theirs from 0, one part after the other.

    Counts and anchors are those of one pass over all rows. The sample is uniform: each part gives its share of
    it. It is that of one pass as long as all rows fit; to have it so beyond that, tell `summarize` where each
    part starts, and merge.
    """
    return reduce(_append, parts)


def _append(first: PosteriorSummary, second: PosteriorSummary) -> PosteriorSummary:
    before, total, size = first.n_samples, first.n_samples + second.n_samples, first.sample_size
    second = replace(
        second,
        anchor_index=np.where(second.anchor_index >= 0, second.anchor_index + before, -1),
        sample_index=second.sample_index + before,
    )
    if total > size:
        share = round(size * before / total)
        # Drawn anew: by the hash of their numbers, rows that were lucky in one merge would be so in the next.
        rng = np.random.default_rng([before, total])
        first, second = _drawn(first, share, rng), _drawn(second, size - share, rng)
    return first.merge(second)


def _drawn(summary: PosteriorSummary, size: int, rng: np.random.Generator) -> PosteriorSummary:
    return _keep(summary, np.sort(rng.choice(len(summary.sample_index), size, replace=False)))


def _keep(summary: PosteriorSummary, places: NDArray[np.intp]) -> PosteriorSummary:
    """Return the summary with a sample of only the rows at these places of it."""
    return replace(
        summary,
        sample_index=summary.sample_index[places],
        sample_labels=summary.sample_labels[places],
        sample_rows=summary.sample_rows[places],
    )
