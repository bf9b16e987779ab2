"""Out-of-fold probabilities: no example is judged by a classifier that was trained on its label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from dualt.errors import InputError


def out_of_fold_probabilities(
    classifier: Any, features: Any, labels: NDArray[np.intp], *, cv: Any = 5, random_state: int | None = 0
) -> NDArray[np.float64]:
    """Return P(label | x) of every row, from clones of `classifier` fitted on the other folds.

    Parameters
    ----------
    classifier
        Any scikit-learn classifier with `predict_proba`.
    features : (n_samples, ...)
        Whatever the classifier takes: array, sparse matrix, data frame, list of texts.
    labels : (n_samples,)
        Class numbers from 0. A class that a fold's training part lacks gets probability 0 there.
    cv
        Number of folds (fewer if no class has as many members), or a scikit-learn splitter.
    random_state
        Shuffles the folds.
    """
    if not hasattr(classifier, "predict_proba"):
        raise InputError(
            f"Expected a classifier with predict_proba, got {type(classifier).__name__}."
            " Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    n_classes = int(labels.max()) + 1
    probs = np.zeros((len(labels), n_classes))
    for train, test in _folds(labels, cv, random_state):
        fitted = clone(classifier).fit(_safe_indexing(features, train), labels[train])
        probs[np.ix_(test, fitted.classes_)] = fitted.predict_proba(_safe_indexing(features, test))
    return probs


def _folds(labels: NDArray[np.intp], cv: Any, random_state: int | None) -> Any:
    if not isinstance(cv, (int, np.integer)):
        return check_cv(cv, labels, classifier=True).split(np.zeros(len(labels)), labels)
    if cv < 2:
        raise InputError(f"Expected at least two folds, got cv={cv}.")
    # Every training part should know every class, so the rarest class limits the folds (but two are needed).
    n_splits = max(2, min(int(cv), int(np.bincount(labels).min())))
    if np.bincount(labels).min() < n_splits:
        return _uneven_folds(labels, n_splits, random_state)
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    return splitter.split(np.zeros(len(labels)), labels)


def _uneven_folds(labels: NDArray[np.intp], n_splits: int, random_state: int | None) -> Any:
    """Yield folds dealt class by class, for data with a class of a single member."""
    order = np.random.default_rng(random_state).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    for fold in range(n_splits):
        test = np.sort(order[fold::n_splits])
        yield np.setdiff1d(order, test), test
