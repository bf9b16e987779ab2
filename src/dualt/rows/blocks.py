"""Blocks: consecutive rows of the data, in memory or in files, that are opened when they are read.

A posterior stands on a sequence of blocks. Rows are numbered through all of them, so that where the data were cut
into blocks changes no result: `PosteriorSummary.merge` is exact, and later passes read chunks whose limits
do not depend on the blocks'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.labels import LabelCoder
from dualt.rows.floats import working_dtype
from dualt.rows.summary import PosteriorSummary, summarize

Rows: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
# A summary is made of at most this many probabilities at a time, so that the rows it goes back for are still in
# memory; dividing a block among threads does not pay below the lower number.
_PIECE_ENTRIES, _LEAST_ENTRIES = 1 << 27, 1 << 22


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
        """Number of rows and of classes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the probabilities as they are stored."""

    def read(self) -> Iterator[Rows]:
        """Yield (probabilities, labels) from the first row to the last, as many at a time as fit memory.

        Arrays or memory maps, the labels as `as_label_array` returns them. All at once if they need no memory.
        """

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels alone."""


@dataclass(frozen=True)
class ArrayBlock:
    """A block of two arrays or memory maps, known to be of one length."""

    pred_probs: NDArray[Any]
    noisy_labels: NDArray[Any]
    name: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of classes."""
        n_samples, n_classes = self.pred_probs.shape
        return n_samples, n_classes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the probabilities."""
        return self.pred_probs.dtype

    def read(self) -> Iterator[Rows]:
        """Yield both arrays."""
        yield self.pred_probs, self.noisy_labels

    def read_labels(self) -> Iterator[NDArray[Any]]:
        """Yield the labels."""
        yield self.noisy_labels


class Piece(NamedTuple):
    """Rows that are summarised or read together; `start` is the number of the first, `block` where they come from."""

    pred_probs: NDArray[Any]
    noisy_labels: NDArray[Any]
    start: int
    block: str
    block_start: int


def block_starts(blocks: Sequence[Block]) -> list[int]:
    """Return the row number at which each block starts, and the number of all rows."""
    return list(accumulate((block.shape[0] for block in blocks), initial=0))


def pieces(blocks: Iterable[Block], *, start: int = 0, n_jobs: int = 1) -> Iterator[Piece]:
    """Cut what the blocks yield into pieces to summarise: few large ones, yet enough for all threads."""
    for block in blocks:
        block_start = start
        for probs, labels in block.read():
            n_pieces = max(-(-probs.size // _PIECE_ENTRIES), min(n_jobs, probs.size // _LEAST_ENTRIES), 1)
            limits = np.linspace(0, len(probs), n_pieces + 1).astype(int).tolist()
            for low, high in pairwise(limits):
                yield Piece(probs[low:high], labels[low:high], start + low, block.name, block_start)
            start += len(probs)
            del probs, labels  # before the block makes the next


def summarize_piece(
    piece: Piece, coder: LabelCoder, *, ceiling: int | None = None, after: PosteriorSummary | None = None
) -> PosteriorSummary:
    """Return the summary of one piece; what is wrong with its rows is told with the name of their block."""
    try:
        return summarize(*piece[:2], coder, start=piece.start, ceiling=ceiling, after=after)
    except InputError as error:
        raise in_block(error, piece.block, piece.block_start) from None


def in_block(error: InputError, block: str, start: int = 0) -> InputError:
    """Return the same error with the name of the block, whose first row has the number `start`."""
    counted = f" (Its first row counts as {start:,}.)" if start else ""
    return type(error)(f"In {block}: {error}{counted}") if block else error


def aligned(blocks: Iterable[Block], rows: int) -> Iterator[list[Piece]]:
    """Yield chunks of exactly `rows` rows, the last aside: each a list of pieces, more than one where blocks meet.

    The same chunks come out however the rows were cut into blocks. It matters: matrix products round
    a row differently in another company.
    """
    gathered: list[Piece] = []
    missing, start = rows, 0
    for block in blocks:
        block_start = start
        for probs, labels in block.read():
            low = 0
            while low < len(probs):
                high = min(low + missing, len(probs))
                gathered.append(Piece(probs[low:high], labels[low:high], start + low, block.name, block_start))
                missing -= high - low
                low = high
                if not missing:
                    yield gathered
                    gathered, missing = [], rows
            if gathered:  # a few rows must not keep all the others in memory
                gathered[-1] = gathered[-1]._replace(pred_probs=gathered[-1].pred_probs.copy())
            start += len(probs)
            del probs, labels  # before the block makes the next
    if gathered:
        yield gathered


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse no blocks, and blocks that do not have the same classes and the same precision."""
    if not blocks:
        raise InputError("Expected at least one block of rows, got none.")
    first = blocks[0]
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


def coder_for(blocks: Sequence[Block], class_names: Sequence[Any] | None = None) -> LabelCoder:
    """Return the coder of the labels of all blocks; without names, textual classes are those that occur in any."""
    kinds = [next(block.read_labels())[:1].copy() for block in blocks]
    textual = [labels for labels in kinds if labels.dtype.kind not in "biuf"]
    example = (textual or kinds)[0]
    if textual and class_names is None:
        found = {str(name) for block in blocks for labels in block.read_labels() for name in np.unique(labels)}
        example = np.array(sorted(found))
    return LabelCoder.for_labels(example, blocks[0].shape[1], class_names)
