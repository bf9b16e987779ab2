"""The labels that a scikit-learn classifier is fitted to, as classes and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from dualt.errors import InputError, LabelsError
from dualt.label_arrays import is_missing_value
from dualt.validation import as_array


def encode_labels(y: Any, classifier: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes, two at least, and the class number of every label; none may be missing.

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
            f" argmax; for examples of several classes at once (multi-label) fit one {classifier} per class."
        )
    _refuse_missing(y)
    try:
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:  # of mixed or continuous labels, in scikit-learn's words
        raise LabelsError(f"Expected labels that are classes: {str(error).rstrip('.')}.") from error
    if len(classes) < 2:
        raise InputError(f"Expected labels of at least two classes, got one class: {classes.tolist()[0]!r}.")
    return classes, numbers.astype(np.intp)


def _refuse_missing(y: NDArray[Any]) -> None:
    if y.dtype.kind in "fO":
        row = next((row for row, label in enumerate(y.tolist()) if is_missing_value(label)), None)
        if row is not None:
            raise LabelsError(f"Expected a label for every example, got {y[row]} at row {row}. Drop that row.")
    if y.dtype.kind == "f" and np.isinf(y).any():  # of which scikit-learn's check only warns
        row = int(np.isinf(y).argmax())
        raise LabelsError(f"Expected labels that are classes, got {y[row]} at row {row}. Drop that row.")
