"""The labels that a scikit-learn classifier is fitted on, as classes and class numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from dualt.errors import InputError, LabelsError
from dualt.labels import is_missing
from dualt.validation import as_array


def encode_labels(y: Any, classifier: str, *, missing: bool = False) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes, at least two, and the class number of every label.

    Where labels may be `missing` (None, NaN, an empty string), their class number is −1; else they are refused.
    `classifier` is the name of the class that is fitted, for errors.
    """
    if y is None:
        raise InputError(f"{classifier} requires y to be passed, but the target y is None.")
    y = as_array(y, "one label per example", LabelsError)
    if y.size == 0:
        raise InputError("Expected at least one example, got none (0 samples).")
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if y.ndim != 1:
        raise LabelsError(
            f"Expected one label per example, of shape (n_samples,), got {y.shape}. For one-hot rows pass their"
            f" argmax; for examples with several classes at once (multi-label) fit one {classifier} per class."
        )
    unlabelled = is_missing(y)
    infinite = np.isinf(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)  # scikit-learn only warns about these
    refused = infinite if missing else infinite | unlabelled
    if refused.any():
        row = int(refused.argmax())
        raise LabelsError(f"Expected a label for every example, got {y[row]} at row {row}. Drop that row.")
    there = y[~unlabelled]
    if not len(there):
        raise LabelsError("Expected at least one label, got none.")
    try:
        if there.dtype.kind == "O" and unlabelled.any():  # what is left may be plain numbers or strings
            there = np.array(there.tolist())
        check_classification_targets(there)
        classes, numbers = np.unique(there, return_inverse=True)
    except (TypeError, ValueError) as error:  # mixed or continuous labels, in scikit-learn's words
        raise LabelsError(f"Expected labels that are classes: {str(error).rstrip('.')}.") from error
    if len(classes) < 2:
        raise InputError(f"Expected labels of at least two classes, got one class: {classes.tolist()[0]!r}.")
    codes = np.full(len(y), -1, np.intp)
    codes[~unlabelled] = numbers
    return classes, codes
