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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt import __version__
from dualt.errors import InputError, LabelsError, ProbabilitiesError, naming_extra
from dualt.labels import Codes, LabelCoder, as_label_array
from dualt.rows.counts import count_pairs
from dualt.rows.posterior import (
    ArrayBlock,
    Block,
    Chunk,
    NoisyPosterior,
    PairsOf,
    Result,
    Rows,
    block_starts,
    check_blocks,
)
from dualt.rows.summary import MERGED_TOGETHER, PosteriorSummary, merge_all
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
# A task costs as much as reading some million numbers: it reads as many small blocks as have this many together.
_ENTRIES_OF_TASK = 1 << 24
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
            address = stack.enter_context(LocalCluster(n_workers=2, **options))
            yield stack.enter_context(Client(address))
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
        for worker, found in client.run(_version, on_error="ignore").items():
            if found != __version__:
                raise InputError(
                    f"Expected dualt {__version__} on every worker, got {found} on {worker}. Install the same version"
                    " there."
                )
        yield client


def _version() -> str:
    try:
        from dualt import __version__ as found
    except ImportError:
        return "none"
    return found


@dataclass(frozen=True)
class RemoteBlock:
    """A block that lies elsewhere; `source` is the delayed sequence of the blocks that it consists of."""

    source: Any
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    name: str = ""
    missing: tuple[int, ...] = ()

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


def combined(combine: Any, parts: list[Any]) -> Any:
    """Return the delayed combination of all parts, a few at a time."""
    while len(parts) > 1:
        parts = [combine(parts[low : low + MERGED_TOGETHER]) for low in range(0, len(parts), MERGED_TOGETHER)]
    return parts[0]


def open_collections(
    pred_probs: Any, noisy_labels: Any, class_names: ClassNames | None, coder: LabelCoder | None = None
) -> tuple[tuple[RemoteBlock, ...], LabelCoder]:
    """Return the blocks and the coder of Dask probabilities and of labels, Dask's or in memory.

    Sizes that Dask does not know are computed first. Dask labels that are cut otherwise are cut like the
    probabilities; labels in memory travel as class numbers. A `coder` that is given is used. Where both have an index,
    the workers compare them.
    """
    parts, names = _probability_parts(pred_probs)
    parts = [part for part in parts if part.n_rows]
    if not parts:
        raise ProbabilitiesError("Expected at least one row of probabilities, got none.")
    lengths, n_classes = [part.n_rows for part in parts], parts[0].n_classes
    open_labels = _dask_labels if is_dask(noisy_labels) else _labels_here
    labels, coder = open_labels(noisy_labels, lengths, n_classes, names if class_names is None else class_names, coder)
    blocks = tuple(
        RemoteBlock(delayed(_blocks)(part.source, *given, number), (part.n_rows, part.n_classes), part.dtype)
        for number, (part, given) in enumerate(zip(parts, labels, strict=True))
    )
    check_blocks(blocks)
    return blocks, coder


class _Partition(NamedTuple):
    """A partition of probabilities: its delayed value and what is known of it."""

    source: Any
    n_rows: int
    n_classes: int
    dtype: np.dtype[Any]


def _probability_parts(pred_probs: Any) -> tuple[list[_Partition], tuple[str, ...] | None]:
    """Return the partitions, and class names if the columns carry them."""
    if _is_frame(pred_probs):
        frames = pred_probs.to_delayed()
        described = compute(*map(delayed(_describe), frames))
        parts = [_Partition(frame, *known) for frame, known in zip(frames, described, strict=True)]
        return parts, names_of_columns(pred_probs.columns)
    if not hasattr(type(pred_probs), "chunks"):
        raise ProbabilitiesError(f"Expected a Dask array or data frame, got {type(pred_probs).__name__}.")
    check_probability_shape(pred_probs)
    whole = _with_known_sizes(pred_probs)
    rows = whole.rechunk({1: -1}) if whole.numblocks[1] > 1 else whole
    sources = rows.to_delayed().ravel().tolist()
    return [
        _Partition(source, n_rows, rows.shape[1], rows.dtype)
        for source, n_rows in zip(sources, rows.chunks[0], strict=True)
    ], None


def _describe(frame: Any) -> tuple[int, int, np.dtype[Any]]:
    """Return the number of rows and of classes of a partition, and the type of its probabilities."""
    table = as_probability_table(frame)[0] if len(frame) else np.empty((0, 0))
    return len(table), table.shape[1], table.dtype


def _with_known_sizes(array: Any) -> Any:
    if any(np.isnan(length) for lengths in array.chunks for length in lengths):
        array = array.copy()  # its sizes are set in place
        array.compute_chunk_sizes()
    return array


def _is_frame(collection: Any) -> bool:
    # A series has columns too, and a delayed value whatever it is asked for.
    return hasattr(type(collection), "columns") and collection.ndim == 2


def _dask_labels(
    noisy_labels: Any, lengths: list[int], n_classes: int, names: ClassNames | None, coder: LabelCoder | None
) -> tuple[list[Any], LabelCoder]:
    """Return the labels of every partition of the probabilities with their index, if any, and their coder."""
    if not hasattr(type(noisy_labels), "ndim"):
        raise LabelsError(f"Expected labels as a Dask array or series, got {type(noisy_labels).__name__}.")
    if _is_frame(noisy_labels):
        if len(noisy_labels.columns) != 1:
            raise LabelsError("Expected one column of labels, got a data frame of several. Pass the column of labels.")
        noisy_labels = noisy_labels[noisy_labels.columns[0]]
    if noisy_labels.ndim > 1 and noisy_labels.numblocks[1] > 1:
        noisy_labels = noisy_labels.rechunk({1: -1})
    sources = np.ravel(noisy_labels.to_delayed()).tolist()
    own_lengths = compute(*map(delayed(len), sources))
    check_same_length(sum(lengths), sum(own_lengths))
    arrays = [delayed(_label_array)(source, number) for number, source in enumerate(sources) if own_lengths[number]]
    indexes = [delayed(index_of)(source) for source, length in zip(sources, own_lengths, strict=True) if length]
    cut = [length for length in own_lengths if length], lengths
    parts = list(zip(_recut(arrays, *cut, np.concatenate), _recut(indexes, *cut, _join_indexes), strict=True))
    if coder is not None:
        return parts, coder
    if isinstance(noisy_labels.dtype, np.dtype) and noisy_labels.dtype.kind in "biuf":
        example = as_label_array(np.zeros((1, *noisy_labels.shape[1:]), noisy_labels.dtype))
    else:
        found = compute(*map(delayed(np.unique), arrays))
        textual = any(labels.dtype.kind == "U" for labels in found)
        example = np.unique(np.concatenate([labels.astype(str) for labels in found])) if textual else found[0]
    return parts, LabelCoder.for_labels(example, n_classes, names)


def _recut(parts: list[Any], lengths: list[int], wanted: list[int], join: Callable[[list[Any]], Any]) -> list[Any]:
    """Return the same rows in partitions of other lengths."""
    if lengths == wanted:
        return parts
    starts, recut = np.cumsum([0, *lengths]), []
    for low, high in pairwise(np.cumsum([0, *wanted]).tolist()):
        first, last = np.searchsorted(starts, low, "right") - 1, np.searchsorted(starts, high, "left")
        slices = [
            delayed(_slice)(part, max(low - start, 0), high - start)
            for part, start in zip(parts[first:last], starts[first:last].tolist(), strict=True)
        ]
        recut.append(delayed(join)(slices))
    return recut


def _slice(rows: Any, low: int, high: int) -> Any:
    return None if rows is None else rows[low:high]


def _join_indexes(indexes: list[Any]) -> Any:
    return None if indexes[0] is None else indexes[0].append(indexes[1:])


def _labels_here(
    noisy_labels: Any, lengths: list[int], n_classes: int, names: ClassNames | None, coder: LabelCoder | None
) -> tuple[list[Any], LabelCoder]:
    """Return the class numbers of every partition, in as few bytes as will do, with their index; and their coder."""
    labels = as_label_array(noisy_labels)
    check_same_length(sum(lengths), len(labels))
    coder = coder or LabelCoder.for_labels(labels, n_classes, names)
    codes, index = coder.encode_small(labels), index_of(noisy_labels)
    limits = pairwise(np.cumsum([0, *lengths]).tolist())
    parts = [(codes[low:high], _slice(index, low, high)) for low, high in limits]
    return parts, LabelCoder(coder.names, by_name=False)


def _blocks(pred_probs: Any, labels: NDArray[Any], index: Any, number: int) -> tuple[ArrayBlock]:
    """Return the block of a partition, if its labels are those of its rows."""
    rows = index_of(pred_probs)
    if rows is not None and index is not None and not rows.equals(index):
        raise InputError(
            "Expected labels with the index of the probabilities, got another index or order in partition"
            f" {number}: they may be of other rows. Reorder them by that index, or pass labels.to_numpy(), of Dask's"
            " labels.to_dask_array(), if the rows are the same."
        )
    return (ArrayBlock(scale_with_warning(as_probability_table(pred_probs)[0]), labels),)


def _label_array(labels: Any, number: int) -> NDArray[Any]:
    """Return the labels of a partition as an array; an error says which it is, since its rows count from 0."""
    try:
        return as_label_array(labels)
    except LabelsError as error:
        raise LabelsError(f"In partition {number}: {error}") from None
