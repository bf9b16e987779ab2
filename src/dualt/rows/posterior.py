"""Probabilities and given labels as the estimators see them: blocks of rows, a summary, and rows to be read again.

A posterior stands on a sequence of blocks (arrays or files), whose rows are numbered through all of them. Where the
data were cut into blocks changes no count of the first pass; later passes read chunks that end where blocks end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.labels import Codes, LabelCoder
from dualt.rows.chunks import as_rows, count_pairs, working_dtype
from dualt.rows.summary import MERGED_TOGETHER, PosteriorSummary, merge_all, rows_of_sample, sample_rows, summarize
from dualt.transition import chunk_rows
from dualt.validation import ClassNames, check_n_classes, check_n_jobs

Rows: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
Chunk: TypeAlias = tuple[NDArray[Any], Codes]
# Called with how many rows of how many a pass has read.
Progress: TypeAlias = Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")
# From (probabilities, label codes) to pairs of classes, each as one number.
PairsOf: TypeAlias = Callable[[NDArray[Any], Codes], NDArray[np.intp]]
# A part has at most this many probabilities, so that the rows its summary goes back for are still in memory;
# dividing a block among threads does not pay below the lower number.
_PART_ENTRIES, _LEAST_ENTRIES = 1 << 27, 1 << 22
# Class indices of the labels are kept for later passes if they fit this many bytes.
_CODES_BYTES = 1 << 28
# Chunks that a thread takes in one go.
_CHUNKS_AT_ONCE = 8
# Rows of an array that are copied at a time where some of them have no label.
_COPIED_ROWS = 1 << 16


class Block(Protocol):
    """Consecutive rows of probabilities and their given labels.

    What its properties say is known before it is read: from an array's shape, a file's header. It can be read
    any number of times and holds nothing open in between. One that names files pickles as their paths.
    """

    @property
    def name(self) -> str:
        """What to call it in an error: a path, or nothing."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows with a label, and of classes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the probabilities as they are stored."""

    @property
    def missing(self) -> Sequence[int]:
        """Places of the rows without a label, ascending; they are left out."""

    def read(self) -> Iterator[Rows]:
        """Yield (probabilities, labels) from the first row to the last, as many at a time as fit memory.

        Arrays or memory maps, the labels as `as_label_array` returns them. All at once if they need no memory.
        """

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone."""


@dataclass(frozen=True)
class ArrayBlock:
    """A block of two arrays or memory maps of the same length; rows that are `missing` a label are left out."""

    pred_probs: NDArray[Any]
    noisy_labels: NDArray[Any]
    name: str = ""
    missing: Sequence[int] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows with a label, and of classes."""
        n_rows, n_classes = self.pred_probs.shape
        return n_rows - len(self.missing), n_classes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the probabilities."""
        return self.pred_probs.dtype

    def read(self) -> Iterator[Rows]:
        """Yield both arrays, or copies of some rows at a time if others have no label."""
        if not len(self.missing):
            yield self.pred_probs, self.noisy_labels
            return
        for low in range(0, len(self.pred_probs), _COPIED_ROWS):
            places = rows_with_label(low, min(low + _COPIED_ROWS, len(self.pred_probs)), self.missing)
            if len(self.noisy_labels[places]):
                yield self.pred_probs[places], self.noisy_labels[places]

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels."""
        yield np.delete(self.noisy_labels, self.missing) if len(self.missing) else self.noisy_labels


def rows_with_label(low: int, high: int, missing: Sequence[int], start: int = 0) -> slice | NDArray[np.intp]:
    """Return the places, counted from `start`, of the rows from `low` to `high` that are not `missing`."""
    first, last = np.searchsorted(missing, (low, high))
    if first == last:
        return slice(low - start, high - start)
    return np.setdiff1d(np.arange(low, high), missing[first:last]) - start


def block_starts(blocks: Sequence[Block]) -> list[int]:
    """Return the row number at which each block starts, and the number of all rows."""
    return list(accumulate((block.shape[0] for block in blocks), initial=0))


def cut(block: Block, start: int, rows: int) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """Yield (number of the first row, probabilities, labels) of at most `rows` rows at a time.

    `start` is the number of the block's first row.
    """
    for probs, labels in block.read():
        for low in range(0, len(probs), rows):
            yield start + low, probs[low : low + rows], labels[low : low + rows]
        start += len(probs)
        del probs, labels  # before the block makes the next


def in_block(error: InputError, block: str, start: int = 0) -> InputError:
    """Return the same error with the name of the block, whose first row has the number `start`."""
    counted = f" (Its first row counts as {start:,}.)" if start else ""
    return type(error)(f"In {block}: {error}{counted}") if block else error


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse no blocks, and blocks that do not have the same classes and the same precision."""
    if not blocks:
        raise InputError("Expected at least one block of rows, got none.")
    first = blocks[0]
    check_n_classes(first.shape[1])
    for block in blocks:
        if block.shape[1] != first.shape[1]:
            raise InputError(
                f"Expected {first.shape[1]} columns of probabilities in {block.name} as in {first.name},"
                f" got {block.shape[1]}."
            )
        if working_dtype(block.dtype) != working_dtype(first.dtype):
            raise InputError(
                f"Expected probabilities of one precision, got {first.dtype} in {first.name} and {block.dtype} in"
                f" {block.name}. Save them all as one type."
            )


def coder_for(blocks: Sequence[Block], class_names: ClassNames | None = None) -> LabelCoder:
    """Return the coder of the labels of all blocks; without names, textual classes are those that occur in any."""
    kinds = [next(block.read_labels())[:1].copy() for block in blocks]
    textual = [labels for labels in kinds if labels.dtype.kind not in "biuf"]
    example = (textual or kinds)[0]
    if textual and class_names is None:
        found = {str(name) for block in blocks for labels in block.read_labels() for name in np.unique(labels)}
        example = np.array(sorted(found))
    return LabelCoder.for_labels(example, blocks[0].shape[1], class_names)


def ordered_map(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int, at_once: int = 1
) -> Iterator[Result]:
    """Yield `function(item)` of every item, in order, computed in `n_jobs` threads; few items wait in memory."""
    if n_jobs == 1:
        return map(function, items)
    from joblib import Parallel, delayed

    threads = Parallel(
        n_jobs, prefer="threads", batch_size=at_once, pre_dispatch=2 * at_once * n_jobs, return_as="generator"
    )
    results: Iterator[Result] = threads(delayed(function)(item) for item in items)
    return results


class _Part(NamedTuple):
    """Rows that are summarised together: consecutive ones of a block."""

    pred_probs: NDArray[Any]
    noisy_labels: NDArray[Any]
    start: int
    block: Block
    block_start: int


@dataclass(frozen=True)
class NoisyPosterior:
    """The noisy posterior of a data set and its given labels.

    `summary` reads every row once and validates it; `chunks` and `map` read the rows again, for estimators that
    count under a condition known only after the first pass. `as_posterior` makes one of arrays.

    Attributes
    ----------
    blocks
        Where the rows are.
    coder
        Reads the labels.
    n_jobs
        How many threads read the rows.
    on_progress
        Called with how many rows of how many a pass has read.
    out_of_fold
        Whether the classifier had not seen the rows whose probabilities these are; None if that is not known.
    members : (n_models, n_samples, n_classes)
        Probabilities of each of several models, where the rows are their means.
    determined
        Whether an expert could always tell the class from the example; None if that is not known.
    start, sampled
        Number of the first row and of those to sample, where the rows are a part of others.
    """

    blocks: tuple[Block, ...]
    coder: LabelCoder
    n_jobs: int = 1
    on_progress: Progress | None = None
    out_of_fold: bool | None = None
    start: int = 0
    sampled: NDArray[np.int64] | None = None
    members: NDArray[Any] | None = None
    determined: bool | None = None

    @classmethod
    def from_blocks(
        cls,
        blocks: Sequence[Block],
        class_names: ClassNames | None = None,
        *,
        n_jobs: int = 1,
        on_progress: Progress | None = None,
    ) -> NoisyPosterior:
        """Take blocks of rows, which may be larger than memory together; at least one."""
        check_blocks(blocks)
        return cls(tuple(blocks), coder_for(blocks, class_names), check_n_jobs(n_jobs), on_progress)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.coder.n_classes

    @cached_property
    def block_starts(self) -> list[int]:
        """Row number at which each block starts, counted from the first, and the number of all rows."""
        return block_starts(self.blocks)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.block_starts[-1]

    @cached_property
    def labelled(self) -> NDArray[np.intp] | None:
        """Positions of the rows in the data that were passed, some of which had no label; None if all had one."""
        if not any(len(block.missing) for block in self.blocks):
            return None
        missing, start = [], 0
        for block in self.blocks:
            missing.append(start + np.asarray(block.missing, np.intp))
            start += block.shape[0] + len(block.missing)
        return np.delete(np.arange(start), np.concatenate(missing))

    @property
    def n_given(self) -> int:
        """Number of rows that were passed, with and without a label."""
        return self.n_samples + sum(len(block.missing) for block in self.blocks)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Float type in which rows are read."""
        return working_dtype(self.blocks[0].dtype)

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them."""
        merged: list[PosteriorSummary] = []
        kept, sampled = self._codes, self.sampled_rows

        def summarize_part(part: _Part) -> PosteriorSummary:
            end = part.start + len(part.noisy_labels)
            codes = None if kept is None else kept[part.start - self.start : end - self.start]
            own = sampled[slice(*np.searchsorted(sampled, [part.start, end]))]
            # The first summary rules out rows that cannot be anchors; an outdated one does no harm.
            after = merged[0] if merged else None
            try:
                return summarize(*part[:2], self.coder, start=part.start, sampled=own, after=after, codes=codes)
            except InputError as error:
                raise in_block(error, part.block.name, part.block_start) from None

        done = 0
        for summary in ordered_map(summarize_part, self._parts(), self.n_jobs):
            merged.append(summary)
            done = self._report(done + summary.n_samples)
            if len(merged) > MERGED_TOGETHER:
                merged[:] = [merge_all(merged)]
        return merge_all(merged)

    def _parts(self) -> Iterator[_Part]:
        """Yield few large parts, yet enough for all threads."""
        entries = np.clip(self.n_samples * self.n_classes // self.n_jobs, _LEAST_ENTRIES, _PART_ENTRIES)
        for block, low in zip(self.blocks, self.block_starts, strict=False):
            for start, probs, labels in cut(block, self.start + low, -(-int(entries) // self.n_classes)):
                yield _Part(probs, labels, start, block, self.start + low)

    @property
    def sampled_rows(self) -> NDArray[np.int64]:
        """Numbers of the rows to sample, ascending."""
        chosen = self.sampled
        return sample_rows(self.start, self.n_samples, rows_of_sample(self.n_classes)) if chosen is None else chosen

    @cached_property
    def _codes(self) -> NDArray[Any] | None:
        """Room for the class index of every row, which the first pass fills; None if it would take too much."""
        dtype = np.min_scalar_type(self.n_classes - 1)
        return np.empty(self.n_samples, dtype) if self.n_samples * dtype.itemsize <= _CODES_BYTES else None

    def chunks(self) -> Iterator[Chunk]:
        """Yield (probabilities, label codes) in cache-sized chunks, known to be valid."""
        return self.map(lambda probs, codes: (probs, codes))

    def map(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Yield `function(probabilities, label codes)` of every chunk, in order; it may run in several threads."""
        _ = self.summary
        done = 0
        for result, n_rows in self.map_valid(lambda probs, codes: (function(probs, codes), len(codes))):
            yield result
            done = self._report(done + n_rows)

    def map_valid(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Do the same as `map` for rows that are known to be valid, without reporting progress."""

        def apply(chunk: tuple[int, NDArray[Any], NDArray[Any]]) -> Result:
            start, probs, labels = chunk
            return function(as_rows(probs, self.dtype), self._encode(start, labels))

        rows = chunk_rows(self.n_classes, self.dtype.itemsize)
        starts = zip(self.blocks, self.block_starts, strict=False)
        chunks = (chunk for block, low in starts for chunk in cut(block, low, rows))
        return ordered_map(apply, chunks, self.n_jobs, at_once=_CHUNKS_AT_ONCE)

    def _encode(self, start: int, labels: NDArray[Any]) -> Codes:
        """Return the class indices of labels, whose first row is number `start` here, as the first pass kept them."""
        if "summary" in vars(self) and self._codes is not None:
            return self._codes[start : start + len(labels)].astype(np.intp)
        return self.coder.encode(labels, self.start + start)

    def count(self, pairs_of: PairsOf) -> NDArray[np.int64]:
        """Return counts (n_classes, n_classes) of the pairs that `pairs_of` finds in every chunk; see `count_pairs`."""
        return count_pairs(self.map(pairs_of), self.n_classes)

    def take(self, indices: NDArray[np.intp]) -> Chunk:
        """Return the probabilities and label codes of the rows of these numbers, in their order."""
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        probs, codes = np.empty((len(wanted), self.n_classes), self.dtype), np.empty(len(wanted), np.intp)
        for block, limits in zip(self.blocks, pairwise(self.block_starts), strict=True):
            low, high = np.searchsorted(wanted, limits)
            if low == high:
                continue  # not worth opening
            for start, rows, labels in cut(block, limits[0], block.shape[0]):
                low, high = np.searchsorted(wanted, [start, start + len(labels)])
                if low < high:
                    places = wanted[low:high] - start
                    probs[order[low:high]] = rows[places]
                    codes[order[low:high]] = self.coder.encode(labels[places])
        return probs, codes

    def _report(self, done: int) -> int:
        """Report progress: `done` rows of this pass have been read. Return `done`."""
        if self.on_progress is not None:
            self.on_progress(done, self.n_samples)
        return done
