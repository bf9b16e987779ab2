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

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]
# Told what is being done, how much of it is done, and how much there is.
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
    """Return P(label | x) of every row, from clones of `classifier` fitted on the other folds.

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
    if missing == ["predict_proba"]:
        raise InputError(
            f"Expected a classifier with predict_proba, got {type(classifier).__name__}."
            " Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    if missing:
        got = f"{type(classifier).__name__}, which has no {' and no '.join(missing)}"
        raise InputError(f"Expected a scikit-learn classifier, got {got}.")
    return classifier


def fit_folds(
    classifier: Any,
    features: Any,
    labels: NDArray[np.intp],
    folds: Sequence[Fold],
    *,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
    weights: Mapping[str, NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    """Return the probabilities of each fold's test rows, from a clone fitted on its training rows."""
    probs = np.zeros((len(labels), int(labels.max()) + 1))
    fitted = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_predict_fold)(classifier, features, labels, *fold, weights or {}) for fold in folds
    )
    for done, ((_, test), (classes, found)) in enumerate(zip(folds, fitted, strict=True), start=1):
        probs[np.ix_(test, classes)] = found
        if on_progress is not None:
            on_progress("fitting", done, len(folds))
    return probs


def _predict_fold(
    classifier: Any,
    features: Any,
    labels: NDArray[np.intp],
    train: Rows,
    test: Rows,
    weights: Mapping[str, NDArray[np.float64]],
) -> tuple[Any, Any]:
    """Return the classes that a clone fitted on `train` knows, and their probabilities on `test`."""
    own = {name: values[train] for name, values in weights.items()}
    fitted = clone(classifier).fit(_safe_indexing(features, train), labels[train], **own)
    return fitted.classes_, fitted.predict_proba(_safe_indexing(features, test))


def make_folds(labels: NDArray[np.intp], cv: Any = 5, groups: Any = None, random_state: int | None = 0) -> list[Fold]:
    """Return (training rows, test rows) of every fold; the classes are spread evenly over the folds."""
    folds = [fold for fold in _split(labels, cv, groups, random_state) if len(fold[1])]
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(labels))
    if not times.all():
        raise InputError(
            f"Expected folds that test every row, got {np.count_nonzero(times == 0):,} rows that cv={cv!r:.40} tests"
            f" nowhere, row {int(np.argmin(times))} first. Use StratifiedKFold, KFold or GroupKFold."
        )
    for train, _ in folds:
        if len(np.unique(labels[train])) < 2:
            raise InputError(
                "Expected labels of at least two classes to learn from outside every fold, got a fold that leaves one."
                " Are the groups, or the folds, the classes?"
            )
    return folds


def _split(labels: NDArray[np.intp], cv: Any, groups: Any, random_state: int | None) -> Iterable[Fold]:
    if not isinstance(cv, (int, np.integer)):
        return check_cv(cv, labels, classifier=True).split(labels, labels, groups)  # type: ignore[no-any-return]
    if cv < 2:
        raise InputError(f"Expected at least two folds, got cv={cv}.")
    n_splits = min(int(cv), len(labels))
    if groups is not None:
        return _grouped(labels, n_splits, groups, random_state)
    # Every class of two members or more is known to the training rows of every fold.
    if np.bincount(labels).min() < n_splits:
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
