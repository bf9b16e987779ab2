"""Summaries that were made apart, each numbering its rows from 0, put one after another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dualt.rows.summary import PosteriorSummary


@dataclass(frozen=True)
class SummaryOnly:
    """A posterior whose rows are not at hand any more: enough for estimators that read them once."""

    summary: PosteriorSummary


def concatenate(parts: Iterable[PosteriorSummary]) -> PosteriorSummary:
    """Return the summary of the parts' rows, one part after the other, numbered from 0.

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
        first, second = _thinned(first, share, rng), _thinned(second, size - share, rng)
    return first.merge(second)


def _thinned(summary: PosteriorSummary, size: int, rng: np.random.Generator) -> PosteriorSummary:
    """Return the summary with a sample of only `size` rows."""
    kept = np.sort(rng.choice(len(summary.sample_index), size, replace=False))
    return replace(
        summary,
        sample_index=summary.sample_index[kept],
        sample_labels=summary.sample_labels[kept],
        sample_rows=summary.sample_rows[kept],
    )
