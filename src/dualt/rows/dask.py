"""A posterior whose rows stay with Dask: workers reduce them, and only what estimators ask for travels.

Dask is imported when its objects, or a cluster, are given. Any of its schedulers does: threads, processes, or a
cluster whose client is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes
from dualt.rows.blocks import Block, Rows, block_starts
from dualt.rows.posterior import Chunk, NoisyPosterior, PairsOf, Result
from dualt.rows.remote import copy_rows, count_rows, map_rows, runs_of, summarize_block, take_rows
from dualt.rows.summary import PosteriorSummary, merge_all

# Blocks whose results are on their way home together, so that memory here stays bounded.
_AT_A_TIME = 8
_MERGED_TOGETHER = 8
_ENTRIES_OF_RUN = 1 << 24


@dataclass(frozen=True)
class RemoteBlock:
    """A block that lies elsewhere; `source` is the delayed value of it."""

    source: Any
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    name: str = ""

    @classmethod
    def of(cls, block: Block) -> RemoteBlock:
        """Take a block that names files: its paths travel, and workers read them."""
        from dask import delayed

        return cls(delayed(block, traverse=False), block.shape, block.dtype, block.name)

    def read(self) -> Iterator[Rows]:
        """Fetch the block and yield its rows."""
        yield from self.source.compute().read()

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Fetch the block and yield its labels."""
        yield from self.source.compute().read_labels()


@dataclass(frozen=True)
class ClusterPosterior(NoisyPosterior):
    """A `NoisyPosterior` of `RemoteBlock`s, equal to one of the same rows in memory to the last bit.

    Summaries and counts are made where the blocks are, and merged there. `map` runs its function there and
    brings the results home in order, a few blocks' at a time.
    """

    @classmethod
    def of(cls, posterior: NoisyPosterior) -> ClusterPosterior:
        """Take the blocks of a posterior that names files: workers that see the same files read them.

        Small files are read several at a time.
        """
        blocks = tuple(RemoteBlock.of(run) for run in runs_of(posterior.blocks, _ENTRIES_OF_RUN))
        return cls(blocks, posterior.coder, on_progress=posterior.on_progress)

    def _summarize(self, ceiling: int | None = None) -> PosteriorSummary:
        from dask import delayed

        starts = block_starts(self.blocks)
        parts = [
            delayed(summarize_block)(source, self.coder, start=start, ceiling=ceiling)
            for source, start in zip(self._sources, starts, strict=False)
        ]
        summary: PosteriorSummary = self._done(combined(delayed(merge_all), parts))
        return summary

    def map(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Yield `function(probabilities, label codes)` of every chunk, in order; it runs where the blocks are."""
        return self._watched(_brought_home(self.over_spans(map_rows, function)), lambda _: self.rows_of_chunk)

    def count(self, pairs_of: PairsOf) -> NDArray[np.int64]:
        """Return counts (n_classes, n_classes) of the pairs that `pairs_of` finds in every chunk."""
        from dask import delayed

        counts: NDArray[np.int64] = self._done(combined(delayed(sum), self.over_spans(count_rows, pairs_of)))
        return counts

    def take(self, indices: NDArray[np.intp]) -> Chunk:
        """Return the probabilities and label codes of the rows of these numbers, in their order."""
        from dask import compute, delayed

        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        taken = []
        for source, limits in zip(self._sources, pairwise(block_starts(self.blocks)), strict=True):
            low, high = np.searchsorted(wanted, limits)
            if low < high:
                taken.append(delayed(take_rows)(source, self.coder, wanted[low:high] - limits[0]))
        probs, codes = np.empty((len(wanted), self.n_classes), self.dtype), np.empty(len(wanted), np.intp)
        start = 0
        for rows, labels in compute(*taken):
            places = order[start : start + len(labels)]
            probs[places], codes[places] = rows, labels
            start += len(labels)
        return probs, codes

    def over_spans(self, work: Callable[..., Any], function: Any) -> list[Any]:
        """Return delayed `work(function, coder, block, low, high, rest)`, block by block, together of all chunks.

        Chunks must not end where blocks do, lest the result depend on it: a block's work begins with the first
        chunk that starts in it, and gets the rest of the last one from the blocks that follow.
        """
        from dask import delayed

        _ = self.summary
        function, coder = delayed(function, traverse=False), delayed(self.coder, traverse=False)
        sources, tasks = self._sources, []
        for (block, low, high), *following in spans(block_starts(self.blocks), self.rows_of_chunk):
            rest = [delayed(copy_rows)(sources[other], *limits) for other, *limits in following]
            tasks.append(delayed(work)(function, coder, sources[block], low, high, rest))
        return tasks

    @property
    def span_starts(self) -> list[int]:
        """Number of the first row of each piece of work that `over_spans` returns."""
        starts = block_starts(self.blocks)
        return [starts[span[0][0]] + span[0][1] for span in spans(starts, self.rows_of_chunk)]

    @property
    def _sources(self) -> list[Any]:
        return [block.source for block in self.blocks if isinstance(block, RemoteBlock)]

    def _done(self, delayed_result: Any) -> Any:
        """Compute the result of a pass over all rows, and say so."""
        result = delayed_result.compute()
        if self.on_progress is not None:
            self.on_progress(self.n_samples, self.n_samples)
        return result


def as_posterior(
    pred_probs: Any, noisy_labels: Any, class_names: Sequence[Any] | None = None, *, n_jobs: int = 1
) -> NoisyPosterior:
    """Return the posterior of anything that looks like probabilities and labels; Dask's stay where they are."""
    if not is_dask(pred_probs):
        return NoisyPosterior.from_arrays(pred_probs, noisy_labels, class_names, n_jobs=n_jobs)
    from dualt.rows.dask_input import open_collections

    return ClusterPosterior(*open_collections(pred_probs, noisy_labels, class_names))


def is_dask(values: Any) -> bool:
    """Tell whether `values` are one of Dask's collections, without importing it."""
    return type(values).__module__.partition(".")[0] == "dask"


def spans(starts: Sequence[int], rows: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield (block, low, high) of the chunks that start in one block: a list of it and those they reach into.

    `starts` are the blocks' first row numbers, and the number of all; `low` and `high` count within a block.
    """
    for first_block, limits in enumerate(pairwise(starts)):
        low, high = (min(-(-limit // rows) * rows, starts[-1]) for limit in limits)
        span, block = [], first_block
        while low < high:
            end = min(high, starts[block + 1])
            span.append((block, low - starts[block], end - starts[block]))
            low, block = end, block + 1
        if span:
            yield span


def _brought_home(tasks: list[Any]) -> Iterator[Any]:
    """Yield the results of delayed lists, in order, a few lists at a time."""
    from dask import compute

    for low in range(0, len(tasks), _AT_A_TIME):
        for results in compute(*tasks[low : low + _AT_A_TIME]):
            yield from results


def combined(combine: Any, parts: list[Any]) -> Any:
    """Return the delayed combination of all parts, a few at a time."""
    while len(parts) > 1:
        parts = [combine(parts[low : low + _MERGED_TOGETHER]) for low in range(0, len(parts), _MERGED_TOGETHER)]
    return parts[0]
