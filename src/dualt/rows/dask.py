"""A posterior whose rows stay with Dask: workers reduce them, and only what estimators ask for travels.

Dask is imported when one of its functions is first needed, here and nowhere else. Any of its schedulers does: threads,
processes, or a cluster whose client is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes, LabelCoder
from dualt.rows.blocks import Block, Rows, block_starts
from dualt.rows.counts import count_pairs
from dualt.rows.posterior import Chunk, NoisyPosterior, PairsOf, Result
from dualt.rows.summary import MERGED_TOGETHER, PosteriorSummary, merge_all

# Blocks whose results travel together, so that memory here stays bounded.
_AT_A_TIME = 8
# A task costs as much as reading some million numbers: it reads as many small blocks as have this many together.
_ENTRIES_OF_TASK = 1 << 24


@dataclass(frozen=True)
class RemoteBlock:
    """A block that lies elsewhere; `source` is the delayed sequence of the blocks that it consists of."""

    source: Any
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    name: str = ""

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> RemoteBlock:
        """Take blocks that name files: their paths travel, and one worker reads them."""
        shape = block_starts(blocks)[-1], blocks[0].shape[1]
        return cls(delayed(tuple(blocks), traverse=False), shape, blocks[0].dtype, blocks[0].name)

    def read(self) -> Iterator[Rows]:
        """Fetch the block and yield its rows."""
        for block in compute(self.source)[0]:
            yield from block.read()

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Fetch the block and yield its labels."""
        for _, labels in self.read():
            yield labels


@dataclass(frozen=True)
class DaskPosterior(NoisyPosterior):
    """A `NoisyPosterior` of `RemoteBlock`s.

    Summaries and counts are made where the blocks are, and merged there. `map` runs its function there and
    fetches the results in order, those of a few blocks at a time.
    """

    @classmethod
    def of(cls, posterior: NoisyPosterior) -> DaskPosterior:
        """Take the blocks of a posterior that name files: workers that see the same files read them."""
        groups: list[list[Block]] = []
        room = 0
        for block in posterior.blocks:
            if room <= 0:
                groups.append([])
                room = _ENTRIES_OF_TASK
            groups[-1].append(block)
            room -= block.shape[0] * block.shape[1]
        blocks = tuple(map(RemoteBlock.of, groups))
        return cls(blocks, posterior.coder, on_progress=posterior.on_progress, out_of_fold=posterior.out_of_fold)

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them, and leaves them where they are."""
        sampled = self.sampled_rows
        own = np.split(sampled, np.searchsorted(sampled, self.block_starts[1:-1]))
        parts = self._each(lambda rows, sampled: replace(rows, sampled=sampled).summary, own)
        summary: PosteriorSummary = self._compute(combined(delayed(merge_all), parts))
        return summary

    def map(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Yield `function(probabilities, label codes)` of every chunk, in order; it runs where the blocks are."""
        tasks = self.delayed_map(function)
        for low in range(0, len(tasks), _AT_A_TIME):
            for results in compute(*tasks[low : low + _AT_A_TIME]):
                yield from results
            self._tell(self.block_starts[min(low + _AT_A_TIME, len(tasks))])

    def delayed_map(self, function: Callable[[NDArray[Any], Codes], Result]) -> list[Any]:
        """Return the delayed list of `function` of every chunk, per block."""
        _ = self.summary
        return self._each(lambda rows: list(rows.map_valid(function)))

    def count(self, pairs_of: PairsOf, n_layers: int = 1) -> NDArray[np.int64]:
        """Return counts (n_classes, n_classes) of the pairs that `pairs_of` finds in every chunk."""
        _ = self.summary
        parts = self._each(lambda rows: count_pairs(rows.map_valid(pairs_of), rows.n_classes, n_layers))
        counts: NDArray[np.int64] = self._compute(combined(delayed(sum), parts))
        return counts

    def take(self, indices: NDArray[np.intp]) -> Chunk:
        """Return the probabilities and label codes of the rows of these numbers, in their order."""
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        limits = np.searchsorted(wanted, self.block_starts)
        places = [
            wanted[low:high] - start for (low, high), start in zip(pairwise(limits), self.block_starts, strict=False)
        ]
        tasks = self._each(lambda rows, places: rows.take(places), places)
        probs, codes = np.empty((len(wanted), self.n_classes), self.dtype), np.empty(len(wanted), np.intp)
        low = 0
        for rows, labels in compute(*(task for task, own in zip(tasks, places, strict=True) if len(own))):
            there = order[low : low + len(labels)]
            probs[there], codes[there] = rows, labels
            low += len(labels)
        return probs, codes

    def _each(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return the delayed `work(posterior of the rows, ...)` of every block, with its own of all arguments."""
        run, coder = delayed(_run), delayed(self.coder, traverse=False)
        work = delayed(work, traverse=False)
        sources = [block.source for block in self.blocks if isinstance(block, RemoteBlock)]
        blocks = zip(sources, self.block_starts[:-1], *arguments, strict=True)
        return [run(work, coder, source, start, *own) for source, start, *own in blocks]

    def _compute(self, result: Any) -> Any:
        """Compute the delayed result of a pass over all rows, and say that it is done."""
        (computed,) = compute(result)
        self._tell(self.n_samples)
        return computed


def _run(
    work: Callable[..., Result], coder: LabelCoder, blocks: Sequence[Block], start: int, *arguments: Any
) -> Result:
    return work(NoisyPosterior(tuple(blocks), coder, start=start), *arguments)


def is_dask(values: Any) -> bool:
    """Tell whether `values` are one of Dask's collections, without importing it."""
    return type(values).__module__.partition(".")[0] == "dask"


def delayed(value: Any, **options: Any) -> Any:
    """Return `dask.delayed(value)`."""
    import dask

    return dask.delayed(value, **options)


def compute(*values: Any) -> tuple[Any, ...]:
    """Return what delayed values come to; on a cluster, watch that it is still there."""
    import dask

    from dualt.rows.cluster import compute_watched, open_client

    client = open_client()
    found: tuple[Any, ...] = dask.compute(*values) if client is None else compute_watched(client, values)
    return found


def lazy_frame(partitions: list[Any], meta: Any, divisions: Sequence[int]) -> Any:
    """Return the Dask data frame of delayed pandas ones, given an empty one and the row numbers where they start."""
    import dask.dataframe

    return dask.dataframe.from_delayed(partitions, meta=meta, divisions=tuple(divisions))


def combined(combine: Any, parts: list[Any]) -> Any:
    """Return the delayed combination of all parts, a few at a time."""
    while len(parts) > 1:
        parts = [combine(parts[low : low + MERGED_TOGETHER]) for low in range(0, len(parts), MERGED_TOGETHER)]
    return parts[0]
