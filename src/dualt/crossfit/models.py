"""Models that err differently, for each kind of data, and how strongly each is regularised.

Features are computed without labels, once for all folds; only the classifiers on top are fitted fold by fold. Where
new rows follow the first `n_known`, features are fitted on those alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, Normalizer, OneHotEncoder, StandardScaler

from dualt.crossfit.columns import Columns
from dualt.crossfit.folds import Fold, OnProgress, fit_folds
from dualt.errors import InputError

# Candidates are compared on all folds up to this many rows, on the first fold beyond it.
_ALL_FOLDS_COMPARE = 3_000
# Forests cope best with noisy labels and are slow on large tables; boosting needs some rows to pay off.
_FOREST_ROWS, _BOOSTING_ROWS = 20_000, 500
# Early stopping of boosting holds out labels of every class: the rarest needs this many.
_STOPPING_LABELS = 20
_WORDS = 200_000
# Rank of the reduced space of texts, and number of landmarks of the kernel.
_RANK, _LANDMARKS = 100, 300
_NEIGHBOURS = (40, 20, 10)
_LEAST = 1e-3


class Family(NamedTuple):
    """Classifiers on the same features, from the most to the least regularised."""

    features: Any
    classifiers: Sequence[Any]


def text_families(
    texts: Sequence[Sequence[str]],
    columns: Columns | None,
    *,
    quick: bool,
    random_state: int | None,
    n_known: int | None = None,
) -> list[Family]:
    """Return models of one or more columns of texts, with other columns beside them or without."""
    n_rows = n_known or len(texts[0])
    least = 2 if n_rows > 500 else 1
    weigh = partial(TfidfVectorizer, sublinear_tf=True, min_df=least, max_features=_WORDS)
    both = make_union(weigh(), weigh(analyzer="char_wb", ngram_range=(2, 4)))
    try:
        found = [_fitted(both, column, n_known) for column in texts]
    except ValueError as error:
        raise InputError(f"Expected texts with words in them: {str(error).rstrip('.')}.") from None
    words_only = sparse.hstack(found, format="csr")
    beside = None if columns is None else _standardised(columns, n_known)
    features = words_only if beside is None else sparse.hstack([words_only, beside], format="csr")
    linear = Family(features, _logistic(0.3, 1, 3, 10, 30))
    if quick:
        return [linear]
    rank = min(_RANK, min(n_rows, words_only.shape[1]) - 1)
    reduced = words_only.toarray()
    if rank > 1:
        reduced = _fitted(TruncatedSVD(rank, random_state=random_state), words_only, n_known)
    reduced = Normalizer().fit_transform(reduced)
    families = [linear, Family(words_only, [_bayes()])]
    if columns is not None:  # each block has unit length on average, so that neither drowns the other
        dense = _dense(beside)
        reduced = np.hstack([reduced, dense / max(np.sqrt((dense[:n_rows] ** 2).sum(axis=1).mean()), 1e-12)])
        families.append(_forest(np.hstack([reduced, columns.values]), random_state))
    return [*families, _neighbours(reduced, n_rows), _kernel(reduced, 1.0, n_rows, random_state)]


def embedding_families(
    features: NDArray[Any], *, quick: bool, random_state: int | None, n_known: int | None = None
) -> list[Family]:
    """Return models of embeddings: logistic regression, linear discriminant, kernel logistic regression, neighbours."""
    linear = Family(features, _logistic(0.001, 0.01, 0.1, 1))
    if quick:
        return [linear]
    unit, n_rows = Normalizer().fit_transform(features), n_known or len(features)
    discriminant = Family(features, [LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")])
    return [linear, discriminant, _kernel(unit, 1.0, n_rows, random_state), _neighbours(unit, n_rows)]


def table_families(
    columns: Columns, rarest: int, *, quick: bool, random_state: int | None, n_known: int | None = None
) -> list[Family]:
    """Return linear and kernel models of standardised and one-hot columns, and trees on the columns as they are.

    `rarest` is the number of labels of the rarest class.
    """
    n_rows = n_known or len(columns.values)
    encoded = _standardised(columns, n_known)
    boosting = partial(
        HistGradientBoostingClassifier, learning_rate=0.05, categorical_features=columns.categorical,
        random_state=random_state,
    )  # fmt: skip
    small = boosting(max_leaf_nodes=8, l2_regularization=10, max_iter=60, early_stopping=False)
    large = boosting(max_leaf_nodes=15, l2_regularization=1, max_iter=200, early_stopping=rarest >= _STOPPING_LABELS)
    families = [Family(encoded, _logistic(0.001, 0.01, 0.1, 1))]
    if n_rows >= _BOOSTING_ROWS:
        families.append(Family(columns.values, [small] if quick else [small, large]))
    if quick:
        return families[-1:]
    if n_rows <= _FOREST_ROWS:
        families.append(_forest(columns.values, random_state))
        dense = _dense(encoded)
        extra = ExtraTreesClassifier(200, min_samples_leaf=3, random_state=random_state)
        families.append(Family(dense if np.isnan(columns.values[:n_rows]).any() else columns.values, [extra]))
        families.append(_kernel(dense, 1 / (2 * dense.shape[1]), n_rows, random_state))
    return families


def sparse_families(matrix: Any, *, quick: bool) -> list[Family]:
    """Return logistic regression on a sparse matrix with scaled columns, and naive Bayes where no entry is negative."""
    scaled = MaxAbsScaler().fit_transform(matrix.tocsr())
    families = [Family(scaled, _logistic(0.1, 1, 10))]
    if not quick and (scaled.nnz == 0 or scaled.data.min() >= 0):
        families.append(Family(scaled, [_bayes()]))
    return families


def _fitted(transformer: Any, data: Any, n_known: int | None) -> Any:
    """Return the transformed data; the transformer is fitted on the first `n_known` rows."""
    return transformer.fit_transform(data) if n_known is None else transformer.fit(data[:n_known]).transform(data)


def _standardised(columns: Columns, n_known: int | None) -> Any:
    """Return numbers standardised, with an indicator where one is missing, and categories as one-hot columns."""
    numbers, categories = np.flatnonzero(~columns.categorical), np.flatnonzero(columns.categorical)
    filled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    encode = make_column_transformer((filled, numbers), (one_hot, categories))
    return _fitted(encode, columns.values, n_known)


def _dense(features: Any) -> NDArray[Any]:
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features)


def _logistic(*strengths: float) -> list[LogisticRegression]:
    return [LogisticRegression(C=strength, max_iter=1000) for strength in strengths]


def _bayes() -> ComplementNB:
    # Not chosen by the log-loss, which prefers so much smoothing that rare classes vanish.
    return ComplementNB(alpha=0.3)


def _forest(features: NDArray[Any], random_state: int | None) -> Family:
    return Family(features, [RandomForestClassifier(200, min_samples_leaf=5, random_state=random_state)])


def _kernel(features: NDArray[Any], gamma: float, n_rows: int, random_state: int | None) -> Family:
    """Return logistic regression on a Nyström approximation of the radial kernel."""
    landmarks = Nystroem(gamma=gamma, n_components=min(_LANDMARKS, n_rows // 3), random_state=random_state)
    return Family(features, [make_pipeline(landmarks, logistic) for logistic in _logistic(0.1, 1, 10, 100)])


def _neighbours(features: NDArray[Any], n_rows: int) -> Family:
    sizes = [size for size in _NEIGHBOURS if size < n_rows / 2] or [max(1, n_rows // 4)]
    return Family(features, [KNeighborsClassifier(size, weights="distance") for size in sizes])


def fit_family(
    family: Family,
    labels: NDArray[np.intp],
    n_classes: int,
    folds: Sequence[Fold],
    *,
    n_jobs: int | None,
    on_progress: OnProgress | None,
) -> tuple[Any, NDArray[np.float64]]:
    """Return the classifier of a family that suits the labels, and its probabilities of each fold's test rows.

    The most regularised classifier within a standard error of the least out-of-fold log-loss is taken: noisy labels
    reward overfitting. More regularised ones are tried first, until the loss grows.
    """

    def fit(classifier: Any, some: Sequence[Fold], progress: OnProgress | None = None) -> NDArray[np.float64]:
        options: dict[str, Any] = {"classes": np.arange(n_classes), "n_jobs": n_jobs, "on_progress": progress}
        return fit_folds(classifier, family.features, labels, some, **options)

    if len(family.classifiers) == 1:
        return family.classifiers[0], fit(family.classifiers[0], folds, on_progress)
    n_folds = sum(labels[test[0]] >= 0 for _, test in folds)  # the last may be that of rows without a label
    compared = folds[: n_folds if np.count_nonzero(labels >= 0) <= _ALL_FOLDS_COMPARE else 1]
    rows = np.concatenate([test for _, test in compared])
    tried: list[tuple[NDArray[np.float64], Any, NDArray[np.float64]]] = []
    for classifier in family.classifiers:
        probs = fit(classifier, compared)
        losses = -np.log(np.maximum(probs[rows, labels[rows]], _LEAST))
        tried.append((losses, classifier, probs))
        if on_progress is not None:
            on_progress("choosing a model", len(tried), len(family.classifiers))
        if len(tried) > 1 and losses.mean() > tried[-2][0].mean():
            break
    least = min((losses for losses, _, _ in tried), key=np.mean)
    enough = least.mean() + least.std() / np.sqrt(len(rows))
    _, classifier, probs = next(one for one in tried if one[0].mean() <= enough)
    if len(compared) < len(folds):
        probs = probs + fit(classifier, folds[len(compared) :], on_progress)
    return classifier, probs


def member_weights(members: NDArray[Any], labels: NDArray[np.intp], *, weighted: bool) -> NDArray[np.float64]:
    """Return what each member's probabilities count in their mean.

    `weighted`: by the weights with the least log-loss of the given labels (EM of a mixture), where a poor member
    would spoil the mean: linear models of tables. Otherwise equally: where labels come from rules, the log-loss prefers
    the model that repeats the rule.
    """
    weights = np.full(len(members), 1 / len(members))
    known = np.flatnonzero(labels >= 0)
    if weighted:
        of_label = np.maximum(members[:, known, labels[known]].T, _LEAST)
        for _ in range(100):
            parts = of_label * weights
            weights = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights
