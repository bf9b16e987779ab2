"""Folds, and one classifier fitted per fold: no example is judged by a model that was trained on its label."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import column_or_1d

from dualt.errors import InputError, LabelsError
from dualt.labels import is_missing
from dualt.validation import as_array

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]
# Called with what is being done, how much of it is done, and how much there is.
OnProgress: TypeAlias = Callable[[str, int, int], None]


def out_of_fold_probabilities(
    classifier: Any, features: Any, labels: NDArray[np.intp], *, cv: Any = 5, random_state: int | None = 0
) -> NDArray[np.float64]:
    """Return P(label | x) for every row, from clones of a scikit-learn classifier fitted on the other folds.

    Labels are class numbers from 0; a class that a fold's training rows lack gets probability 0 there. `features` are
    whatever the classifier takes, `cv` is a number of folds or a splitter, and `random_state` shuffles the folds.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> out_of_fold_probabilities(GaussianNB(), [[0], [1], [0], [1], [0], [1]], np.array([0, 1] * 3), cv=3).round(2)[:2]
    array([[1., 0.],
           [0., 1.]])
    """
    return fit_folds(check_classifier(classifier), features, labels, make_folds(labels, cv, None, random_state))


def check_classifier(classifier: Any) -> Any:
    """Return a classifier that can be asked for probabilities; refuse anything else."""
    last = classifier.steps[-1][1] if hasattr(classifier, "steps") else classifier
    # A stacking classifier with its default last step has probabilities once it is fitted.
    stacking = hasattr(type(last), "predict_proba") and getattr(last, "final_estimator", last) is None
    if not stacking and not hasattr(classifier, "predict_proba"):
        hint = "Wrap it in sklearn.calibration.CalibratedClassifierCV."
        raise InputError(f"Expected a classifier with predict_proba, got {type(classifier).__name__}. {hint}")
    return classifier


def fit_folds(
    classifier: Any,
    features: Any,
    labels: NDArray[np.intp],
    folds: Sequence[Fold],
    *,
    classes: NDArray[Any] | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
    weights: Mapping[str, NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    """Return the probabilities of each fold's test rows, from a clone fitted on its training rows.

    `labels` are class numbers; the classifier is fitted on the `classes` they stand for, which its options may name.
    `weights` of all rows go to the classifier's `fit` under their names.
    """
    known = np.arange(int(labels.max()) + 1) if classes is None else classes

    def predict(train: Rows, test: Rows) -> tuple[list[int], Any]:
        own = {name: values[train] for name, values in (weights or {}).items()}
        fitted = clone(classifier).fit(_safe_indexing(features, train), known[labels[train]], **own)
        return class_numbers(fitted, known), fitted.predict_proba(_safe_indexing(features, test))

    probs = np.zeros((len(labels), len(known)))
    fitted = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(predict)(*fold) for fold in folds)
    for done, ((_, test), (columns, found)) in enumerate(zip(folds, fitted, strict=True), start=1):
        probs[np.ix_(test, columns)] = found
        if on_progress is not None:
            on_progress("fitting", done, len(folds))
    return probs


def class_numbers(fitted: Any, classes: NDArray[Any]) -> list[int]:
    """Return the number of each class that a fitted classifier knows, in the order of its probabilities."""
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    return [numbers[label] for label in fitted.classes_.tolist()]


def group_numbers(groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return groups as numbers; a row without a group is a group by itself."""
    given = as_array(groups, "one group per row", InputError)
    if given.shape != (n_rows,):
        raise InputError(f"Expected one group per row, {n_rows:,}, got shape {given.shape}.")
    there = ~is_missing(given)
    numbers = np.arange(n_rows)
    numbers[there] = n_rows + np.unique(given[there].astype(str), return_inverse=True)[1]
    return numbers


def make_folds(
    labels: NDArray[np.intp],
    cv: Any = 5,
    groups: Any = None,
    random_state: int | None = 0,
    duplicates: NDArray[np.intp] | None = None,
) -> list[Fold]:
    """Return (training rows, test rows) of every fold; the classes are spread evenly over the folds.

    `duplicates` numbers rows so that copies share a number: they stay in one fold, unless a splitter or groups decide.
    """
    n_rows, requested = len(labels), cv
    firsts = copy_of = np.arange(n_rows)
    if isinstance(cv, (int, np.integer)):
        if cv < 2:
            raise InputError(f"Expected at least two folds, got cv={cv}.")
        n_splits = min(int(cv), n_rows)
        if groups is not None:
            n_groups = len(np.unique(groups))
            if n_groups < n_splits:
                remedy = f"Ask for {n_groups} folds." if n_groups > 1 else "One group cannot be divided."
                raise InputError(f"Expected at least as many groups as folds, {n_splits}, got {n_groups}. {remedy}")
            cv = StratifiedGroupKFold(n_splits, shuffle=True, random_state=random_state)
        else:
            if duplicates is not None:  # the first of its copies is put into a fold, the others follow
                firsts, copy_of = np.unique(duplicates, return_index=True, return_inverse=True)[1:]
            n_splits = max(2, min(n_splits, np.bincount(labels[firsts]).max()))
            cv = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer members than folds
            split = check_cv(cv, labels, classifier=True).split(firsts, labels[firsts], groups)
            # A splitter may return masks, or numbers that count from the end: make them row numbers.
            numbers = np.arange(len(firsts))
            folds = [(numbers[np.asarray(train)], numbers[np.asarray(test)]) for train, test in split if len(test)]
    except (IndexError, TypeError, ValueError) as error:  # such as groups that a splitter needs
        raise InputError(f"Cannot divide the rows by cv={requested!r:.40}: {str(error).rstrip('.')}.") from None
    _check_folds(folds, len(firsts), requested)
    if len(firsts) < n_rows:
        tested = [np.isin(copy_of, test) for _, test in folds]
        folds = [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tested]
    if any(len(np.unique(labels[train])) < 2 for train, _ in folds):
        raise InputError(
            "Expected labels of at least two classes to learn from outside every fold, got a fold that leaves one."
            " Are the groups, or the folds, the classes?"
        )
    return folds


def _check_folds(folds: Sequence[Fold], n_rows: int, cv: Any) -> None:
    """Refuse folds that train on a row they test, or that do not test every row once."""
    times = np.zeros(n_rows, np.intp)
    for number, (train, test) in enumerate(folds):
        times += np.bincount(test, minlength=n_rows)
        both = np.intersect1d(train, test)
        if len(both):
            raise InputError(
                f"Expected folds that do not train on the rows they test, got row {both[0]} in both parts of fold"
                f" {number}. Leave its test rows out of its training rows."
            )
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise InputError(
            f"Expected folds that test every row once, got row {row} in {times[row]} folds of cv={cv!r:.40}."
            " Use StratifiedKFold, KFold or GroupKFold."
        )


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
    infinite = np.isinf(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    refused = infinite if missing else infinite | unlabelled
    if refused.any():
        row = int(refused.argmax())
        raise LabelsError(f"Expected a label for every example, got {y[row]} at row {row}. Drop that row.")
    there = y[~unlabelled]
    try:
        if there.dtype.kind == "O" and unlabelled.any():  # what is left may be plain numbers or strings
            there = np.array(there.tolist())
        check_classification_targets(there)
        classes, numbers = np.unique(there, return_inverse=True)
    except (TypeError, ValueError) as error:  # mixed or continuous labels, in scikit-learn's words
        raise LabelsError(f"Expected labels that are classes: {str(error).rstrip('.')}.") from error
    if len(classes) < 2:
        raise InputError(f"Expected labels of at least two classes, got one class: {classes.tolist()}.")
    codes = np.full(len(y), -1, np.intp)
    codes[~unlabelled] = numbers
    return classes, codes
