"""What a worker does with blocks: plain functions that can be sent there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes, LabelCoder
from dualt.rows.blocks import ArrayBlock, Block, Rows, block_starts, pieces, summarize_piece
from dualt.rows.counts import count_pairs
from dualt.rows.posterior import Chunk, NoisyPosterior, PairsOf, Result
from dualt.rows.summary import PosteriorSummary, merge_all


@dataclass(frozen=True)
class Span:
    """The rows `low` … `high − 1` of a block, without copying them."""

    block: Block
    low: int
    high: int

    @property
    def name(self) -> str:
        """What to call it in an error."""
        return self.block.name

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of classes."""
        return self.high - self.low, self.block.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the probabilities as they are stored."""
        return self.block.dtype

    def read(self) -> Iterator[Rows]:
        """Yield the rows, and read none that follow."""
        start = 0
        for probs, labels in self.block.read():
            part = slice(max(self.low - start, 0), max(self.high - start, 0))
            if len(labels[part]):
                yield probs[part], labels[part]
            start += len(labels)
            if start >= self.high:
                return

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone."""
        for _, labels in self.read():
            yield labels


@dataclass(frozen=True)
class Run:
    """Consecutive blocks as one: a worker's task costs as much as reading some million numbers."""

    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        """What to call it in an error."""
        return f"{self.blocks[0].name} to {self.blocks[-1].name}"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of classes."""
        return sum(block.shape[0] for block in self.blocks), self.blocks[0].shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the probabilities as they are stored."""
        return self.blocks[0].dtype

    def read(self) -> Iterator[Rows]:
        """Yield the rows of one block after the other."""
        for block in self.blocks:
            yield from block.read()

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone."""
        for block in self.blocks:
            yield from block.read_labels()


def runs_of(blocks: Sequence[Block], entries: int) -> list[Block]:
    """Join neighbours to runs of about the same size, of `entries` probabilities or somewhat more."""
    starts = block_starts(blocks)
    n_runs = max(starts[-1] * blocks[0].shape[1] // entries, 1)
    run_of_middle = [(low + high) * n_runs // (2 * starts[-1]) for low, high in pairwise(starts)]
    runs = [tuple(blocks[i] for i in own) for _, own in groupby(range(len(blocks)), run_of_middle.__getitem__)]
    return [run[0] if len(run) == 1 else Run(run) for run in runs]


def summarize_block(block: Block, coder: LabelCoder, *, start: int = 0, ceiling: int | None = None) -> PosteriorSummary:
    """Return the summary of a block, or of a run of them, whose first row is number `start`."""
    blocks = block.blocks if isinstance(block, Run) else (block,)
    return merge_all(summarize_piece(piece, coder, ceiling=ceiling) for piece in pieces(blocks, start=start))


def copy_rows(block: Block, low: int, high: int) -> ArrayBlock:
    """Return a few rows of a block as one that can travel."""
    probs, labels = zip(*Span(block, low, high).read(), strict=True)
    return ArrayBlock(np.concatenate(probs), np.concatenate(labels), block.name)


def map_rows(
    function: Callable[[NDArray[Any], Codes], Result],
    coder: LabelCoder,
    block: Block,
    low: int,
    high: int,
    rest: Sequence[Block],
) -> list[Result]:
    """Return `function` of every chunk of the rows from `low` to `high` of a block and the `rest` that follows."""
    return list(NoisyPosterior((Span(block, low, high), *rest), coder).map_valid(function))


def count_rows(
    pairs_of: PairsOf, coder: LabelCoder, block: Block, low: int, high: int, rest: Sequence[Block]
) -> NDArray[np.int64]:
    """Return the counts of the pairs that `pairs_of` finds in the same chunks."""
    posterior = NoisyPosterior((Span(block, low, high), *rest), coder)
    return count_pairs(posterior.map_valid(pairs_of), coder.n_classes)


def take_rows(block: Block, coder: LabelCoder, indices: NDArray[np.intp]) -> Chunk:
    """Return single rows of a block."""
    return NoisyPosterior((block,), coder).take(indices)
