"""Blocks: consecutive rows of the data, in memory or in files, that are opened when they are read.

A posterior stands on a sequence of blocks, whose rows are numbered through all of them. Where the data were cut into
blocks changes no count of the first pass; later passes read chunks that end where blocks end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.labels import LabelCoder
from dualt.rows.floats import working_dtype
from dualt.validation import ClassNames

Rows: TypeAlias = tuple[NDArray[Any], NDArray[Any]]


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
