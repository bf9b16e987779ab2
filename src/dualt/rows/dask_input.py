"""Dask's arrays and data frames as blocks of rows, without fetching them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.label_arrays import as_label_array
from dualt.labels import LabelCoder
from dualt.probabilities import scale_with_warning
from dualt.rows.blocks import ArrayBlock, check_blocks
from dualt.rows.dask import RemoteBlock, compute, delayed, is_dask
from dualt.validation import (
    ClassNames,
    as_probability_table,
    check_probability_shape,
    check_same_length,
    index_of,
    names_of_columns,
)


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
