"""Folds, and one classifier fitted per fold: no example is judged by a model that was trained on its label."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from dualt.errors import InputError
from dualt.labels import is_missing
from dualt.validation import as_array

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]
# Called with what is being done, how much of it is done, and how much there is.
OnProgress: TypeAlias = Callable[[str, int, int], None]


def out_of_fold_probabilities(
    classifier: Any,
    features: Any,
    labels: NDArray[np.intp],
    *,
    cv: Any = 5,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    weights: Mapping[str, NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    """Return P(label | x) for every row, from clones of `classifier` fitted on the other folds.

    Parameters
    ----------
    classifier
        Any scikit-learn classifier with `predict_proba`.
    features : (n_samples, ...)
        Whatever the classifier takes: array, sparse matrix, data frame, list of texts.
    labels : (n_samples,)
        Class numbers from 0. A class that a fold's training rows lack gets probability 0 there.
    cv
        Number of folds, or a scikit-learn splitter.
    groups : (n_samples,)
        Rows of one group stay in one fold.
    n_jobs
        How many folds are fitted at once, by joblib; -1 uses all cores.
    random_state
        Shuffles the folds.
    weights
        A weight of every row, under the name that the classifier's `fit` takes it by.
    """
    folds = make_folds(labels, cv, groups, random_state)
    return fit_folds(check_classifier(classifier), features, labels, folds, n_jobs=n_jobs, weights=weights)


def check_classifier(classifier: Any) -> Any:
    """Return a classifier that can be cloned, fitted and asked for probabilities; refuse anything else."""
    if isinstance(classifier, type):
        name = classifier.__name__
        raise InputError(f"Expected a classifier, got the class {name}. Pass an instance: {name}().")
    missing = [name for name in ("get_params", "fit", "predict_proba") if not hasattr(classifier, name)]
    if missing == ["predict_proba"] and _stacks(classifier):
        return classifier
    if missing == ["predict_proba"]:
        raise InputError(
            f"Expected a classifier with predict_proba, got {type(classifier).__name__}."
            " Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    if missing:
        got = f"{type(classifier).__name__}, which has no {' and no '.join(missing)}"
        raise InputError(f"Expected a scikit-learn classifier, got {got}.")
    return classifier


def _stacks(classifier: Any) -> bool:
    """Whether this is a stacking classifier with its default last step, which has probabilities once it is fitted."""
    last = classifier.steps[-1][1] if hasattr(classifier, "steps") else classifier
    return hasattr(type(last), "predict_proba") and getattr(last, "final_estimator", last) is None


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
    """
    classes = np.arange(int(labels.max()) + 1) if classes is None else classes
    probs = np.zeros((len(labels), len(classes)))
    fitted = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_predict_fold)(classifier, features, labels, classes, *fold, weights or {}) for fold in folds
    )
    for done, ((_, test), (columns, found)) in enumerate(zip(folds, fitted, strict=True), start=1):
        probs[np.ix_(test, columns)] = found
        if on_progress is not None:
            on_progress("fitting", done, len(folds))
    return probs


def _predict_fold(
    classifier: Any,
    features: Any,
    labels: NDArray[np.intp],
    classes: NDArray[Any],
    train: Rows,
    test: Rows,
    weights: Mapping[str, NDArray[np.float64]],
) -> tuple[list[int], Any]:
    """Return the class numbers that a clone fitted on `train` knows, and their probabilities on `test`."""
    own = {name: values[train] for name, values in weights.items()}
    fitted = clone(classifier).fit(_safe_indexing(features, train), classes[labels[train]], **own)
    return class_numbers(fitted, classes), fitted.predict_proba(_safe_indexing(features, test))


def class_numbers(fitted: Any, classes: NDArray[Any]) -> list[int]:
    """Return the number of each class that a fitted classifier knows, in the order of its probabilities."""
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    known = np.asarray(fitted.classes_).tolist()
    for label in known:
        if label not in numbers:
            raise InputError(
                f"Expected a classifier whose classes_ are the labels it was fitted on, got {label!r} from"
                f" {type(fitted).__name__}. Fit it on class numbers from 0 instead."
            )
    return [numbers[label] for label in known]


def group_numbers(groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return groups as numbers; a row without a group is a group of its own."""
    given = as_array(groups, "one group per row", InputError)
    if given.shape != (n_rows,):
        raise InputError(f"Expected one group per row, {n_rows:,}, got shape {given.shape}.")
    missing = is_missing(given)
    numbers = np.arange(n_rows)
    texts = given[~missing].astype(str)
    numbers[~missing] = n_rows + np.unique(texts, return_inverse=True)[1]
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
    folds = []
    for number, fold in enumerate(_split(labels, cv, groups, random_state, duplicates)):
        train, test = (_row_numbers(rows, len(labels), number) for rows in fold)
        both = np.intersect1d(train, test)
        if len(both):
            raise InputError(
                f"Expected folds that do not train on the rows they test, got row {both[0]} in both parts of fold"
                f" {number} of cv={cv!r:.40}. Leave its test rows out of its training rows."
            )
        if len(test):
            folds.append((train, test))
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(labels))
    if not times.all():
        raise InputError(
            f"Expected folds that test every row, got {np.count_nonzero(times == 0):,} rows that cv={cv!r:.40} tests"
            f" nowhere, row {int(np.argmin(times))} first. Use StratifiedKFold, KFold or GroupKFold."
        )
    if times.max() > 1:
        row = int(np.argmax(times > 1))
        raise InputError(
            f"Expected folds that test every row once, got row {row} in {times[row]} folds of cv={cv!r:.40}."
            " Use StratifiedKFold, KFold or GroupKFold."
        )
    for train, _ in folds:
        if len(np.unique(labels[train])) < 2:
            raise InputError(
                "Expected labels of at least two classes to learn from outside every fold, got a fold that leaves one."
                " Are the groups, or the folds, the classes?"
            )
    return folds


def _row_numbers(rows: Any, n_rows: int, fold: int) -> Rows:
    """Return the rows of a fold, given as numbers from 0 or as a mask."""
    numbers = np.asarray(rows)
    if numbers.dtype == bool and numbers.shape == (n_rows,):
        return np.flatnonzero(numbers)
    if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n_rows):
        bad = numbers.min() if numbers.dtype.kind in "iu" and numbers.min() < 0 else numbers.max()
        raise InputError(f"Expected row numbers from 0 to {n_rows - 1} in every fold, got {bad} in fold {fold}.")
    return numbers.astype(np.intp)


def _split(
    labels: NDArray[np.intp],
    cv: Any,
    groups: Any,
    random_state: int | None,
    duplicates: NDArray[np.intp] | None,
) -> Iterable[Fold]:
    if not isinstance(cv, (int, np.integer)):
        try:
            return list(check_cv(cv, labels, classifier=True).split(labels, labels, groups))
        except (TypeError, ValueError) as error:  # such as groups that a splitter needs, in scikit-learn's words
            raise InputError(f"Cannot divide the rows by cv={cv!r:.40}: {str(error).rstrip('.')}.") from None
    if cv < 2:
        raise InputError(f"Expected at least two folds, got cv={cv}.")
    n_splits = min(int(cv), len(labels))
    if groups is not None:
        return _grouped(labels, n_splits, groups, random_state)
    if duplicates is not None:
        firsts, copy_of = np.unique(duplicates, return_index=True, return_inverse=True)[1:]
        if n_splits <= len(firsts) < len(labels):  # the first of its copies goes into a fold, the others follow
            fold_of = np.empty(len(firsts), np.intp)
            for number, (_, test) in enumerate(_split(labels[firsts], n_splits, None, random_state, None)):
                fold_of[test] = number
            rows = fold_of[copy_of]
            return [(np.flatnonzero(rows != fold), np.flatnonzero(rows == fold)) for fold in range(n_splits)]
    # Every class with two members or more is known to the training rows of every fold.
    if np.bincount(labels)[np.unique(labels)].min() < n_splits:
        return _dealt(labels, n_splits, random_state)
    return StratifiedKFold(n_splits, shuffle=True, random_state=random_state).split(labels, labels)  # type: ignore[no-any-return]


def _grouped(labels: NDArray[np.intp], n_splits: int, groups: Any, random_state: int | None) -> Iterable[Fold]:
    n_groups = len(np.unique(groups))
    if n_groups < n_splits:
        raise InputError(
            f"Expected at least as many groups as folds, {n_splits}, got {n_groups}."
            + (f" Ask for {n_groups} folds." if n_groups > 1 else " One group cannot be divided.")
        )
    splitter = StratifiedGroupKFold(n_splits, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a class with fewer members than folds
        try:
            return list(splitter.split(labels, labels, groups))
        except ValueError as error:
            raise InputError(f"Cannot divide the groups: {str(error).rstrip('.')}. Ask for fewer folds.") from None


def _dealt(labels: NDArray[np.intp], n_splits: int, random_state: int | None) -> list[Fold]:
    """Return folds dealt class by class like cards, for data with a class of fewer members than folds."""
    order = np.random.default_rng(random_state).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    tests = [np.sort(order[fold::n_splits]) for fold in range(n_splits)]
    return [(np.setdiff1d(order, test), test) for test in tests]
