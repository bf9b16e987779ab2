"""Label issues as data frames: pandas' of rows in memory, and a lazy one of rows that stay with Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.rows.dask import DaskPosterior, combined, delayed, lazy_frame


class Scores(NamedTuple):
    """Given label, its probability of being right, the suggested class and its probability: an array each."""

    given: NDArray[Any]
    right: NDArray[np.float32]
    suggested: NDArray[Any]
    suggested_probability: NDArray[np.float32]


# What is said of flagged labels: another class is likelier, or none is.
GROUPS = ("probably wrong", "doubtful")
_NOTHING = Scores(*(np.empty(0, dtype) for dtype in ("u1", "f4", "u1", "f4")))


class Cut(NamedTuple):
    """Labels below `value` are flagged and, of those that equal it, the first `of_equal` of all rows.

    Unless `by_top`, also all labels to which another class is preferred, and ties are those of the others.
    """

    value: float
    of_equal: int = 0
    by_top: bool = True


def issue_frame(scores: Scores, is_issue: NDArray[np.bool_], names: Sequence[str], start: int = 0) -> Any:
    """Return every label as a row of a pandas data frame, with class names; `start` is the number of the first."""
    import pandas as pd

    classes = np.array(names)
    return pd.DataFrame(
        {
            "given": classes[scores.given],
            "suggested": classes[scores.suggested],
            "probability_right": scores.right,
            "suggested_probability": scores.suggested_probability,
            "is_issue": is_issue,
            "group": np.select([is_issue & (scores.suggested != scores.given), is_issue], GROUPS, ""),
        },
        index=pd.RangeIndex(start, start + len(is_issue)),
    )


def lazy_issue_frame(
    posterior: DaskPosterior,
    score: Callable[..., Any],
    cut: Cut | int | None,
    know: Callable[[Scores, int], Scores] | None = None,
) -> Any:
    """Return the same as a Dask data frame, a partition per block, computed when it is asked for.

    Parameters
    ----------
    posterior
    score
        From (probabilities, label codes) of a chunk to its `Scores`.
    cut
        What is flagged; or the number of least probable labels to flag; None for those to which another class is
        preferred, and the least probable of the others up to the expected number of wrong labels.
    know
        From the scores of a partition and the number of its first row to the scores with what is known of its rows.
    """
    names, starts = posterior.coder.names, posterior.block_starts[:-1]
    scored = [delayed(join_scores)(chunks, len(names)) for chunks in posterior.delayed_map(score)]
    if know is not None:
        scored = [delayed(know)(part, start) for part, start in zip(scored, starts, strict=True)]
    # A cut that is known asks nothing of the other partitions, and each can be had alone.
    equal_before: Any = ()
    if not isinstance(cut, Cut):
        wanted: Any = cut
        if cut is None:
            flagged = delayed(sum)([delayed(_count_preferred)(part) for part in scored])
            wanted = delayed(_still_wanted)([delayed(_wrong)(part) for part in scored], flagged)
        by_top = cut is not None
        lowest = [delayed(_lowest_values)([delayed(_ranked)(part, by_top)], wanted) for part in scored]
        cut = delayed(_cut_at)(combined(lambda some: delayed(_lowest_values)(some, wanted), lowest), wanted, by_top)
        equal_before = delayed(_running)([delayed(_count_equal)(part, cut) for part in scored])
    frames = [
        delayed(to_partition)(part, cut, equal_before, number, start, names)
        for number, (part, start) in enumerate(zip(scored, starts, strict=True))
    ]
    meta = to_partition(join_scores([], len(names)), Cut(0), (), 0, 0, names)
    return lazy_frame(frames, meta, (*starts, posterior.n_samples - 1))


def join_scores(chunks: Sequence[Any], n_classes: int) -> Scores:
    """Return the scores of chunks as one, in as few bytes as hold them."""
    given, right, suggested, probability = (np.concatenate(column) for column in zip(_NOTHING, *chunks, strict=True))
    small = np.min_scalar_type(n_classes - 1)
    return Scores(
        given.astype(small), right.astype(np.float32), suggested.astype(small), probability.astype(np.float32)
    )


def expected_wrong(scores: Scores) -> int:
    """Return the expected number of wrong labels, Σ(1 − P(right))."""
    return round(_wrong(scores))


def _wrong(scores: Scores) -> float:
    return float(len(scores.right) - scores.right.sum(dtype=np.float64))


def _count_preferred(scores: Scores) -> int:
    return int((scores.suggested != scores.given).sum())


def _still_wanted(wrong: list[float], flagged: int) -> int:
    return max(0, round(sum(wrong)) - flagged)


def _ranked(scores: Scores, by_top: bool) -> NDArray[np.float32]:
    """Return the probabilities among which the lowest are flagged: of all labels, or of those that no other beats."""
    return scores.right if by_top else scores.right[scores.suggested == scores.given]


def _lowest_values(parts: Sequence[NDArray[np.float32]], wanted: int) -> NDArray[np.float32]:
    values = np.concatenate(parts)
    return values if len(values) <= wanted or not wanted else np.partition(values, wanted - 1)[:wanted]


def _cut_at(values: NDArray[np.float32], wanted: int, by_top: bool) -> Cut:
    if not wanted or not len(values):
        return Cut(0, 0, by_top)
    value = values.max()
    return Cut(float(value), wanted - int((values < value).sum()), by_top)


def _count_equal(scores: Scores, cut: Cut) -> int:
    return int((_ranked(scores, cut.by_top) == np.float32(cut.value)).sum())


def _running(counts: list[int]) -> list[int]:
    return np.cumsum([0, *counts]).tolist()  # type: ignore[no-any-return]


def to_partition(
    scores: Scores, cut: Cut, equal_before: Sequence[int], number: int, start: int, names: tuple[str, ...]
) -> Any:
    """Return one partition, whose first row is number `start`, with what is flagged of it."""
    value = np.float32(cut.value)
    preferred = np.full(len(scores.given), False) if cut.by_top else scores.suggested != scores.given
    is_issue = (scores.right < value) | preferred
    equal = np.flatnonzero((scores.right == value) & ~preferred)
    if cut.of_equal:
        is_issue[equal[: max(cut.of_equal - equal_before[number], 0)]] = True
    return issue_frame(scores, is_issue, names, start)
