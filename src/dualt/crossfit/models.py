"""Models that err differently, for each kind of data, and how strongly each is regularised.

Features are computed without labels, once for all folds; only the classifiers on top are fitted fold by fold. Where
new rows follow the known ones, features are fitted on the known ones alone.
"""

from collections.abc import Iterator, Sequence
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

from dualt.crossfit.examples import Columns, Examples
from dualt.crossfit.folds import Fold, OnProgress, fit_folds
from dualt.crossfit.image_features import ImageFeatures
from dualt.errors import InputError

# Candidates are compared on all folds up to this many rows, on the first fold beyond it.
_ALL_FOLDS_COMPARE = 3_000
# Forests cope best with noisy labels and are slow on large tables; boosting needs some rows to pay off.
_FOREST_ROWS, _BOOSTING_ROWS = 20_000, 500
# Early stopping of boosting holds out labels of every class: the rarest needs this many. Every round fits a tree per
# class: with fewer rows per class, large trees take most of the time and gain nothing.
_STOPPING_LABELS, _LARGE_TREES_ROWS_PER_CLASS = 20, 50
_WORDS = 200_000
# Rank of the reduced space of texts, and number of landmarks of the kernel.
_RANK, _LANDMARKS = 100, 300
_NEIGHBOURS = (40, 20, 10)
# Smoothing of naive Bayes. Not chosen by the log-loss, which prefers so much of it that rare classes vanish.
_SMOOTHING = 0.3
_LEAST = 1e-3


class Family(NamedTuple):
    """Classifiers on the same features, from the most to the least regularised."""

    features: Any
    classifiers: Sequence[Any]


def families_of(
    examples: Examples, labels: NDArray[np.intp], random_state: int | None, on_progress: OnProgress | None = None
) -> Iterator[Family]:
    """Yield the models that suit the data; their features are computed one after the other."""
    columns, n_known = examples.columns, examples.n_known
    if examples.kind == "text":
        yield from _text_families(examples, random_state)
    elif examples.kind == "images":
        features = ImageFeatures().fit_transform(examples.data, on_progress=on_progress)
        yield from _embedding_families(features, n_known, random_state)
    elif columns is None:
        scaled = MaxAbsScaler().fit_transform(examples.data.tocsr())
        yield Family(scaled, _logistic(0.1, 1, 10))
        if scaled.min() >= 0:
            yield Family(scaled, [ComplementNB(alpha=_SMOOTHING)])
    elif examples.kind == "embedding":
        features = np.nan_to_num(_fitted(StandardScaler(), columns.values, n_known))
        yield from _embedding_families(features, n_known, random_state)
    else:
        yield from _table_families(columns, n_known, labels, random_state)


def quick_family(
    examples: Examples, labels: NDArray[np.intp], random_state: int | None, on_progress: OnProgress | None = None
) -> Family:
    """Return one plain model: boosted trees for tables with enough rows, else logistic regression."""
    if examples.kind == "table" and examples.columns is not None and examples.n_known >= _BOOSTING_ROWS:
        boosting = _boosting(examples.columns, examples.n_known, labels, random_state)
        return Family(boosting.features, boosting.classifiers[:1])
    return next(families_of(examples, labels, random_state, on_progress))


def _text_families(examples: Examples, random_state: int | None) -> Iterator[Family]:
    columns, n_known = examples.columns, examples.n_known
    weigh = partial(TfidfVectorizer, sublinear_tf=True, min_df=2 if n_known > 500 else 1, max_features=_WORDS)
    both = make_union(weigh(), weigh(analyzer="char_wb", ngram_range=(2, 4)))
    try:
        words = sparse.hstack([_fitted(both, column, n_known) for column in examples.texts], format="csr")
    except ValueError as error:
        raise InputError(f"Expected texts with words in them: {str(error).rstrip('.')}.") from None
    beside = [] if columns is None else [_standardised(columns, n_known)]
    yield Family(sparse.hstack([words, *beside], format="csr"), _logistic(0.3, 1, 3, 10, 30))
    yield Family(words, [ComplementNB(alpha=_SMOOTHING)])
    rank = min(_RANK, min(n_known, words.shape[1]) - 1)
    svd = TruncatedSVD(rank, random_state=random_state)
    reduced = Normalizer().fit_transform(_fitted(svd, words, n_known) if rank > 1 else words.toarray())
    if columns is not None:  # each block has unit length on average, so that neither drowns the other
        dense = _dense(beside[0])
        reduced = np.hstack([reduced, dense / max(np.sqrt((dense[:n_known] ** 2).sum(axis=1).mean()), 1e-12)])
        yield _forest(np.hstack([reduced, columns.values]), random_state)
    yield _neighbours(reduced, n_known)
    yield _kernel(reduced, 1.0, n_known, random_state)


def _embedding_families(features: NDArray[Any], n_known: int, random_state: int | None) -> Iterator[Family]:
    yield Family(features, _logistic(0.001, 0.01, 0.1, 1))
    yield Family(features, [LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")])
    unit = Normalizer().fit_transform(features)
    yield _kernel(unit, 1.0, n_known, random_state)
    yield _neighbours(unit, n_known)


def _table_families(
    columns: Columns, n_known: int, labels: NDArray[np.intp], random_state: int | None
) -> Iterator[Family]:
    """Yield linear and kernel models of standardised and one-hot columns, and trees on the columns as they are."""
    encoded = _standardised(columns, n_known)
    yield Family(encoded, _logistic(0.001, 0.01, 0.1, 1))
    if n_known >= _BOOSTING_ROWS:
        yield _boosting(columns, n_known, labels, random_state)
    if n_known <= _FOREST_ROWS:
        yield _forest(columns.values, random_state)
        dense = _dense(encoded)
        extra = ExtraTreesClassifier(200, min_samples_leaf=3, random_state=random_state)
        yield Family(dense if np.isnan(columns.values[:n_known]).any() else columns.values, [extra])
        yield _kernel(dense, 1 / (2 * dense.shape[1]), n_known, random_state)


def _fitted(transformer: Any, data: Any, n_known: int) -> Any:
    """Return the transformed data; the transformer is fitted on the first `n_known` rows."""
    n_rows = data.shape[0] if hasattr(data, "shape") else len(data)
    return transformer.fit_transform(data) if n_known == n_rows else transformer.fit(data[:n_known]).transform(data)


def _standardised(columns: Columns, n_known: int) -> Any:
    """Return numbers standardised, with an indicator where one is missing, and categories as one-hot columns."""
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    filled = make_pipeline(imputer, StandardScaler())
    one_hot = OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist")
    numbers, categories = np.flatnonzero(~columns.categorical), np.flatnonzero(columns.categorical)
    return _fitted(make_column_transformer((filled, numbers), (one_hot, categories)), columns.values, n_known)


def _dense(features: Any) -> NDArray[Any]:
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features)


def _logistic(*strengths: float) -> list[LogisticRegression]:
    return [LogisticRegression(C=strength, max_iter=1000) for strength in strengths]


def _boosting(columns: Columns, n_known: int, labels: NDArray[np.intp], random_state: int | None) -> Family:
    common = {"learning_rate": 0.05, "categorical_features": columns.categorical, "random_state": random_state}
    trees = partial(HistGradientBoostingClassifier, **common)
    counts = np.unique(labels[labels >= 0], return_counts=True)[1]
    stops = counts.min() >= _STOPPING_LABELS
    small = trees(max_leaf_nodes=8, l2_regularization=10, max_iter=60, early_stopping=False)
    large = trees(max_leaf_nodes=15, l2_regularization=1, max_iter=200, early_stopping=bool(stops))
    many = n_known >= _LARGE_TREES_ROWS_PER_CLASS * len(counts)
    # Boosting refuses a column that is empty in a fold: what is missing gets a number below all others. Numbers below
    # those of the known rows become the least of these, as which trees treat them anyway.
    least = np.nan_to_num(np.fmin.reduce(columns.values[:n_known]))
    filled = np.where(np.isnan(columns.values), least - 1, np.maximum(columns.values, least))
    return Family(filled, [small, large] if many else [small])


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
) -> tuple[int, NDArray[np.float64]]:
    """Return which classifier of a family suits the labels, and its probabilities of each fold's test rows.

    The most regularised classifier within a standard error of the least out-of-fold log-loss is taken: noisy labels
    reward overfitting. More regularised ones are tried first, until the loss grows.
    """
    fit = partial(fit_folds, features=family.features, labels=labels, classes=np.arange(n_classes), n_jobs=n_jobs)
    if len(family.classifiers) == 1:
        return 0, fit(family.classifiers[0], folds=folds, on_progress=on_progress)
    n_folds = sum(labels[test[0]] >= 0 for _, test in folds)  # the last may be that of rows without a label
    compared = folds[: n_folds if np.count_nonzero(labels >= 0) <= _ALL_FOLDS_COMPARE else 1]
    rows = np.concatenate([test for _, test in compared])
    tried: list[NDArray[np.float64]] = []
    losses: list[NDArray[np.float64]] = []
    for classifier in family.classifiers:
        tried.append(fit(classifier, folds=compared))
        losses.append(-np.log(np.maximum(tried[-1][rows, labels[rows]], _LEAST)))
        if on_progress is not None:
            on_progress("choosing a model", len(tried), len(family.classifiers))
        if len(losses) > 1 and losses[-1].mean() > losses[-2].mean():
            break
    least = min(losses, key=np.mean)
    enough = least.mean() + least.std() / np.sqrt(len(rows))
    choice = next(place for place, loss in enumerate(losses) if loss.mean() <= enough)
    probs = tried[choice]
    if len(compared) < len(folds):
        probs = probs + fit(family.classifiers[choice], folds=folds[len(compared) :], on_progress=on_progress)
    return choice, probs


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
