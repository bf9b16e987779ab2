"""Rows that stay with Dask: its arrays and data frames, or files that its workers read, and a connection to a cluster.

Workers reduce the rows, and only what estimators ask for travels. Dask is imported when one of its functions is first
needed, here and nowhere else. Any of its schedulers does: threads, processes, or a cluster whose client is open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import __version__
from dualt.errors import InputError, LabelsError, ProbabilitiesError, naming_extra
from dualt.labels import Codes, LabelCoder, as_label_array
from dualt.rows.chunks import count_pairs
from dualt.rows.posterior import MERGED_TOGETHER, Block, Chunk, NoisyPosterior, PairsOf, Result, check_blocks
from dualt.rows.summary import PosteriorSummary, merge
from dualt.validation import (
    ClassNames,
    as_probability_table,
    check_probability_shape,
    check_same_length,
    index_of,
    names_of_columns,
    scale_with_warning,
)

# Blocks whose results travel together, so that memory here stays bounded.
_AT_A_TIME = 8
_TIMEOUT, _TIMEOUT_OF_WORKERS = "5s", "30s"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Open a client of the scheduler at `address`, or of two worker processes started here if that is `local`.

    Within the block, Dask computes there. Workers must have this version of dualt.
    """
    with naming_extra("Running on a Dask cluster"):
        from distributed import Client, LocalCluster

    with ExitStack() as stack:
        if address == "local":
            options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
            yield stack.enter_context(Client(stack.enter_context(LocalCluster(n_workers=2, **options))))
            return
        try:
            client = stack.enter_context(Client(address, timeout=_TIMEOUT))
        except Exception as error:  # an address decides which library speaks, and fails in its own way
            raise InputError(
                f"Expected a Dask scheduler at {address}, but none answers ({error or type(error).__name__}). Start one"
                " with 'dask scheduler', or leave --dask away. Nothing was changed."
            ) from error
        try:
            client.wait_for_workers(1, timeout=_TIMEOUT_OF_WORKERS)
        except TimeoutError:
            raise InputError(
                f"Expected workers at {address}, got none in {_TIMEOUT_OF_WORKERS}. Start some with"
                f" 'dask worker {address}'."
            ) from None
        for worker, found in client.get_versions(packages=["dualt"])["workers"].items():
            version = found["packages"]["dualt"]
            if version != __version__:
                raise InputError(
                    f"Expected dualt {__version__} on every worker, got {version or 'none'} on {worker}. Install the"
                    " same version there."
                )
        yield client


@dataclass(frozen=True)
class DaskPosterior(NoisyPosterior):
    """A `NoisyPosterior` whose blocks lie elsewhere: the `source` of each is the delayed block.

    Summaries and counts are made where the blocks are, and merged there. `map` runs its function there and
    fetches the results in order, those of a few blocks at a time.
    """

    @classmethod
    def of(cls, posterior: NoisyPosterior) -> DaskPosterior:
        """Take the blocks of a posterior that name files: their paths travel, and workers that see them read them."""
        blocks = tuple(replace(block, source=delayed(block, traverse=False)) for block in posterior.blocks)
        return cls(blocks, posterior.coder, on_progress=posterior.on_progress)

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them, and leaves them where they are."""
        sampled = self.sampled_rows
        own = np.split(sampled, np.searchsorted(sampled, self.block_starts[1:-1]))
        parts = self._each(lambda rows, sampled: replace(rows, sampled=sampled).summary, own)
        summary: PosteriorSummary = self._combine(merge, parts)
        return summary

    def map(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Yield `function(probabilities, label codes)` of every chunk, in order; it runs where the blocks are."""
        tasks = self.delayed_map(function)
        for low in range(0, len(tasks), _AT_A_TIME):
            for results in compute(*tasks[low : low + _AT_A_TIME]):
                yield from results
            self._report(self.block_starts[min(low + _AT_A_TIME, len(tasks))])

    def delayed_map(self, function: Callable[[NDArray[Any], Codes], Result]) -> list[Any]:
        """Return the delayed list of `function` of every chunk, per block."""
        _ = self.summary
        return self._each(lambda rows: list(rows.map_valid(function)))

    def count(self, pairs_of: PairsOf) -> NDArray[np.int64]:
        """Return counts (n_classes, n_classes) of the pairs that `pairs_of` finds in every chunk."""
        _ = self.summary
        parts = self._each(lambda rows: count_pairs(rows.map_valid(pairs_of), rows.n_classes))
        counts: NDArray[np.int64] = self._combine(sum, parts)
        return counts

    def take(self, indices: NDArray[np.intp]) -> Chunk:
        """Return the probabilities and label codes of the rows of these numbers, in their order."""
        order = np.argsort(indices, kind="stable")
        limits = np.searchsorted(indices[order], self.block_starts)
        places = [
            indices[order[low:high]] - start
            for (low, high), start in zip(pairwise(limits), self.block_starts, strict=False)
        ]
        tasks = self._each(lambda rows, places: rows.take(places), places)
        wanted = [task for task, own in zip(tasks, places, strict=True) if len(own)]
        probs, codes = np.empty((len(order), self.n_classes), self.dtype), np.empty(len(order), np.intp)
        low = 0
        for rows, labels in compute(*wanted):
            there = order[low : low + len(labels)]
            probs[there], codes[there] = rows, labels
            low += len(labels)
        return probs, codes

    def _each(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return the delayed `work(posterior of the rows, ...)` of every block, with its own of all arguments."""

        def run(block: Block, coder: LabelCoder, start: int, *own: Any) -> Any:
            return work(NoisyPosterior((block,), coder, start=start), *own)

        task, coder = delayed(run, traverse=False), delayed(self.coder, traverse=False)
        blocks = zip(self.blocks, self.block_starts[:-1], *arguments, strict=True)
        return [task(block.source, coder, start, *own) for block, start, *own in blocks]

    def _combine(self, function: Callable[[Any], Any], parts: list[Any]) -> Any:
        """Compute `function` of all delayed parts, a few at a time, and report that all rows were read."""
        combine = delayed(function)
        while len(parts) > 1:
            parts = [combine(parts[low : low + MERGED_TOGETHER]) for low in range(0, len(parts), MERGED_TOGETHER)]
        (computed,) = compute(*parts)
        self._report(self.n_samples)
        return computed


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

    found: tuple[Any, ...] = dask.compute(*values)
    return found


def lazy_frame(partitions: list[Any], meta: Any, divisions: Sequence[int]) -> Any:
    """Return the Dask data frame of delayed pandas ones, given an empty one and the row numbers where they start."""
    import dask.dataframe

    return dask.dataframe.from_delayed(partitions, meta=meta, divisions=tuple(divisions))


def open_collections(
    pred_probs: Any, noisy_labels: Any, class_names: ClassNames | None, coder: LabelCoder | None = None
) -> tuple[tuple[Block, ...], LabelCoder]:
    """Return the blocks and the coder of Dask probabilities and of labels, Dask's or in memory.

    Sizes that Dask does not know are computed first. Labels are cut like the probabilities; those in memory travel as
    class numbers. A `coder` that is given is used. Where both have an index, the two are compared.
    """
    if not (_is_frame(pred_probs) or hasattr(type(pred_probs), "chunks")):
        raise ProbabilitiesError(f"Expected a Dask array or data frame, got {type(pred_probs).__name__}.")
    rows, own = _index(pred_probs), _index(noisy_labels)
    if rows is not None and own is not None and len(rows) == len(own) and not rows.equals(own):
        raise InputError(
            "Expected labels with the index of the probabilities, got another index or order: they may be of other"
            " rows. Reorder them by that index, or pass labels.to_numpy(), of Dask's labels.to_dask_array(), if the"
            " rows are the same."
        )
    if _is_frame(pred_probs):
        names, n_classes = names_of_columns(pred_probs.columns), len(pred_probs.columns)
        dtype = np.result_type(*(getattr(dtype, "numpy_dtype", dtype) for dtype in pred_probs.dtypes))
        tables = pred_probs.to_delayed()
        lengths = list(compute(*map(delayed(len), tables)))
    else:
        check_probability_shape(pred_probs)
        whole = _known_chunks(pred_probs)
        tables, lengths = whole.to_delayed().ravel().tolist(), list(whole.chunks[0])
        names, n_classes, dtype = None, whole.shape[1], whole.dtype
    kept = [(table, length) for table, length in zip(tables, lengths, strict=True) if length]
    if not kept:
        raise ProbabilitiesError("Expected at least one row of probabilities, got none.")
    lengths = [length for _, length in kept]
    class_names = names if class_names is None else class_names
    if is_dask(noisy_labels):
        labels, example = _dask_labels(noisy_labels, lengths, coder is None)
        coder = coder or LabelCoder.for_labels(example, n_classes, class_names)
    else:
        given = as_label_array(noisy_labels)
        check_same_length(sum(lengths), len(given))
        coder = coder or LabelCoder.for_labels(given, n_classes, class_names)
        labels = np.split(coder.encode_small(given), np.cumsum(lengths)[:-1])
        coder = LabelCoder(coder.names, by_name=False)
    blocks = tuple(
        Block(delayed(_block)(table, part), length, n_classes, dtype)
        for (table, length), part in zip(kept, labels, strict=True)
    )
    check_blocks(blocks)
    return blocks, coder


def _is_frame(collection: Any) -> bool:
    # A series has columns too, and a delayed value whatever it is asked for.
    return hasattr(type(collection), "columns") and collection.ndim == 2


def _known_chunks(array: Any) -> Any:
    """Return the array with sizes that are known and whole rows in every chunk."""
    if any(np.isnan(length) for lengths in array.chunks for length in lengths):
        array = array.copy()  # its sizes are set in place
        array.compute_chunk_sizes()
    return array.rechunk({1: -1}) if array.ndim > 1 and array.numblocks[1] > 1 else array


def _index(values: Any) -> Any:
    """Return the index of a data frame or series, pandas' or Dask's; None without one."""
    if not is_dask(values):
        return index_of(values)
    return values.index.compute() if hasattr(type(values), "index") else None


def _dask_labels(noisy_labels: Any, lengths: list[int], find: bool) -> tuple[list[Any], NDArray[Any]]:
    """Return the delayed labels of every partition of the probabilities, and labels as an example; all, to `find`."""
    if not hasattr(type(noisy_labels), "ndim"):
        raise LabelsError(f"Expected labels as a Dask array or series, got {type(noisy_labels).__name__}.")
    if _is_frame(noisy_labels):
        if len(noisy_labels.columns) != 1:
            raise LabelsError("Expected one column of labels, got a data frame of several. Pass the column of labels.")
        noisy_labels = noisy_labels[noisy_labels.columns[0]]
    if hasattr(type(noisy_labels), "to_dask_array"):
        plain = isinstance(noisy_labels.dtype, np.dtype)
        noisy_labels = (noisy_labels if plain else noisy_labels.astype(object)).to_dask_array()
    array = _known_chunks(noisy_labels)
    check_same_length(sum(lengths), len(array))
    array = array.rechunk({0: tuple(lengths)})
    labels = [delayed(_label_array)(part, number) for number, part in enumerate(array.to_delayed().ravel().tolist())]
    if isinstance(array.dtype, np.dtype) and array.dtype.kind in "biuf":
        return labels, as_label_array(np.zeros((1, *array.shape[1:]), array.dtype))
    if not find:
        return labels, np.empty(0)
    found = compute(*map(delayed(np.unique), labels))
    textual = any(part.dtype.kind == "U" for part in found)
    return labels, np.unique(np.concatenate([part.astype(str) for part in found])) if textual else found[0]


def _block(pred_probs: Any, labels: NDArray[Any]) -> Block:
    return Block.of_arrays(scale_with_warning(as_probability_table(pred_probs)[0]), labels)


def _label_array(labels: Any, number: int) -> NDArray[Any]:
    """Return the labels of a partition as an array; an error says which it is, since its rows count from 0."""
    try:
        return as_label_array(labels)
    except LabelsError as error:
        raise LabelsError(f"In partition {number}: {error}") from None
