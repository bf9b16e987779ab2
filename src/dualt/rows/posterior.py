"""Probabilities and given labels as the estimators see them: a summary, and rows to be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes, LabelCoder, as_label_array
from dualt.rows.anchors import sample_ceiling
from dualt.rows.blocks import (
    ArrayBlock,
    Block,
    Piece,
    aligned,
    block_starts,
    check_blocks,
    coder_for,
    pieces,
    summarize_piece,
)
from dualt.rows.counts import count_pairs
from dualt.rows.floats import as_rows, working_dtype
from dualt.rows.summary import MERGED_TOGETHER, PosteriorSummary, merge_all, rows_of_sample
from dualt.rows.threads import ordered_map
from dualt.transition import chunk_rows
from dualt.validation import as_probability_table, check_n_jobs, check_same_length

Chunk: TypeAlias = tuple[NDArray[Any], Codes]
# Told how many rows of how many a pass has read.
Progress: TypeAlias = Callable[[int, int], None]
Result = TypeVar("Result")
# From (probabilities, label codes) to pairs of classes, each as one number.
PairsOf: TypeAlias = Callable[[NDArray[Any], Codes], NDArray[np.intp]]


@dataclass(frozen=True)
class NoisyPosterior:
    """The noisy posterior of a data set and its given labels.

    `summary` reads every row once and validates it; `chunks` and `map` read the rows again, for estimators that
    count under a condition known only after the first pass. Neither where the blocks end nor the number of
    threads changes a result. `out_of_fold` tells whether the classifier had not seen the rows whose probabilities
    these are, where that is known.
    """

    blocks: tuple[Block, ...]
    coder: LabelCoder
    n_jobs: int = 1
    on_progress: Progress | None = None
    out_of_fold: bool | None = None

    @classmethod
    def from_arrays(
        cls,
        pred_probs: Any,
        noisy_labels: Any,
        class_names: Sequence[Any] | None = None,
        *,
        n_jobs: int = 1,
        on_progress: Progress | None = None,
    ) -> NoisyPosterior:
        """Take anything that looks like probabilities and labels, without copying arrays.

        Class names come from `class_names`, else from the columns of a data frame, else from the labels.
        """
        table, columns = as_probability_table(pred_probs)
        labels = as_label_array(noisy_labels)
        check_same_length(len(table), len(labels))
        names = class_names if class_names is not None else columns
        coder = LabelCoder.for_labels(labels, table.shape[1], names)
        return cls((ArrayBlock(table, labels),), coder, check_n_jobs(n_jobs), on_progress)

    @classmethod
    def from_blocks(
        cls,
        blocks: Sequence[Block],
        class_names: Sequence[Any] | None = None,
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
    def n_samples(self) -> int:
        """Number of rows."""
        return block_starts(self.blocks)[-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Float type in which rows are read."""
        return working_dtype(self.blocks[0].dtype)

    @property
    def rows_of_chunk(self) -> int:
        """Number of rows in every chunk but the last."""
        return chunk_rows(self.n_classes, self.dtype.itemsize)

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them."""
        size = rows_of_sample(self.n_classes)
        found = self._summarize(sample_ceiling(self.n_samples, size))
        unlucky = len(found.sample_index) < min(size, self.n_samples)
        return self._summarize() if unlucky else found

    def _summarize(self, ceiling: int | None = None) -> PosteriorSummary:
        """Return the summary of all rows; only those whose hash is at most `ceiling` are sampled."""
        parts: list[PosteriorSummary] = []

        def summarize(piece: Piece) -> PosteriorSummary:
            # The first of the parts tells which rows stand no chance; that it may be an old one does no harm.
            return summarize_piece(piece, self.coder, ceiling=ceiling, after=parts[0] if parts else None)

        found = ordered_map(summarize, pieces(self.blocks, n_jobs=self.n_jobs), self.n_jobs)
        for part in self._watched(found, lambda part: part.n_samples):
            parts.append(part)
            if len(parts) > MERGED_TOGETHER:
                parts[:] = [merge_all(parts)]
        return merge_all(parts)

    def chunks(self) -> Iterator[Chunk]:
        """Yield (probabilities, label codes) in cache-sized chunks, known to be valid."""
        return self.map(lambda probs, codes: (probs, codes))

    def map(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Yield `function(probabilities, label codes)` of every chunk, in order; it may run in several threads."""
        _ = self.summary
        return self._watched(self.map_valid(function), lambda _: self.rows_of_chunk)

    def map_valid(self, function: Callable[[NDArray[Any], Codes], Result]) -> Iterator[Result]:
        """Do the same as `map` for rows that are known to be valid."""
        chunks = aligned(self.blocks, self.rows_of_chunk)
        return ordered_map(lambda chunk: function(*self._join(chunk)), chunks, self.n_jobs)

    def count(self, pairs_of: PairsOf) -> NDArray[np.int64]:
        """Return counts (n_classes, n_classes) of the pairs that `pairs_of` finds in every chunk; see `count_pairs`."""
        return count_pairs(self.map(pairs_of), self.n_classes)

    def take(self, indices: NDArray[np.intp]) -> Chunk:
        """Return the probabilities and label codes of the rows of these numbers, in their order."""
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        probs, codes = np.empty((len(wanted), self.n_classes), self.dtype), np.empty(len(wanted), np.intp)
        for block, limits in zip(self.blocks, pairwise(block_starts(self.blocks)), strict=True):
            low, high = np.searchsorted(wanted, limits)
            if low == high:
                continue  # not worth opening
            for piece in pieces([block], start=limits[0]):
                low, high = np.searchsorted(wanted, [piece.start, piece.start + len(piece.noisy_labels)])
                if low < high:
                    places = wanted[low:high] - piece.start
                    probs[order[low:high]] = piece.pred_probs[places]
                    codes[order[low:high]] = self.coder.encode(piece.noisy_labels[places])
        return probs, codes

    def _join(self, chunk: list[Piece]) -> Chunk:
        parts = [
            (as_rows(piece.pred_probs, self.dtype), self.coder.encode(piece.noisy_labels, piece.start))
            for piece in chunk
        ]
        if len(parts) == 1:
            return parts[0]
        probs, codes = zip(*parts, strict=True)
        return np.concatenate(probs), np.concatenate(codes)

    def _watched(self, results: Iterator[Result], n_rows: Callable[[Result], int]) -> Iterator[Result]:
        """Yield the results of a pass, telling how far it has come."""
        done = 0
        for result in results:
            yield result
            done = min(done + n_rows(result), self.n_samples)
            if self.on_progress is not None:
                self.on_progress(done, self.n_samples)
