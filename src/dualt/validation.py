"""Checks of arguments: probabilities, matrices, names and numbers. Labels and files have checks of their own.

Large arrays are checked one chunk at a time, in the pass that uses the numbers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError, LabelsError, ProbabilitiesError, TransitionError

# In the order of the columns: a list, `classifier.classes_`, the columns of a data frame.
ClassNames: TypeAlias = Iterable[Any]

# Rows may miss one by this much: float16 rounding, or probabilities printed with two or three decimals. It has five
# decimals, so that no sum of numbers with up to four lies on it, where float32 and float64 might differ.
ROW_SUM_TOLERANCE = 0.01255
_TRANSITION_TOLERANCE = 1e-3
# A matrix of this many classes takes 0.8 GB; an estimate holds several.
_MOST_CLASSES = 10_000
_TABLE = "probabilities of shape (n_samples, n_classes)"
_BOTH_COLUMNS = " For two classes pass both columns: np.column_stack([1 - p, p])."
_ONE_CLASS_EACH = (
    " If these are the labels: they come second. If they are predictions: pass probabilities (predict_proba); with hard"
    " predictions, as one-hot rows, only the estimator spade is defined."
)


def is_frame(obj: Any) -> bool:
    """Return whether `obj` is a data frame (pandas, polars...), without importing any of them."""
    return hasattr(obj, "columns") and hasattr(obj, "to_numpy")


def index_of(obj: Any) -> Any:
    """Return the index of a data frame or series of pandas or Dask, or of what was made of one; None without one."""
    index: Any = getattr(obj, "index", None)
    index = index.compute() if hasattr(type(index), "compute") else index
    return index if hasattr(index, "equals") else None


def align_labels(pred_probs: Any, noisy_labels: Any, called: str = "labels") -> Any:
    """Return labels in the order of the probabilities where both have an index; refuse those of other rows."""
    rows, own = index_of(pred_probs), index_of(noisy_labels)
    if rows is None or own is None or len(rows) != len(own) or rows.equals(own):
        return noisy_labels
    if rows.nlevels == own.nlevels and rows.is_unique and own.is_unique and own.isin(rows).all():
        return noisy_labels.loc[rows]
    raise InputError(
        f"Expected {called} with the index of the probabilities, or of the data, got another index: they may belong to"
        f" other rows. Pass {called}.loc[...] with that index, or {called}.to_numpy() if they are in the same order."
    )


def as_array(values: Any, expected: str, error: type[InputError], dtype: Any = None) -> NDArray[Any]:
    """Return anything array-like as a plain array, without copying arrays; a masked entry is refused."""
    try:
        given = _readable(values)
        array = np.asarray(given, dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as cause:
        raise error(f"Expected {expected}: {str(cause).rstrip('.')}.") from None
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):  # pandas' own arrays have a mask too
        row = int(np.argwhere(np.ma.getmaskarray(given))[0, 0])
        raise error(f"Expected {expected}, got a masked entry at row {row}. Drop that row.")
    return array


def _readable(values: Any) -> Any:
    """Return `values` as something that NumPy reads at once: tensors on the CPU, columns of data sets as lists."""
    if hasattr(values, "detach"):  # torch, without importing it; NumPy has no bfloat16
        values = values.detach().cpu()
        return values.float() if str(values.dtype) == "torch.bfloat16" else values
    if hasattr(values, "__array__") or isinstance(values, (list, tuple)):
        return values
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    if hasattr(values, "column_names"):  # a Hugging Face data set
        return np.column_stack([values[name][:] for name in values.column_names])
    # A column of a Hugging Face data set reads its file once as a slice, and once for every single entry.
    return values[:] if isinstance(values, Sequence) else values


def as_probability_table(pred_probs: Any) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return `pred_probs` as a 2-D array, and class names if its columns carry them.

    Arrays are not copied, unless they were rounded to two decimals; see `scale_rounded`.
    """
    columns = pred_probs.columns if is_frame(pred_probs) else getattr(pred_probs, "column_names", None)
    names = None if columns is None else names_of_columns(columns)
    if is_frame(pred_probs):
        pred_probs = pred_probs.to_numpy()
        if pred_probs.dtype.kind == "O":  # pandas' nullable columns
            with suppress(TypeError, ValueError):
                pred_probs = pred_probs.astype(np.float64)
    table = as_array(pred_probs, _TABLE, ProbabilitiesError)
    if table.shape == () and table.dtype.kind == "O":
        hint = " Pass its toarray()." if hasattr(pred_probs, "toarray") else ""
        got = type(pred_probs).__name__ + "." + hint
        raise ProbabilitiesError(f"Expected numeric {_TABLE}, as an array, a list or a data frame, got {got}")
    check_probability_shape(table)
    return scale_rounded(table), names


def names_of_columns(columns: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the class names that columns carry; None if they are only numbered."""
    return None if list(columns) == list(range(len(columns))) else tuple(map(class_name, columns))


def check_probability_shape(table: NDArray[Any]) -> None:
    """Refuse anything but a non-empty numeric table of at least two columns."""
    if table.dtype.kind not in "fiub":
        hint = _ONE_CLASS_EACH if table.ndim == 1 else " Pass only the columns of probabilities, as floats."
        raise ProbabilitiesError(f"Expected numeric probabilities, got an array of dtype {table.dtype}.{hint}")
    if table.ndim != 2:
        whole = table.ndim == 1 and table.size > 0 and bool((table == np.rint(table)).all())
        hint = _ONE_CLASS_EACH if whole else _BOTH_COLUMNS * (table.ndim == 1)
        raise ProbabilitiesError(f"Expected {_TABLE}, got shape {table.shape}.{hint}")
    if table.shape[0] == 0:  # a Dask array of unknown length has no len
        raise ProbabilitiesError("Expected at least one row of probabilities, got none.")
    if table.shape[1] < 2:
        raise ProbabilitiesError(f"Expected at least two classes (columns), got {table.shape[1]}.{_BOTH_COLUMNS}")
    check_n_classes(table.shape[1])


def check_same_length(n_probabilities: int, n_labels: int) -> None:
    """Refuse probabilities and labels of different length."""
    if n_probabilities != n_labels:
        raise InputError(f"Expected one label per row, got {n_probabilities:,} rows and {n_labels:,} labels.")


def check_features(features: Any, n_rows: int) -> NDArray[Any]:
    """Return features as a finite numeric table, flattened to (n_rows, n_features)."""
    expected = "numeric features of shape (n_samples, ...)"
    array = as_array(features, expected, InputError)
    if array.dtype.kind not in "fiub" or array.ndim < 2 or not array.size:
        raise InputError(f"Expected {expected}, got shape {array.shape} of dtype {array.dtype}.")
    if len(array) != n_rows:
        raise InputError(f"Expected one row of features per label, got {len(array):,} rows and {n_rows:,} labels.")
    table = array.reshape(n_rows, -1)
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise InputError(f"Expected finite features, got {table[row, column]} at row {row}, column {column}.")
    return table


def check_probability_chunk(chunk: NDArray[Any], start: int) -> None:
    """Refuse rows that are not probabilities; `start` is the row number of the chunk's first row.

    NaN fails every comparison and infinity spoils the row's sum, so two fast reductions find everything.
    """
    # Sums that overflow or meet infinities are refused by their value, not by a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        sums = chunk @ np.ones(chunk.shape[1], chunk.dtype)
        if chunk.min() >= 0 and sums.min() >= 1 - ROW_SUM_TOLERANCE and sums.max() <= 1 + ROW_SUM_TOLERANCE:
            return
        raise ProbabilitiesError(_describe_bad_row(chunk, start))


def _describe_bad_row(chunk: NDArray[Any], start: int) -> str:
    """Return what is wrong with the first bad row of a chunk, whose first row is number `start`, and what to do."""
    infinite, negative = ~np.isfinite(chunk), chunk < 0
    if infinite.any() or negative.any():
        row, column = np.argwhere(infinite if infinite.any() else negative)[0]
        expected = "finite probabilities" if infinite.any() else "probabilities in [0, 1]"
        hint = "Drop or recompute that row."
        if (chunk <= 0).all():
            hint = "These look like log-probabilities: pass np.exp(...)."
        elif not infinite.any() and negative.any(axis=1).mean() >= 0.5:
            hint = "These look like logits: pass their softmax."
        return f"Expected {expected}, got {chunk[row, column]:.6g} at row {start + row}, column {column}. {hint}"
    # A sum near the tolerance may exceed it in float32 only: then take the worst row.
    sums = chunk.sum(axis=1, dtype=np.float64)
    over = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    row = int(np.argmax(over if over.any() else np.abs(sums - 1)))
    hint = "Divide each row by its sum, or pass the softmax of logits."
    if abs(sums[row] - 100) < 1:
        hint = "These look like percentages: divide by 100."
    return f"Expected rows that sum to 1, got {sums[row]:.6g} at row {start + row}. {hint}"


def scale_rounded(table: NDArray[Any]) -> NDArray[Any]:
    """Return probabilities that were rounded to two decimals with rows that sum to one again; others as they are.

    Rounded means: all have at most two decimals, and rows miss one by no more than rounding explains, some by 0.01.
    """
    if not len(table) or table.dtype.kind != "f" or not _has_two_decimals(table[:16]):
        return table
    with np.errstate(invalid="ignore", over="ignore"):
        sums = table.sum(axis=1, dtype=np.float64)
        excess = np.abs(sums - 1).max()
    if not 0.005 < excess < most_by_rounding(table.shape[1]) + 0.005 or not _has_two_decimals(table):
        return table
    return np.asarray(table / sums[:, None], dtype=table.dtype)


def _has_two_decimals(table: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        hundredths = np.asarray(table, np.float64) * 100
        return bool((np.abs(hundredths - np.rint(hundredths)) < 1e-4).all())


def most_by_rounding(n_classes: int) -> float:
    """Return by how much the sum of a row may miss one through rounding: half of 0.01 per class, from 0.05 to 0.5."""
    return min(max(0.05, 0.005 * n_classes), 0.5)


def check_transition(transition: Any, n_classes: int | None = None) -> NDArray[np.float64]:
    """Return `transition` as float64 with rows that sum to one exactly, or say what is wrong with it.

    The rows of a data frame come in the order of its columns, if both have the same names.
    """
    rows = index_of(transition) if is_frame(transition) else None
    if rows is not None and rows.is_unique and {*rows} == {*transition.columns}:
        transition = transition.loc[[*transition.columns]]
    matrix = as_array(transition, "a numeric transition matrix", TransitionError, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise TransitionError(f"Expected a square transition matrix of at least 2×2, got shape {matrix.shape}.")
    if n_classes is not None and len(matrix) != n_classes:
        raise TransitionError(
            f"Expected a {n_classes}×{n_classes} transition matrix, got {len(matrix)}×{len(matrix)}:"
            " the matrix and the data do not have the same classes."
        )
    unusable = ~np.isfinite(matrix) | (matrix < 0)
    if unusable.any():
        row, column = np.argwhere(unusable)[0]
        raise TransitionError(f"Expected finite probabilities, got {matrix[row, column]:.6g} at [{row}, {column}].")
    sums = matrix.sum(axis=1)
    wrong = np.abs(sums - 1) > _TRANSITION_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        columns_do = (np.abs(matrix.sum(axis=0) - 1) <= _TRANSITION_TOLERANCE).all()
        hint = " Its columns do: pass the transpose." if columns_do else ""
        got = f"{sums[row]:.6g} in row {row}"
        raise TransitionError(f"Expected rows that sum to 1 (transition[i, j] = P(given j | true i)), got {got}.{hint}")
    return np.asarray(matrix / sums[:, None])


def class_name(name: Any) -> str:
    """Return a class name as text; a whole float, which pandas makes of a number beside missing ones, as the number."""
    whole = isinstance(name, (float, np.floating)) and name.is_integer()
    return str(int(name) if whole else name)


def check_class_names(class_names: ClassNames, n_classes: int | None = None) -> tuple[str, ...]:
    """Return class names as strings: one per class, if their number is known, and none twice."""
    if isinstance(class_names, (Mapping, set, frozenset)) or not isinstance(class_names, Iterable):
        got = type(class_names).__name__
        raise LabelsError(f"Expected class names as a list in the order of the columns, got a {got}.")
    names = tuple(map(class_name, class_names))
    if n_classes is not None and len(names) != n_classes:
        raise LabelsError(f"Expected {n_classes} class names, one per column, got {len(names)}.")
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise LabelsError(f"Expected distinct class names, got {name!r} twice.")
    return names


def check_fraction(value: Any, name: str, *, inclusive: bool = False) -> float:
    """Return `value` if it is a number in (0, 1), or in [0, 1] if `inclusive`."""
    with suppress(TypeError, ValueError):
        if 0 < value < 1 or (inclusive and value in (0, 1)):
            return float(value)
    raise InputError(f"Expected {name} in {'[0, 1]' if inclusive else '(0, 1)'}, got {value!r}.")


def check_answer(value: Any, name: str) -> bool | None:
    """Return `value` if it is True, False or None, as Python's own: NumPy's would not be identical to them."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    raise InputError(f"Expected {name} True, False or None, got {value!r}.")


def check_count(value: Any, name: str, least: int) -> int:
    """Return `value` if it is a whole number of at least `least`."""
    with suppress(TypeError, ValueError, OverflowError):
        if int(value) == value and value >= least:
            return int(value)
    raise InputError(f"Expected {name}, a whole number of at least {least}, got {value!r}.")


def check_n_classes(n_classes: Any) -> int:
    """Return `n_classes` if it is a whole number of at least two, and a matrix of them fits memory."""
    count = check_count(n_classes, "n_classes", 2)
    if count > _MOST_CLASSES:
        raise InputError(
            f"Expected at most {_MOST_CLASSES:,} classes, got {count:,}: one transition matrix would take"
            f" {8 * count**2 / 1e9:.1f} GB. Merge rare classes, or estimate groups of classes one by one."
        )
    return count


def check_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads, at most one per core: None means 1, −1 all cores, −2 all but one."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InputError(f"Expected n_jobs, a whole number of at least 1 or −1 for all cores, got {n_jobs!r}.")
    cores = os.cpu_count() or 1
    return min(int(n_jobs), cores) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)


def check_indices(indices: Any, n_samples: int) -> NDArray[np.intp]:
    """Return row numbers: whole, within the data, none twice."""
    rows = np.asarray(indices)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(f"Expected row numbers as a list of integers, got dtype {rows.dtype}, shape {rows.shape}.")
    outside = rows[(rows < 0) | (rows >= n_samples)]
    if len(outside):
        raise InputError(f"Expected row numbers from 0 to {n_samples - 1}, got {outside[0]}.")
    if len(np.unique(rows)) != len(rows):
        raise InputError("Expected each row number once, got some twice.")
    return rows.astype(np.intp)
