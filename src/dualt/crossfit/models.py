"""Which plain models learn from which kind of data, and how the one that suits the data best is chosen.

Features are made without labels, once for all folds; only the classifiers on top are fitted fold by fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from dualt.crossfit.columns import Columns
from dualt.crossfit.folds import Fold, OnProgress, fit_folds
from dualt.crossfit.image_features import ImageFeatures
from dualt.errors import InputError

# Up to so many rows all folds judge a candidate, beyond only the first.
_ALL_FOLDS_JUDGE = 5_000
# Forests bear noisy labels best and are slow on large tables; boosting needs some rows to be worth its time.
_FOREST_ROWS, _BOOSTING_ROWS = 20_000, 500
# To stop boosting early, some labels of every class are set apart.
_STOPPING_LABELS = 20
_WORDS = 200_000
_LEAST = 1e-3


class Family(NamedTuple):
    """Classifiers on the same features, from the most to the least regularised."""

    features: Any
    classifiers: Sequence[Any]


def text_families(texts: Sequence[str]) -> list[Family]:
    """Return logistic regression on the TF-IDF of words and of parts of words."""
    least = 2 if len(texts) > 500 else 1
    words = TfidfVectorizer(sublinear_tf=True, min_df=least, max_features=_WORDS)
    parts = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=least, max_features=_WORDS
    )
    try:
        features = make_union(words, parts).fit_transform(texts).tocsr()
    except ValueError as error:
        raise InputError(f"Expected texts with words in them: {str(error).rstrip('.')}.") from None
    return [Family(features, _logistic(0.3, 1, 3, 10, 30))]


def image_families(images: Any, on_progress: OnProgress | None = None) -> list[Family]:
    """Return logistic regression on label-free features."""
    return [Family(ImageFeatures().fit_transform(images, on_progress=on_progress), _logistic(0.001, 0.01, 0.1, 1))]


def table_families(columns: Columns, rarest: int, random_state: int | None) -> list[Family]:
    """Return logistic regression on standardised and one-hot columns, and trees on the columns as they are.

    `rarest` is the number of labels of the rarest class.
    """
    numbers, categories = np.flatnonzero(~columns.categorical), np.flatnonzero(columns.categorical)
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    encode = make_column_transformer((filled, numbers), (OneHotEncoder(min_frequency=2), categories))
    families = [Family(encode.fit_transform(columns.values), _logistic(0.001, 0.01, 0.1, 1))]
    if len(columns.values) <= _FOREST_ROWS:
        forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=random_state)
        families.append(Family(columns.values, [forest]))
    if len(columns.values) >= _BOOSTING_ROWS:
        boosting = partial(
            HistGradientBoostingClassifier, learning_rate=0.05, categorical_features=columns.categorical,
            random_state=random_state,
        )  # fmt: skip
        small = boosting(max_leaf_nodes=8, l2_regularization=10, max_iter=60, early_stopping=False)
        large = boosting(
            max_leaf_nodes=15, l2_regularization=1, max_iter=200, early_stopping=rarest >= _STOPPING_LABELS
        )
        families.append(Family(columns.values, [small, large]))
    return families


def sparse_families(matrix: Any) -> list[Family]:
    """Return logistic regression on a sparse matrix, its columns scaled."""
    return [Family(MaxAbsScaler().fit_transform(matrix.tocsr()), _logistic(0.1, 1, 10))]


def _logistic(*strengths: float) -> list[LogisticRegression]:
    return [LogisticRegression(C=strength, max_iter=1000) for strength in strengths]


class Chosen(NamedTuple):
    """A classifier, its features, and the probabilities of the folds that have been fitted."""

    features: Any
    classifier: Any
    probs: NDArray[np.float64]
    n_folds: int


def choose(
    families: Sequence[Family],
    labels: NDArray[np.intp],
    n_classes: int,
    folds: Sequence[Fold],
    *,
    n_jobs: int | None,
    on_progress: OnProgress | None,
) -> Chosen:
    """Return the classifier with the least log-loss on the given labels of rows that it has not seen.

    Of a family the most regularised one within a standard error of the best is taken: noisy labels reward
    over-fitting classifiers too well. More regularised ones are tried first, until the loss grows.
    """
    n_candidates, done = sum(len(family.classifiers) for family in families), 0
    n_rows = sum(len(test) for _, test in folds)
    judging = folds if n_rows <= _ALL_FOLDS_JUDGE else folds[:1]
    rows = np.concatenate([test for _, test in judging])
    found: list[tuple[float, Chosen]] = []
    for family in families:
        tried: list[tuple[NDArray[np.float64], Chosen]] = []
        for number, classifier in enumerate(family.classifiers, start=1):
            probs = fit_folds(classifier, family.features, labels, judging, classes=np.arange(n_classes), n_jobs=n_jobs)
            losses = -np.log(np.maximum(probs[rows, labels[rows]], _LEAST))
            tried.append((losses, Chosen(family.features, classifier, probs, len(judging))))
            if on_progress is not None:
                on_progress("choosing a model", done + number, n_candidates)
            if number > 1 and losses.mean() > tried[-2][0].mean():
                break
        done += len(family.classifiers)
        least = min((losses for losses, _ in tried), key=np.mean)
        enough = least.mean() + least.std() / np.sqrt(len(rows))
        found.append((least.mean(), next(chosen for losses, chosen in tried if losses.mean() <= enough)))
    return min(found, key=lambda one: one[0])[1]
