"""Probabilities and given labels as the estimators see them: blocks of rows, a summary, and rows to be read again.

A posterior stands on a sequence of blocks (arrays or files), whose rows are numbered through all of them. Where the
data were cut into blocks changes no count of the first pass; later passes read chunks that end where blocks end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.labels import Codes, LabelCoder
from dualt.rows.chunks import count_pairs, working_dtype
from dualt.rows.scaling import likeliest_power
from dualt.rows.summary import PosteriorSummary, merge, sample_rows, summarize
from dualt.transition import chunk_rows
from dualt.validation import ClassNames, check_n_jobs

Chunk: TypeAlias = tuple[NDArray[Any], Codes]
# Number of the block, number of the first row, probabilities, labels.
Part: TypeAlias = tuple[int, int, NDArray[Any], NDArray[Any]]
# Called with how many rows of how many a pass has read.
Progress: TypeAlias = Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")
# A part has at most this many probabilities, so that the rows its summary goes back for are still in memory;
# dividing a block among threads does not pay below the lower number.
_PART_ENTRIES, _LEAST_ENTRIES = 1 << 27, 1 << 22
# Summaries that are merged together: little more costly than merging two.
MERGED_TOGETHER = 8
# Chunks that a thread takes in one go.
_CHUNKS_AT_ONCE = 8
# The power is fitted on as many sampled rows as have this many probabilities, from 512 to 4,096.
_POWER_ENTRIES = 1 << 20
# Rows that are copied at a time where others have no label.
_COPIED_ROWS = 1 << 16


@dataclass(frozen=True)
class Block:
    """Consecutive rows of probabilities and their given labels: two arrays, or a file.

    `source` yields tuples that begin with both, of as many rows as fit memory; one that reads files pickles as their
    paths. `n_given` counts rows with and without a label, `missing` has the places of those without, which are left
    out. Errors call the block `name`, a path or nothing.
    """

    source: Callable[[], Iterable[Sequence[Any]]]
    n_given: int
    n_classes: int
    dtype: np.dtype[Any]
    name: str = ""
    missing: Sequence[int] = ()

    @classmethod
    def of_arrays(cls, probs: NDArray[Any], labels: NDArray[Any], name: str = "", missing: Sequence[int] = ()) -> Block:
        """Take two arrays or memory maps of the same length."""
        return cls(partial(iter, [(probs, labels)]), len(probs), probs.shape[1], probs.dtype, name, missing)

    @property
    def n_rows(self) -> int:
        """Number of rows with a label."""
        return self.n_given - len(self.missing)

    def read(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield the probabilities and labels of the rows that have a label: copies if some have none."""
        end, n_columns, missing = 0, self.n_classes, np.array(self.missing, np.intp)
        try:
            for probs, labels, *_ in self.source():
                start, end, n_columns = end, end + len(probs), probs.shape[1]
                if end > self.n_given or n_columns != self.n_classes:
                    break
                pieces: list[Any] = [slice(None)]
                own = missing[slice(*np.searchsorted(missing, (start, end)))] - start
                if len(own):
                    labelled = np.delete(np.arange(end - start), own)
                    pieces = np.split(labelled, range(_COPIED_ROWS, len(labelled), _COPIED_ROWS))
                yield from ((probs[some], labels[some]) for some in pieces)
        except InputError as error:
            raise in_block(error, self.name) from None
        if (end, n_columns) != (self.n_given, self.n_classes):
            raise FileError(
                f"Expected {self.n_given:,} rows of {self.n_classes} classes in {self.name} as before, got {end:,} of"
                f" {n_columns}: it changed while it was read."
            )


def in_block(error: InputError, block: str, start: int = 0, *, unlabelled: bool = False) -> InputError:
    """Return the error with the name of its block, the number of its first row, and a note on unlabelled rows."""
    counted = f" (Its first row counts as {start:,}.)" if start else ""
    counted += " (Rows without a label are not counted.)" if unlabelled else ""
    return type(error)(f"{f'In {block}: ' if block else ''}{error}{counted}")


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


@dataclass(frozen=True)
class NoisyPosterior:
    """The noisy posterior of a data set and its given labels; `as_posterior` makes one from arrays.

    `summary` reads every row once and validates it; `chunks` and `map` read the rows again, for estimators that
    count under a condition known only after the first pass. `start` and `sampled` are the number of the first row and
    of those to sample, where the rows are a part of others; `members`, (n_models, n_samples, n_classes), are the
    probabilities of several models, where the rows are their means. `as_posterior` describes the other attributes.
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
        """Take blocks of rows of the same classes; without names, textual classes are those that occur in any."""
        kinds = [next(labels[:1].copy() for _, labels in block.read() if len(labels)) for block in blocks]
        example = next((labels for labels in kinds if labels.dtype.kind == "U"), kinds[0])
        if example.dtype.kind == "U" and class_names is None:
            parts = (labels for block in blocks for _, labels in block.read())
            example = np.array(sorted({str(name) for labels in parts for name in np.unique(labels)}))
        coder = LabelCoder.for_labels(example, blocks[0].n_classes, class_names)
        return cls(tuple(blocks), coder, check_n_jobs(n_jobs), on_progress)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.coder.n_classes

    @cached_property
    def block_starts(self) -> list[int]:
        """Row number at which each block starts, counted from the first, and the number of all rows."""
        return list(accumulate((block.n_rows for block in self.blocks), initial=0))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.block_starts[-1]

    @property
    def n_given(self) -> int:
        """Number of rows that were passed, with and without a label."""
        return sum(block.n_given for block in self.blocks)

    @cached_property
    def labelled(self) -> NDArray[np.intp] | None:
        """Positions of the rows in the data that were passed, some of which had no label; None if all had one."""
        if self.n_given == self.n_samples:
            return None
        starts = accumulate((block.n_given for block in self.blocks), initial=0)
        missing = [start + np.asarray(each.missing, np.intp) for each, start in zip(self.blocks, starts, strict=False)]
        return np.delete(np.arange(self.n_given), np.concatenate(missing))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Float type in which rows are read."""
        return np.result_type(*{working_dtype(block.dtype) for block in self.blocks})

    @cached_property
    def power(self) -> float:
        """The power of the probabilities that makes the given labels likeliest: their calibration."""
        few = self.summary.thinned(int(np.clip(_POWER_ENTRIES // self.n_classes, 512, 4096)))
        return likeliest_power(few.sample_rows, few.sample_labels)

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them."""
        kept, sampled = self._codes, self.sampled
        sampled = sample_rows(self.n_samples, self.n_classes) if sampled is None else sampled

        def summarize_part(part: Part) -> PosteriorSummary:
            number, low, probs, labels = part
            start, end = self.start + low, self.start + low + len(labels)
            codes = kept[low : low + len(labels)]
            own = sampled[slice(*np.searchsorted(sampled, [start, end]))]
            try:
                return summarize(probs, labels, self.coder, start=start, sampled=own, codes=codes)
            except InputError as error:
                first, unlabelled = self.start + self.block_starts[number], self.n_given > self.n_samples
                raise in_block(error, self.blocks[number].name, first, unlabelled=unlabelled) from None

        # Few parts, yet enough for all threads.
        entries = np.clip(self.n_samples * self.n_classes // self.n_jobs, _LEAST_ENTRIES, _PART_ENTRIES)
        merged: list[PosteriorSummary] = []
        done = 0
        for summary in ordered_map(summarize_part, self._cut(-(-int(entries) // self.n_classes)), self.n_jobs):
            merged.append(summary)
            done = self._report(done + summary.n_samples)
            if len(merged) > MERGED_TOGETHER:
                merged = [merge(merged)]
        return merge(merged)

    def _cut(self, rows: int) -> Iterator[Part]:
        """Yield the rows of all blocks, at most `rows` at a time."""
        for number, block in enumerate(self.blocks):
            start = self.block_starts[number]
            for probs, labels in block.read():
                for low in range(0, len(labels), rows):
                    yield number, start + low, probs[low : low + rows], labels[low : low + rows]
                start += len(labels)
                del probs, labels  # before the next are read

    @cached_property
    def _codes(self) -> NDArray[Any]:
        """Room for the class index of every row, which the first pass fills for later ones: one or two bytes each."""
        return np.empty(self.n_samples, np.min_scalar_type(self.n_classes - 1))

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
        codes = self._codes if "summary" in vars(self) else None  # as the first pass has filled them

        def apply(part: Part) -> Result:
            _, start, probs, labels = part
            if codes is None:
                own = self.coder.encode(labels, self.start + start)
            else:
                own = codes[start : start + len(labels)].astype(np.intp)
            return function(np.ascontiguousarray(probs, self.dtype), own)

        rows = chunk_rows(self.n_classes, self.dtype.itemsize)
        return ordered_map(apply, self._cut(rows), self.n_jobs, at_once=_CHUNKS_AT_ONCE)

    def count(self, pairs_of: Callable[[NDArray[Any], Codes], NDArray[np.intp]]) -> NDArray[np.int64]:
        """Return counts (n_classes, n_classes) of the pairs that `pairs_of` finds in every chunk; see `count_pairs`."""
        return count_pairs(self.map(pairs_of), self.n_classes)

    def take(self, indices: NDArray[np.intp]) -> Chunk:
        """Return the probabilities and label codes of the rows of these numbers, in their order."""
        order = np.argsort(indices, kind="stable")
        limits = np.searchsorted(indices[order], self.block_starts)
        asked = {number: order[low:high] for number, (low, high) in enumerate(pairwise(limits)) if low < high}
        places = {number: indices[own] - self.block_starts[number] for number, own in asked.items()}
        probs, codes = np.empty((len(order), self.n_classes), self.dtype), np.empty(len(order), np.intp)
        for own, found in zip(asked.values(), self._take_from(places), strict=True):
            probs[own], codes[own] = found
        return probs, codes

    def _take_from(self, places: Mapping[int, NDArray[np.intp]]) -> Iterable[Chunk]:
        """Yield the rows at these places of blocks, ascending, by the number of the block."""
        for number, own in places.items():
            found, start = [], 0
            for probs, labels in self.blocks[number].read():
                inside = own[slice(*np.searchsorted(own, (start, start + len(labels))))] - start
                if len(inside):
                    found.append((probs[inside], self.coder.encode(labels[inside])))
                start += len(labels)
            rows, codes = map(np.concatenate, zip(*found, strict=True))
            yield rows, codes

    def _report(self, done: int) -> int:
        """Report progress: `done` rows of this pass have been read. Return `done`."""
        if self.on_progress is not None:
            self.on_progress(done, self.n_samples)
        return done
