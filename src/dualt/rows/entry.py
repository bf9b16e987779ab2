"""`as_posterior`: probabilities and labels of any kind, checked and aligned once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError
from dualt.labels import LabelCoder, as_label_array, is_missing
from dualt.rows.dask import DaskPosterior, is_dask, open_collections
from dualt.rows.posterior import Block, NoisyPosterior, Progress, in_block
from dualt.validation import (
    ClassNames,
    align_labels,
    as_probability_table,
    check_answer,
    check_n_jobs,
    check_probability_chunk,
    check_same_length,
    index_of,
)

# The page's script holds numbers as floats, which distinguish whole numbers up to here.
_LARGEST = 2**53
# Two models that differ by less than this share of what they leave open are copies. Two strengths of one logistic
# regression are at 0.005, two seeds of a forest at 0.14. Of 713 pairs of models in 126 problems 706 are at
# 0.11 or more; the other seven, a linear and a kernel model of an easy table, are at 0.016 or more.
_COPY = 0.01


def as_posterior(
    pred_probs: Any,
    noisy_labels: Any,
    class_names: ClassNames | None = None,
    *,
    n_jobs: int | None = 1,
    on_progress: Progress | None = None,
    out_of_fold: bool | None = None,
    determined: bool | None = None,
) -> NoisyPosterior:
    """Return the posterior of anything that looks like probabilities and labels, without copying arrays.

    `pred_probs` is (n_samples, n_classes): an array, memory map, list, data frame or Dask collection; for several
    models a list of arrays, an array (n_models, n_samples, n_classes), or what `dualt.cross_fit` returns.
    `noisy_labels` is (n_samples,) or one-hot; a series is brought into the order of a data frame's index, and rows
    without a label (None, NaN, the empty text) are left out. `class_names` are in the order of the columns, by default
    those of a data frame, else those of the labels.

    `on_progress` is called with how many rows of how many a pass has read. `out_of_fold`, whether the classifier had
    not seen the rows, and `determined`, whether an expert could always tell the class from the example, are by default
    what the probabilities of `dualt.cross_fit` say.
    """
    n_jobs, determined = check_n_jobs(n_jobs), check_answer(determined, "determined")
    out_of_fold = check_answer(out_of_fold, "out_of_fold")
    # A data frame may have a column of that name.
    if out_of_fold is None and getattr(pred_probs, "out_of_fold", None) is True:
        out_of_fold = True
    if determined is None and isinstance(getattr(pred_probs, "determined", None), bool):
        determined = pred_probs.determined
    if is_dask(pred_probs):
        blocks, coder = open_collections(pred_probs, noisy_labels, class_names)
        return DaskPosterior(blocks, coder, n_jobs, on_progress, out_of_fold, determined=determined)
    members, pred_probs, mean = split_members(pred_probs)
    table, columns = as_probability_table(pred_probs)
    table = table if mean is None else mean
    labels = as_label_array(align_labels(pred_probs, noisy_labels), missing=True)
    check_same_length(len(table), len(labels))
    missing = np.flatnonzero(is_missing(labels))
    if len(missing) == len(labels):
        raise LabelsError(f"Expected at least one label, got {len(labels):,} rows without.")
    known = np.delete(labels, missing) if len(missing) else labels
    coder = LabelCoder.for_labels(known, table.shape[1], columns if class_names is None else class_names)
    if members is not None and len(missing):
        members = np.delete(members, missing, axis=1)
    blocks = (Block.of_arrays(table, labels, missing=missing.tolist()),)
    return NoisyPosterior(blocks, coder, n_jobs, on_progress, out_of_fold, members=members, determined=determined)


def split_members(pred_probs: Any) -> tuple[NDArray[Any] | None, Any, NDArray[Any] | None]:
    """Return the probabilities of several models, None if there is one; those of the first; and the mean of several."""
    members = getattr(pred_probs, "members", None)
    if isinstance(members, np.ndarray) and members.ndim == 3:  # of `cross_fit`, which has the mean itself
        return members if len(members) > 1 else None, pred_probs, None
    if _n_axes(pred_probs) != 3 or not len(pred_probs):
        return None, pred_probs, None
    stacked, first = _stacked(pred_probs), pred_probs[0]
    if len(stacked) == 1:
        return None, first, None
    index = index_of(first)
    if index is not None and not all(index.equals(index_of(given)) for given in pred_probs):
        raise InputError("Expected the rows of all models in one order, got data frames with different indices.")
    return stacked, first, stacked.mean(axis=0)


def _n_axes(given: Any) -> int:
    """Return the number of axes of an array, a data frame, or a list of either, of lists or of numbers."""
    if isinstance(given, (list, tuple)) and given:
        return 1 + _n_axes(given[0])
    return len(getattr(given, "shape", ()))


def _stacked(given: Any) -> NDArray[np.float32]:
    """Return the probabilities of several models as one array, checked to be of the same rows and classes."""
    tables: list[NDArray[Any]] = []
    names: Any = None
    for number, probs in enumerate(given, start=1):
        which = f"model {number} of {len(given)}"
        try:
            table, columns = as_probability_table(probs)
            with np.errstate(over="ignore"):  # what is too large for a float is refused as infinite
                table = np.asarray(table, np.float32 if table.dtype == np.float32 else np.float64)
            check_probability_chunk(table, 0)
        except InputError as error:
            raise in_block(error, which) from None
        if tables and table.shape != tables[0].shape:
            raise InputError(
                "Expected several models' probabilities of the same rows and classes, got shape"
                f" {tables[0].shape} and, from {which}, {table.shape}."
            )
        names = columns if names is None else names
        if columns is not None and list(columns) != list(names):
            raise InputError(f"Expected the classes of all models in one order, got others from {which}.")
        same = next((other for other, known in enumerate(tables, start=1) if _are_copies(known, table)), None)
        if same is not None:
            raise InputError(
                f"Expected models that differ, got nearly the same probabilities from models {same} and {number} of"
                f" {len(given)}. Leave one out, or use another kind of model: errors that both share would look like"
                " wrong labels."
            )
        tables.append(table)
    return np.stack(tables).astype(np.float32, copy=False)


def _are_copies(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two models differ by less than a small share of what they leave open (1 − largest probability)."""
    apart, left_open = np.abs(one - other).sum(axis=1).mean() / 2, 1 - one.max(axis=1).mean()
    return bool(apart <= _COPY * left_open)


def row_numbers(index: Any) -> NDArray[np.int64] | None:
    """Return the row numbers that an index has kept of the table the rows were taken from; None if it has none.

    pandas numbers the rows of a table, and an index without a name keeps these numbers when rows are dropped or
    sorted. An index with a name is a column of the table: its values are ids.
    """
    if index is None or getattr(index, "name", None) is not None or index.dtype.kind not in "iu":
        return None
    if not len(index) or index.hasnans or not index.is_unique or index.min() < 0 or index.max() >= _LARGEST:
        return None
    return np.asarray(index.to_numpy(), dtype=np.int64)


def row_ids(index: Any) -> list[str] | None:
    """Return the names that an index has for the rows, where it is not one of row numbers."""
    return None if index is None or row_numbers(index) is not None else list(map(str, index))


def positions(numbers: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each of the `wanted` row numbers is among `numbers`, which differ; −1 if it is not."""
    from pandas import Index

    return np.asarray(Index(numbers).get_indexer(Index(wanted)))
