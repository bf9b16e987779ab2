"""Label issues as data frames: pandas' of rows in memory, and a lazy one of rows that stay with Dask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import naming_extra
from dualt.rows.dask import DaskPosterior, combined, delayed, lazy_frame

# How many bins of equal width probabilities are counted in.
_BINS = 1 << 16


class Scores(NamedTuple):
    """Given label, its probability of being right, the suggested class and its probability: an array each."""

    given: NDArray[Any]
    right: NDArray[np.float32]
    suggested: NDArray[Any]
    suggested_probability: NDArray[np.float32]


_NOTHING = Scores(*(np.empty(0, dtype) for dtype in ("u1", "f4", "u1", "f4")))


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


def lazy_issue_frame(
    posterior: DaskPosterior,
    score: Callable[..., Any],
    cut: Cut | int,
    know: Callable[[Scores, int], Scores] | None = None,
) -> Any:
    """Return the same as a Dask data frame, a partition per block, computed when it is asked for.

    Parameters
    ----------
    posterior
    score
        From (probabilities, label codes) of a chunk to its `Scores`.
    cut
        What is flagged, or the number of labels with the lowest probabilities to flag.
    know
        From the scores of a partition and the number of its first row to the scores with what is known of its rows.
    """
    names, starts = posterior.coder.names, posterior.block_starts[:-1]
    scored = [delayed(join_scores)(chunks, len(names)) for chunks in posterior.delayed_map(score)]
    if know is not None:
        scored = [delayed(know)(part, start) for part, start in zip(scored, starts, strict=True)]
    if isinstance(cut, int):
        cut = find_cut(scored, cut, posterior.n_samples)
    # A cut that is known asks nothing of the other partitions, and each can be had alone.
    known = isinstance(cut, Cut)
    equal_before = () if known else delayed(_running)([delayed(_count_equal)(part, cut) for part in scored])
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


def find_cut(scored: list[Any], wanted: int, n_samples: int) -> Any:
    """Return the delayed `Cut` below which the `wanted` lowest probabilities lie, without bringing them together.

    Counting the probabilities in narrow bins tells in which one the cut lies; counting the different values in that
    bin finds it exactly.
    """
    if not 0 < wanted < n_samples:
        return Cut(np.inf if wanted > 0 else 0)
    in_bins = delayed(_place)(combined(delayed(sum), [delayed(_count_bins)(part) for part in scored]), wanted)
    in_bin = combined(delayed(_merge_values), [delayed(_count_values)(part, in_bins) for part in scored])
    return delayed(_cut_at)(in_bins, in_bin)


def _bins(scores: Scores) -> NDArray[np.intp]:
    return np.asarray(scores.right * np.float32(_BINS)).astype(np.intp)


def _count_bins(scores: Scores) -> NDArray[np.intp]:
    return np.bincount(_bins(scores), minlength=2 * _BINS)  # rounding may put a probability above one


def _count_values(scores: Scores, place: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the different values in the bin of the cut, and how often each occurs."""
    return np.unique(scores.right[_bins(scores) == place[0]], return_counts=True)


def _merge_values(found: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[Any], NDArray[Any]]:
    values, where = np.unique(np.concatenate([one[0] for one in found]), return_inverse=True)
    counts = np.concatenate([one[1] for one in found])
    return values, np.bincount(where, counts, len(values)).astype(np.intp)


def _place(counts: NDArray[np.intp], wanted: int) -> tuple[int, int]:
    """Return where the `wanted`-th lowest value is, and how many of those there are wanted."""
    total = np.cumsum(counts)
    place = int(np.searchsorted(total, wanted))
    return place, wanted - int(total[place] - counts[place])


def _cut_at(in_bins: tuple[int, int], in_bin: tuple[NDArray[Any], NDArray[Any]]) -> Cut:
    place, of_equal = _place(in_bin[1], in_bins[1])
    return Cut(float(in_bin[0][place]), of_equal)


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
