"""`cross_fit`: out-of-fold probabilities from data and labels, by several models that err differently."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dualt.crossfit.columns import Columns, as_texts, columns_of
from dualt.crossfit.folds import OnProgress, check_classifier, fit_folds, group_numbers, make_folds
from dualt.crossfit.image_features import ImageFeatures
from dualt.crossfit.models import (
    Family,
    embedding_families,
    fit_family,
    member_weights,
    sparse_families,
    table_families,
    text_families,
)
from dualt.errors import DualtWarning, InputError, LabelsError, UnknownNameError
from dualt.labels import LabelCoder, as_label_array, is_missing
from dualt.rng import check_scikit_seed
from dualt.rows.scaling import scale_classes, share_factors
from dualt.validation import align_labels, as_array, check_same_length, index_of, is_frame

Kind: TypeAlias = Literal["text", "table", "images", "embedding"]
# From this many columns on, numbers are taken for an embedding: trees are slow there, and no better.
_EMBEDDING = 100
# Longer descriptions of models are cut: pipelines take pages.
_MODEL_SHOWN = 60


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Probabilities of the given label, each from models that have not seen it; `find_label_issues` takes it as it is.

    Attributes
    ----------
    pred_probs : (n_samples, n_classes)
        Mean of the members.
    class_names : tuple of str
        In the order of the columns.
    given : (n_samples,)
        Given labels as class numbers; −1 where there is none.
    fold : (n_samples,)
        Number of the fold in which a row was left out; −1 where it has no label. The probabilities of such rows come
        from models fitted on all labelled rows.
    model : str
        The classifiers that were fitted.
    index
        The index of the data frame or series that the data, else the labels, came in.
    members : (n_models, n_samples, n_classes)
        Out-of-fold probabilities of each model.
    determined : bool or None
        Whether an expert could always tell the class from the example: assumed for texts, images and embeddings, not
        for tables.
    choices : tuple of int
        How strongly each model is regularised: its place among the candidates. Empty for models of your own.
    weights : (n_models,)
        What each model counts in the mean.
    """

    pred_probs: NDArray[np.float64]
    class_names: tuple[str, ...]
    given: NDArray[np.intp]
    fold: NDArray[np.intp]
    model: str
    index: Any
    members: NDArray[np.float32]
    determined: bool | None
    choices: tuple[int, ...]
    weights: NDArray[np.float64]

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label: (n_samples,)."""
        return self.given >= 0

    @property
    def out_of_fold(self) -> bool:
        """Always True; estimates carry it."""
        return True

    @property
    def agreement(self) -> float:
        """Share of the labels that are the most probable class."""
        known = self.labelled
        return float(np.mean(self.pred_probs[known].argmax(axis=1) == self.given[known]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The class names, as a data frame of probabilities has them."""
        return self.class_names

    def to_numpy(self) -> NDArray[np.float64]:
        """Return `pred_probs`."""
        return self.pred_probs

    def to_frame(self) -> Any:
        """Return a pandas data frame with a column per class, and the index that the data came with."""
        import pandas as pd

        return pd.DataFrame(self.pred_probs, index=self.index, columns=list(self.class_names))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pred_probs, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.pred_probs)

    def __getitem__(self, rows: Any) -> OutOfFold:
        """Return the same for some rows: a slice, a mask or row numbers."""
        rows = rows if isinstance(rows, slice) else np.asarray(rows)
        index = None if self.index is None else self.index[rows]
        chosen = {name: getattr(self, name)[rows] for name in ("pred_probs", "given", "fold")}
        return replace(self, **chosen, index=index, members=self.members[:, rows])

    def __repr__(self) -> str:
        model, n_folds = " ".join(self.model.split()), len(np.unique(self.fold[self.labelled]))
        shown = model if len(model) <= _MODEL_SHOWN else f"{model[: _MODEL_SHOWN - 1]}…"
        agreement = f", agreement={self.agreement:.3f}" if n_folds else ""
        return (
            f"OutOfFold(n_samples={len(self)}, n_classes={len(self.class_names)}, n_folds={n_folds}{agreement},"
            f" model={shown})"
        )


def cross_fit(
    data: Any,
    labels: Any,
    *,
    kind: Kind | None = None,
    text: str | Sequence[str] | None = None,
    model: Any = None,
    quick: bool = False,
    cv: Any = 5,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    on_progress: OnProgress | None = None,
) -> OutOfFold:
    """Return out-of-fold probabilities of the given labels, from several models that suit the data and err differently.

    Parameters
    ----------
    data : (n_samples, ...)
        Texts (a list or a series); a table (a data frame, a 2-D array, a sparse matrix) of numbers and categories;
        embeddings (an array or a frame with 100 or more columns of numbers); or images (n, height, width),
        (n, channels, height, width) or channels last.
    labels : (n_samples,)
        Numbers or strings. A missing one (None, NaN, an empty string) is not learned from; its row gets the
        probabilities of models fitted on all labelled rows.
    kind
        `"text"`, `"table"`, `"images"` or `"embedding"`, where the data leave it open.
    text
        Columns of the data frame that are texts; its other columns are numbers and categories.
    model
        A scikit-learn classifier, or a list of them, instead of ours; it gets the data as they are (texts as a list,
        images as an array). Probabilities that class weights have shifted are brought back to the labels' shares.
    quick
        Fit one plain model only.
    cv
        Number of folds, or a scikit-learn splitter. With a number, rows with the same content stay in one fold.
    groups : (n_samples,)
        Rows of one group, such as those of one user, stay in one fold. A row without a group is a group of its own.
    n_jobs
        Number of folds that are fitted at once; -1 uses all cores.
    random_state
        Shuffles the folds and seeds the models.
    on_progress
        Called with what is being done, how much of it is done and how much there is.

    Returns
    -------
    OutOfFold

    Notes
    -----
    Texts: logistic regression and complement naive Bayes on TF-IDF of words and character n-grams, nearest neighbours
    and a kernel logistic regression in a reduced space. Tables: logistic regression, boosted trees, two kinds of
    forests and a kernel logistic regression. Embeddings, and images through features learned without labels
    (`dualt.crossfit.ImageFeatures`): logistic regression, linear discriminant analysis, a kernel logistic regression
    and nearest neighbours. The out-of-fold log-loss of the given labels sets how strongly each is regularised.

    Examples
    --------
    >>> import dualt
    >>> texts = ["a red fox", "the red fox runs", "a fox", "green tea", "tea with milk", "hot tea"] * 5
    >>> labels = ["animal", "animal", "animal", "drink", "drink", "drink"] * 5
    >>> labels[0] = "drink"
    >>> probs = dualt.cross_fit(texts, labels)
    >>> dualt.find_label_issues(probs, labels).ranking[0]
    np.int64(0)
    """
    random_state = None if random_state is None else check_scikit_seed(random_state)
    index = index_of(labels) if index_of(data) is None else index_of(data)
    groups = None if groups is None else align_labels(data, groups, "groups")
    labels = align_labels(data, labels)
    name = getattr(labels, "name", None)
    if is_frame(data) and name is not None and name in list(data.columns):
        raise InputError(f"Expected columns to learn from, got the labels {name!r} among them. Leave that column out.")
    found_kind, data, texts, columns = _read(data, kind, text)
    targets, class_names, classes = _encode(labels)
    n_rows = data.shape[0] if hasattr(data, "shape") else len(data)
    check_same_length(n_rows, len(targets))
    rows = np.flatnonzero(targets >= 0)
    if groups is not None:
        groups = group_numbers(groups, n_rows)[rows]
    copies = _copies(found_kind, data, texts, columns)
    folds = [
        (rows[train], rows[test])
        for train, test in make_folds(targets[rows], cv, groups, random_state, None if copies is None else copies[rows])
    ]
    fold_of = np.full(n_rows, -1)
    for number, (_, test) in enumerate(folds):
        fold_of[test] = number
    single = [class_names[label] for label in np.flatnonzero(np.bincount(targets[rows]) == 1)]
    if single:
        shown = ", ".join(map(repr, single[:8])) + (", …" if len(single) > 8 else "")
        message = f"Only one row is labelled {shown}: a model that has not seen it cannot know the class."
        warnings.warn(message, DualtWarning, stacklevel=2)
    if len(rows) < n_rows:
        folds.append((rows, np.flatnonzero(targets < 0)))
    options: dict[str, Any] = {"n_jobs": n_jobs, "on_progress": on_progress}
    fitted, members, choices = [], [], []
    if model is None:
        rarest = int(np.unique(targets[rows], return_counts=True)[1].min())
        for family in _families(found_kind, data, texts, columns, rarest, quick, random_state, on_progress):
            classifier, probs = fit_family(family, targets, len(classes), folds, **options)
            fitted.append(classifier)
            choices.append(family.classifiers.index(classifier))
            members.append(probs)
    else:
        fitted = [check_classifier(one) for one in (model if isinstance(model, (list, tuple)) else [model])]
        features = data[:] if found_kind == "images" else data
        for classifier in fitted:
            probs = fit_folds(classifier, features, targets, folds, classes=classes, **options)
            members.append(scale_classes(probs, share_factors(probs[rows], targets[rows])))  # it may weigh the classes
    each = np.stack(members) / np.maximum(np.sum(members, axis=2, keepdims=True), 1e-300)
    weights = member_weights(each, targets, weighted=found_kind == "table" and model is None)
    mean = np.einsum("k,knc->nc", weights, each)
    described = " + ".join(" ".join(str(classifier).split()) for classifier in fitted)
    return OutOfFold(
        mean, class_names, targets, fold_of, described, index, each.astype(np.float32), found_kind != "table",
        tuple(choices), weights,
    )  # fmt: skip


def predict_new(
    data: Any,
    labels: Any,
    new: Any,
    *,
    kind: Kind | None = None,
    text: str | Sequence[str] | None = None,
    choices: Sequence[int],
    weights: Sequence[float],
    random_state: int | None = 0,
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return the classes and the probabilities of new rows, from the models of `cross_fit` fitted on all of `data`.

    Nothing is learned from the new rows: the probabilities of one do not depend on the others.

    Parameters
    ----------
    data, labels
        A list of texts or a data frame, and labels; a row without a label counts for the features only.
    new
        Like `data`.
    kind, text, random_state
        As in `cross_fit`.
    choices, weights
        Of the `OutOfFold` that `cross_fit` returned.
    """
    n_known = len(data)
    if is_frame(data):
        import pandas as pd

        both: Any = pd.concat([data, new], ignore_index=True)
    else:
        both = [*data, *new]
    found_kind, both, texts, columns = _read(both, kind, text, n_known)
    known, names, _ = _encode(labels)
    rows = np.flatnonzero(known >= 0)
    rarest = int(np.unique(known[rows], return_counts=True)[1].min())
    families = _families(found_kind, both, texts, columns, rarest, len(choices) == 1, random_state, None, n_known)
    targets = np.concatenate([known, np.full(len(both) - n_known, -1)])
    fold, classes = (rows, np.arange(n_known, len(both))), np.arange(len(names))
    probs = np.zeros((len(both) - n_known, len(names)))
    for family, choice, weight in zip(families, choices, weights, strict=True):
        classifier = family.classifiers[choice]
        found = fit_folds(classifier, family.features, targets, [fold], classes=classes)[n_known:]
        probs += weight * found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    return names, probs


def _read(
    data: Any, kind: str | None, text: str | Sequence[str] | None, n_known: int | None = None
) -> tuple[Kind, Any, list[list[str]], Columns | None]:
    """Return the kind of the data, the data as a user's model gets them, columns of texts, and other columns."""
    if kind not in (None, *get_args(Kind)):
        raise UnknownNameError("kind of data", str(kind), get_args(Kind))
    if text is not None:
        return _read_text_columns(data, [text] if isinstance(text, str) else list(text), n_known)
    is_table = is_frame(data) or hasattr(data, "column_names")
    n_dims = 2 if is_table else len(getattr(data, "shape", ()))
    if n_dims == 0:
        data = as_array(data, "texts, a table or images", InputError)
        n_dims = data.ndim
    if kind is None:
        kind = {1: "text", 2: "table", 3: "images", 4: "images"}.get(n_dims)
        if kind is None:
            raise InputError(f"Expected texts, a table or images, got an array of {n_dims} dimensions.")
        if kind == "table" and not is_table and not hasattr(data, "tocsr") and data.shape[1] >= _EMBEDDING:
            kind = "embedding" if np.asarray(data).dtype.kind == "f" else kind
    if kind == "text":
        texts = _texts(data)
        return "text", texts, [texts], None
    columns = columns_of(data, n_known) if kind in ("table", "embedding") and not hasattr(data, "tocsr") else None
    if columns is not None and kind == "table" and is_table:
        plain = not columns.categorical.any() and not np.isnan(columns.values[:n_known]).any()
        kind = "embedding" if plain and columns.values.shape[1] >= _EMBEDDING else kind
    return kind, data, [], columns  # type: ignore[return-value]


def _read_text_columns(
    data: Any, names: list[str], n_known: int | None
) -> tuple[Kind, Any, list[list[str]], Columns | None]:
    if not is_frame(data):
        raise InputError(f"Expected a data frame with the columns {names}, got {type(data).__name__}.")
    there = list(data.columns)
    for name in names:
        if name not in there:
            raise UnknownNameError("column of texts", str(name), [str(other) for other in there])
    others = [name for name in there if name not in names]
    texts = [_texts(np.asarray(data[name])) for name in names]
    return "text", data, texts, columns_of(data[others], n_known) if others else None


def _texts(data: Any) -> list[str]:
    """Return texts as a list; a missing one is empty."""
    column = as_array(data, "texts", InputError)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or column.dtype.kind not in "OUST":
        raise InputError(
            f"Expected texts, one per row, got dtype {column.dtype} and shape {column.shape}."
            " Numbers are a table: pass them as shape (n_samples, n_columns)."
        )
    return as_texts(column)


def _copies(kind: Kind, data: Any, texts: list[list[str]], columns: Columns | None) -> NDArray[np.intp] | None:
    """Return a number per row, the same for rows with the same content; None where repetition means nothing.

    Texts are the same if they have the same words, whatever their order, case, numbers and punctuation. Where most rows
    repeat others, they are combinations of categories, not copies.
    """
    keys: list[Any]
    if kind == "text":
        whole = [" ".join(parts).casefold() for parts in zip(*texts, strict=True)]
        # Texts without words have nothing in common.
        keys = [" ".join(sorted({*re.findall(r"[^\W\d_]+", text)})) or row for row, text in enumerate(whole)]
        if columns is not None:
            keys = [(key, values.tobytes()) for key, values in zip(keys, columns.values, strict=True)]
    elif kind == "images":
        keys = [np.asarray(image).tobytes() for image in data]
    elif columns is not None:
        keys = [row.tobytes() for row in columns.values.astype(np.float32)]
    else:
        return None
    numbers: dict[Any, int] = {}
    found = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.intp)
    return None if 2 * len(numbers) < len(keys) else found


def _families(
    kind: Kind,
    data: Any,
    texts: list[list[str]],
    columns: Columns | None,
    rarest: int,
    quick: bool,
    random_state: int | None,
    on_progress: OnProgress | None,
    n_known: int | None = None,
) -> list[Family]:
    options: dict[str, Any] = {"quick": quick, "random_state": random_state, "n_known": n_known}
    if kind == "text":
        return text_families(texts, columns, **options)
    if kind == "images":
        features = ImageFeatures().fit_transform(data, on_progress=on_progress)
        return embedding_families(features, **options)
    if columns is None:
        return sparse_families(data, quick=quick)
    if kind == "embedding":
        values = np.nan_to_num(columns.values - np.nanmean(columns.values[:n_known], axis=0))
        return embedding_families(values / np.maximum(values[:n_known].std(axis=0), 1e-12), **options)
    return table_families(columns, rarest, **options)


def _encode(labels: Any) -> tuple[NDArray[np.intp], tuple[str, ...], NDArray[Any]]:
    """Return the class number of every row, −1 where it has no label, the class names, and the labels themselves."""
    given = as_array(labels, "labels as numbers or strings", LabelsError)
    missing = is_missing(given)
    if not len(given) or missing.all():
        raise LabelsError("Expected at least one label, got none.")
    there = as_label_array(given[~missing])
    coder = LabelCoder.found_in(there)
    codes = np.full(len(given), -1, np.intp)
    codes[~missing] = coder.encode(there)
    return codes, coder.names, np.unique(there) if there.ndim == 1 else np.arange(coder.n_classes)
