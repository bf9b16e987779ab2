"""Rows that stay with Dask: its arrays and data frames, or files that its workers read, and a connection to a cluster.

Workers reduce the rows, and only what estimators ask for travels. Dask is imported when one of its functions is first
needed, here and nowhere else. Any of its schedulers will do: threads, processes, or a cluster whose client is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from logging import CRITICAL
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, ProbabilitiesError, naming_extra
from dualt.labels import Codes, LabelCoder, as_label_array
from dualt.rows.posterior import MERGED_TOGETHER, Block, Chunk, NoisyPosterior, Result
from dualt.rows.summary import PosteriorSummary, merge, sample_rows
from dualt.validation import (
    ClassNames,
    align_labels,
    check_probability_shape,
    check_same_length,
    names_of_columns,
    scale_rounded,
)

# Blocks whose results travel together, so that memory here stays bounded.
_AT_A_TIME = 8
_TIMEOUT, _TIMEOUT_OF_WORKERS = "5s", "30s"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Within the block, let Dask compute at the scheduler `address`, or in two processes of this machine if `local`."""
    with naming_extra("Running on a Dask cluster"):
        from distributed import Client

    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": CRITICAL}
    try:
        opened = Client(**local) if address == "local" else Client(address, timeout=_TIMEOUT)
    except Exception as error:  # an address decides which library speaks, and fails in its own way
        raise InputError(
            f"Expected a Dask scheduler at {address}, but none answers ({error or type(error).__name__}). Start one"
            " with 'dask scheduler', or leave out --dask. Nothing was changed."
        ) from error
    with opened as client:
        try:
            client.wait_for_workers(1, timeout=_TIMEOUT_OF_WORKERS)
        except TimeoutError:
            raise InputError(
                f"Expected workers at {address}, got none in {_TIMEOUT_OF_WORKERS}. Start some with"
                f" 'dask worker {address}'."
            ) from None
        yield client


@dataclass(frozen=True)
class DaskPosterior(NoisyPosterior):
    """A `NoisyPosterior` whose blocks are elsewhere, and summarised there: their `source` is the delayed block."""

    @classmethod
    def of(cls, posterior: NoisyPosterior) -> DaskPosterior:
        """Take the blocks of a posterior that name files: their paths travel, and workers that see them read them."""
        blocks = tuple(replace(block, source=delayed(block, traverse=False)) for block in posterior.blocks)
        return cls(blocks, posterior.coder, on_progress=posterior.on_progress)

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them, and leaves them where they are."""
        sampled = sample_rows(self.n_samples, self.n_classes)
        own = np.split(sampled, np.searchsorted(sampled, self.block_starts[1:-1]))
        parts, combine = self._each(lambda rows, sampled: replace(rows, sampled=sampled).summary, own), delayed(merge)
        while len(parts) > 1:
            parts = [combine(parts[low : low + MERGED_TOGETHER]) for low in range(0, len(parts), MERGED_TOGETHER)]
        summary: PosteriorSummary = compute(*parts)[0]
        self._report(self.n_samples)
        return summary

    def map(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Yield `function(probabilities, label codes)` of every chunk, in order, from a few blocks at a time."""
        tasks = self.delayed_map(function)
        for low in range(0, len(tasks), _AT_A_TIME):
            for results in compute(*tasks[low : low + _AT_A_TIME]):
                yield from results
            self._report(self.block_starts[min(low + _AT_A_TIME, len(tasks))])

    def delayed_map(self, function: Callable[[NDArray[Any], Codes], Result]) -> list[Any]:
        """Return the delayed list of `function` of every chunk, per block."""
        _ = self.summary
        return self._each(lambda rows: list(rows.map_valid(function)))

    def _take_from(self, places: Mapping[int, NDArray[np.intp]]) -> Iterable[Chunk]:
        tasks = self._each(lambda rows, own: rows.take(own), [places.get(number) for number in range(len(self.blocks))])
        return compute(*(tasks[number] for number in places))

    def _each(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return the delayed `work(posterior of the rows, ...)` of every block, with its own of all arguments."""

        def run(block: Block, coder: LabelCoder, start: int, *own: Any) -> Any:
            return work(NoisyPosterior((block,), coder, start=start), *own)

        task, coder = delayed(run, traverse=False), delayed(self.coder, traverse=False)
        blocks = zip(self.blocks, self.block_starts[:-1], *arguments, strict=True)
        return [task(block.source, coder, start, *own) for block, start, *own in blocks]


def is_dask(values: Any) -> bool:
    """Return whether `values` are one of Dask's collections, without importing it."""
    return type(values).__module__.partition(".")[0] == "dask"


def delayed(value: Any, **options: Any) -> Any:
    """Return `dask.delayed(value)`."""
    import dask

    return dask.delayed(value, **options)


def compute(*values: Any) -> tuple[Any, ...]:
    """Return the results of delayed values."""
    import dask

    return tuple(dask.compute(*values))


def lazy_frame(partitions: list[Any], meta: Any, divisions: Sequence[int]) -> Any:
    """Return the Dask data frame of delayed pandas ones, given an empty one and the row numbers where they start."""
    import dask.dataframe

    return dask.dataframe.from_delayed(partitions, meta=meta, divisions=tuple(divisions))


def open_collections(
    pred_probs: Any, noisy_labels: Any, class_names: ClassNames | None
) -> tuple[tuple[Block, ...], LabelCoder]:
    """Return the blocks and the coder of Dask probabilities and of labels, Dask's or in memory.

    Sizes that Dask does not know are computed first. Labels are read here, and travel as class numbers.
    """
    if not hasattr(type(pred_probs), "columns") and not hasattr(type(pred_probs), "chunks"):
        raise ProbabilitiesError(f"Expected a Dask array or data frame, got {type(pred_probs).__name__}.")
    aligned = align_labels(pred_probs, compute(noisy_labels)[0] if is_dask(noisy_labels) else noisy_labels)
    names = None
    if hasattr(type(pred_probs), "to_frame"):  # a series, which has columns too
        pred_probs = pred_probs.to_frame()
    if hasattr(type(pred_probs), "columns"):
        names, kinds = names_of_columns(pred_probs.columns), pred_probs.dtypes
        numeric = (getattr(kind, "numpy_dtype", kind) if kind.kind in "fiub" else object for kind in kinds)
        pred_probs = pred_probs.astype(np.result_type(*numeric)).to_dask_array()
    check_probability_shape(pred_probs)
    if np.isnan(pred_probs.shape[0]):
        pred_probs = pred_probs.copy()  # its sizes are set in place
        pred_probs.compute_chunk_sizes()
    table = pred_probs.rechunk({1: -1})
    n_samples, n_classes = table.shape
    if n_samples == 0:
        raise ProbabilitiesError("Expected at least one row of probabilities, got none.")
    given = as_label_array(aligned)
    check_same_length(n_samples, len(given))
    coder = LabelCoder.for_labels(given, n_classes, names if class_names is None else class_names)
    of_arrays = delayed(lambda probs, own: Block.of_arrays(scale_rounded(probs), own))
    labels = np.split(coder.encode_small(given), np.cumsum(table.chunks[0])[:-1])
    blocks = tuple(
        Block(of_arrays(part, own), len(own), n_classes, table.dtype)
        for part, own in zip(table.to_delayed().ravel(), labels, strict=True)
        if len(own)
    )
    return blocks, LabelCoder(coder.names)
