"""Rows without a label, which have nothing to be judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError
from dualt.label_arrays import is_missing
from dualt.validation import align_labels, as_array, check_same_length


def with_labels(pred_probs: Any, noisy_labels: Any, verified: Any = None) -> tuple[Any, Any, NDArray[np.intp] | None]:
    """Return the probabilities and labels of the rows that have one, and their numbers; None if all have.

    Only what `dualt.cross_fit` returns says that rows may have none; elsewhere a missing label is left to be refused.
    Where some rows are `verified`, which are told by their numbers, none may be left out.
    """
    if not isinstance(getattr(pred_probs, "labelled", None), np.ndarray):
        return pred_probs, noisy_labels, None
    labels = as_array(align_labels(pred_probs, noisy_labels), "labels as numbers or strings", LabelsError)
    check_same_length(len(pred_probs), len(labels))
    rows = np.flatnonzero(~is_missing(labels))
    if len(rows) in (0, len(labels)):
        return pred_probs, noisy_labels, None
    if verified is not None:
        raise InputError(
            "Expected a label for every row where some are verified, got rows without. Pass probs[probs.labelled],"
            " the labels of these rows, and row numbers among them."
        )
    return pred_probs[rows], labels[rows], rows
