"""The entry: whatever looks like probabilities and labels becomes a posterior, checked and aligned once."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualt.errors import LabelsError
from dualt.labels import LabelCoder, as_label_array, is_missing
from dualt.rows.dask import DaskPosterior, is_dask, open_collections
from dualt.rows.posterior import ArrayBlock, NoisyPosterior, Progress
from dualt.validation import (
    ClassNames,
    align_labels,
    as_probability_table,
    check_n_classes,
    check_n_jobs,
    check_same_length,
    scale_with_warning,
)


def as_posterior(
    pred_probs: Any,
    noisy_labels: Any,
    class_names: ClassNames | None = None,
    *,
    coder: LabelCoder | None = None,
    n_jobs: int | None = 1,
    on_progress: Progress | None = None,
    out_of_fold: bool | None = None,
) -> NoisyPosterior:
    """Return the posterior of anything that looks like probabilities and labels, without copying arrays.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Array, memory map, list, data frame, or one of Dask's collections, which stays where it is.
    noisy_labels : (n_samples,) or one-hot (n_samples, n_classes)
        A series is brought into the order of the index that a data frame of probabilities has. Rows whose label is
        missing (None, NaN, the empty text) are left out; `NoisyPosterior.labelled` has the positions of the others.
    class_names
        In the order of the columns; by default those of a data frame's columns, else those of the labels.
    coder
        Reads the labels, where it is known how; `class_names` are then its own.
    n_jobs
        How many threads read the rows; None means 1, and −1 as many as there are cores.
    on_progress
        Called with how many rows of how many a pass has read.
    out_of_fold
        Whether the classifier had not seen the rows whose probabilities these are, if that is known; by default what
        the probabilities themselves say, as those of `dualt.cross_fit` do.
    """
    n_jobs = check_n_jobs(n_jobs)
    # Compared, because of a data frame it may be a column of that name.
    if out_of_fold is None and getattr(pred_probs, "out_of_fold", None) is True:
        out_of_fold = True
    if is_dask(pred_probs):
        blocks, coder = open_collections(pred_probs, noisy_labels, class_names, coder)
        return DaskPosterior(blocks, coder, n_jobs, on_progress, out_of_fold)
    table, columns = as_probability_table(pred_probs)
    table = scale_with_warning(table, stacklevel=3)
    check_n_classes(table.shape[1])
    labels = as_label_array(align_labels(pred_probs, noisy_labels), missing=True)
    check_same_length(len(table), len(labels))
    missing = np.flatnonzero(is_missing(labels))
    if len(missing) == len(labels):
        raise LabelsError(f"Expected at least one label, got {len(labels):,} rows without.")
    if coder is None:
        known = np.delete(labels, missing) if len(missing) else labels
        coder = LabelCoder.for_labels(known, table.shape[1], columns if class_names is None else class_names)
    elif coder.n_classes != table.shape[1]:
        raise LabelsError(f"Expected labels of {table.shape[1]} classes, one per column, got {coder.n_classes}.")
    return NoisyPosterior(
        (ArrayBlock(table, labels, missing=missing.tolist()),), coder, n_jobs, on_progress, out_of_fold
    )
