"""Out-of-fold probabilities: no example is judged by a classifier that was trained on its label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from dualt.errors import InputError

Rows: TypeAlias = NDArray[np.intp]


def out_of_fold_probabilities(
    classifier: Any,
    features: Any,
    labels: NDArray[np.intp],
    *,
    cv: Any = 5,
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
        Number of folds (fewer if no class has as many members), or a scikit-learn splitter.
    n_jobs
        How many folds are fitted at once, by joblib; -1 uses all cores.
    random_state
        Shuffles the folds.
    weights
        A weight of every row, under the name that the classifier's `fit` takes it by.
    """
    if not hasattr(classifier, "predict_proba"):
        raise InputError(
            f"Expected a classifier with predict_proba, got {type(classifier).__name__}."
            " Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    folds = list(_folds(labels, cv, random_state))
    _check_cover(folds, len(labels), cv)
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_predict_fold)(classifier, features, labels, *fold, weights or {}) for fold in folds
    )
    probs = np.zeros((len(labels), int(labels.max()) + 1))
    for (_, test), (classes, found) in zip(folds, fitted, strict=True):
        probs[np.ix_(test, classes)] = found
    return probs


def _check_cover(folds: Iterable[tuple[Rows, Rows]], n_samples: int, cv: Any) -> None:
    times = np.bincount(np.concatenate([np.asarray(test) for _, test in folds]), minlength=n_samples)
    if not times.all():
        raise InputError(
            f"Expected folds that test every row, got {np.count_nonzero(times == 0):,} rows that cv={cv!r:.80} tests"
            f" nowhere, row {int(np.argmin(times))} first. Use StratifiedKFold, KFold or GroupKFold."
        )


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


def _folds(labels: NDArray[np.intp], cv: Any, random_state: int | None) -> Iterable[tuple[Rows, Rows]]:
    """Return (training rows, test rows) of every fold."""
    if not isinstance(cv, (int, np.integer)):
        return check_cv(cv, labels, classifier=True).split(np.zeros(len(labels)), labels)  # type: ignore[no-any-return]
    if cv < 2:
        raise InputError(f"Expected at least two folds, got cv={cv}.")
    # Every training part should know every class, so the rarest class limits the folds (but two are needed).
    rarest = int(np.bincount(labels).min())
    n_splits = max(2, min(int(cv), rarest))
    if rarest < n_splits:
        return _uneven_folds(labels, n_splits, random_state)
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    return splitter.split(np.zeros(len(labels)), labels)  # type: ignore[no-any-return]


def _uneven_folds(labels: NDArray[np.intp], n_splits: int, random_state: int | None) -> Iterator[tuple[Rows, Rows]]:
    """Yield folds dealt class by class, for data with a class of a single member."""
    order = np.random.default_rng(random_state).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    for fold in range(n_splits):
        test = np.sort(order[fold::n_splits])
        yield np.setdiff1d(order, test), test
