"""Label issues as data frames: pandas' of rows in memory, and a lazy one of rows that stay with Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import naming_extra
from dualt.labels import LabelCoder
from dualt.rows.blocks import Block
from dualt.rows.dask import ClusterPosterior, combined
from dualt.rows.remote import map_rows

_HALF_BITS = 16


class Scores(NamedTuple):
    """Given label, its probability of being right, the suggested class and its probability: an array each."""

    given: NDArray[Any]
    right: NDArray[np.float32]
    suggested: NDArray[Any]
    suggested_probability: NDArray[np.float32]


class Cut(NamedTuple):
    """Labels below `value` are flagged and, of those that equal it, the first `of_equal` of all rows."""

    value: float
    of_equal: int = 0


def issue_frame(scores: Scores, is_issue: NDArray[np.bool_], names: Sequence[str], start: int = 0) -> Any:
    """Return every label as a row of a pandas data frame, with class names; `start` is the number of the first."""
    with naming_extra("A data frame"):
        import pandas as pd

    classes = np.array(names)
    return pd.DataFrame(
        {
            "given": classes[scores.given],
            "suggested": classes[scores.suggested],
            "probability_right": scores.right,
            "suggested_probability": scores.suggested_probability,
            "is_issue": is_issue,
        },
        index=pd.RangeIndex(start, start + len(is_issue)),
    )


def lazy_issue_frame(posterior: ClusterPosterior, score: Callable[..., Any], cut: Cut | int) -> Any:
    """Return the same as a Dask data frame, cut about where the blocks are, computed when it is asked for.

    Parameters
    ----------
    posterior
    score
        From (probabilities, label codes) of a chunk to its `Scores`.
    cut
        What is flagged, or the number of labels with the lowest probabilities to flag.
    """
    import dask.dataframe as dd
    from dask import delayed

    scored = posterior.over_spans(score_rows, score)
    if isinstance(cut, int):
        cut = find_cut(scored, cut, posterior.n_samples)
    # A cut that is known asks nothing of the other partitions, and each can be had alone.
    known = isinstance(cut, Cut)
    equal_before = () if known else delayed(_running)([delayed(_count_equal)(part, cut) for part in scored])
    starts = posterior.span_starts
    names = posterior.coder.names
    frames = [
        delayed(to_partition)(part, cut, equal_before, number, start, names)
        for number, (part, start) in enumerate(zip(scored, starts, strict=True))
    ]
    nothing = Scores(*(np.empty(0, dtype) for dtype in ("u1", "f4", "u1", "f4")))
    meta = to_partition(nothing, Cut(0), (), 0, 0, names)
    return dd.from_delayed(frames, meta=meta, divisions=(*starts, posterior.n_samples - 1))


def score_rows(
    score: Callable[..., Any], coder: LabelCoder, block: Block, low: int, high: int, rest: Sequence[Block]
) -> Scores:
    """Return the scores of the rows from `low` to `high` of a block and the `rest` that follows."""
    columns = zip(*map_rows(score, coder, block, low, high, rest), strict=True)
    given, right, suggested, probability = (np.concatenate(column) for column in columns)
    small = np.min_scalar_type(coder.n_classes - 1)
    return Scores(
        given.astype(small), right.astype(np.float32), suggested.astype(small), probability.astype(np.float32)
    )


def find_cut(scored: list[Any], wanted: int, n_samples: int) -> Any:
    """Return the delayed `Cut` below which the `wanted` lowest probabilities lie, without bringing them together.

    The bits of a float that is not negative are in the order of the floats. Counting first their upper half, then,
    of those where the cut must lie, their lower half finds it exactly.
    """
    from dask import delayed

    if not 0 < wanted < n_samples:
        return Cut(np.inf if wanted > 0 else 0)
    upper = delayed(_place)(combined(delayed(sum), [delayed(_count_upper)(part) for part in scored]), wanted)
    lower = combined(delayed(sum), [delayed(_count_lower)(part, upper) for part in scored])
    return delayed(_cut_at)(upper, lower)


def _bits(scores: Scores) -> NDArray[np.uint32]:
    return scores.right.view(np.uint32)


def _count_upper(scores: Scores) -> NDArray[np.intp]:
    return np.bincount(_bits(scores) >> _HALF_BITS, minlength=1 << _HALF_BITS)


def _count_lower(scores: Scores, upper: tuple[int, int]) -> NDArray[np.intp]:
    bits = _bits(scores)
    return np.bincount(bits[bits >> _HALF_BITS == upper[0]] & ((1 << _HALF_BITS) - 1), minlength=1 << _HALF_BITS)


def _place(counts: NDArray[np.intp], wanted: int) -> tuple[int, int]:
    """Return where the `wanted`-th lowest value is, and how many of those there are wanted."""
    total = np.cumsum(counts)
    place = int(np.searchsorted(total, wanted))
    return place, wanted - int(total[place] - counts[place])


def _cut_at(upper: tuple[int, int], lower: NDArray[np.intp]) -> Cut:
    place, of_equal = _place(lower, upper[1])
    return Cut(float(np.array(upper[0] << _HALF_BITS | place, np.uint32).view(np.float32)), of_equal)


def _count_equal(scores: Scores, cut: Cut) -> int:
    return int((scores.right == np.float32(cut.value)).sum())


def _running(counts: list[int]) -> list[int]:
    return np.cumsum([0, *counts]).tolist()  # type: ignore[no-any-return]


def to_partition(
    scores: Scores, cut: Cut, equal_before: Sequence[int], number: int, start: int, names: tuple[str, ...]
) -> Any:
    """Return one partition, whose first row is number `start`, with what is flagged of it."""
    value = np.float32(cut.value)
    is_issue = scores.right < value
    equal = np.flatnonzero(scores.right == value)
    if cut.of_equal:
        is_issue[equal[: max(cut.of_equal - equal_before[number], 0)]] = True
    return issue_frame(scores, is_issue, names, start)
