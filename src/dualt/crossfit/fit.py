"""`cross_fit`: from data and labels to out-of-fold probabilities, with a plain model that suits the data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dualt.crossfit.columns import as_texts, columns_of
from dualt.crossfit.folds import OnProgress, check_classifier, fit_folds, group_numbers, make_folds
from dualt.crossfit.models import Chosen, Family, choose, image_families, sparse_families, table_families, text_families
from dualt.errors import DualtWarning, InputError, LabelsError, UnknownNameError, naming_extra
from dualt.label_arrays import as_label_array, is_missing
from dualt.labels import LabelCoder
from dualt.rng import check_scikit_seed
from dualt.rows.confidence import scaled, share_factors
from dualt.validation import align_labels, as_array, check_same_length, index_of, is_frame

Kind: TypeAlias = Literal["text", "table", "images"]
# How much of a model its line shows: pipelines of many steps take pages.
_MODEL_SHOWN = 60


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Probabilities of the given label, each from a model that has not seen it; `find_label_issues` takes it as it is.

    Attributes
    ----------
    pred_probs : (n_samples, n_classes)
    class_names : tuple of str
        In the order of the columns.
    given : (n_samples,)
        Given labels as class numbers; −1 where there is none.
    fold : (n_samples,)
        Number of the fold that a row was left out in; −1 where it has no label. The probabilities of such rows come
        from a model of all that have one.
    model : str
        The classifier that was fitted.
    index
        The index of the data frame or series that the data, else the labels, came in.
    """

    pred_probs: NDArray[np.float64]
    class_names: tuple[str, ...]
    given: NDArray[np.intp]
    fold: NDArray[np.intp]
    model: str
    index: Any = None

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label: (n_samples,)."""
        return self.given >= 0

    @property
    def out_of_fold(self) -> bool:
        """True: an estimate made of it carries that."""
        return True

    @property
    def agreement(self) -> float:
        """Share of the labels that are the most probable class."""
        known = self.labelled
        return float(np.mean(self.pred_probs[known].argmax(axis=1) == self.given[known]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The class names, as those of a data frame's columns."""
        return self.class_names

    def to_numpy(self) -> NDArray[np.float64]:
        """Return `pred_probs`."""
        return self.pred_probs

    def to_frame(self) -> Any:
        """Return a pandas data frame with a column per class, and the index that the data came with."""
        with naming_extra("A data frame"):
            import pandas as pd

        return pd.DataFrame(self.pred_probs, index=self.index, columns=list(self.class_names))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pred_probs, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.pred_probs)

    def __getitem__(self, rows: Any) -> OutOfFold:
        """Return the same of some rows: a slice, a mask or row numbers."""
        rows = rows if isinstance(rows, slice) else np.asarray(rows)
        index = None if self.index is None else self.index[rows]
        own = (self.pred_probs[rows], self.class_names, self.given[rows], self.fold[rows])
        return OutOfFold(*own, self.model, index)

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
    model: Any = None,
    cv: Any = 5,
    groups: Any = None,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    on_progress: OnProgress | None = None,
) -> OutOfFold:
    """Return out-of-fold probabilities of the given labels, from a plain model that suits the data.

    Parameters
    ----------
    data : (n_samples, ...)
        Texts (a list or a series); a table (a data frame, a 2-D array, a sparse matrix) of numbers and categories; or
        images (n, height, width), (n, channels, height, width) or channels last.
    labels : (n_samples,)
        Numbers or strings. A missing one (None, NaN, an empty string) is not learnt from; its row gets the
        probabilities of a model of all rows that have a label.
    kind
        `"text"`, `"table"` or `"images"`, where the data do not tell.
    model
        A scikit-learn classifier instead of ours; it gets the data as they are (texts as a list, images as an array).
        Where its class weights make probabilities of other shares than the labels have, they are brought back to these.
    cv
        Number of folds, or a scikit-learn splitter.
    groups : (n_samples,)
        Rows of one group, such as those of one user, stay in one fold. A row without one is a group of its own.
    n_jobs
        How many folds are fitted at once; -1 uses all cores.
    random_state
        Shuffles the folds.
    on_progress
        Called with what is being done, how much of it is done and how much there is.

    Returns
    -------
    OutOfFold

    Notes
    -----
    Texts: logistic regression on TF-IDF of words and of parts of words. Tables: the same on standardised and one-hot
    columns, or trees on the columns as they are. Images: the same on features that are learnt without
    labels (`dualt.crossfit.ImageFeatures`). How much it is regularised, and which of several models is taken, the
    log-loss of the given labels out of fold decides.

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
    index = index_of(data)
    if groups is not None:
        groups = align_labels(data, groups, "groups")
    index, labels = index_of(labels) if index is None else index, align_labels(data, labels)
    _refuse_labels_among(data, labels)
    found_kind, data = _as_kind(data, kind)
    targets, class_names, classes = _encode(labels)
    n_rows = data.shape[0] if hasattr(data, "shape") else len(data)
    check_same_length(n_rows, len(targets))
    rows = np.flatnonzero(targets >= 0)
    if groups is not None:
        groups = group_numbers(groups, n_rows)[rows]
    folds = [(rows[train], rows[test]) for train, test in make_folds(targets[rows], cv, groups, random_state)]
    fold_of = np.full(n_rows, -1)
    for number, (_, test) in enumerate(folds):
        fold_of[test] = number
    tell_lonely(lonely_classes(targets[rows], class_names))
    options: dict[str, Any] = {"n_jobs": n_jobs, "on_progress": on_progress}
    if model is None:
        rarest = int(np.unique(targets[rows], return_counts=True)[1].min())
        families = _families(found_kind, data, rarest, random_state, on_progress)
        chosen = choose(families, targets, len(classes), folds, **options)
    else:
        features = data[:] if found_kind == "images" else data
        chosen = Chosen(features, check_classifier(model), np.zeros((n_rows, len(classes))), 0)
    left = folds[chosen.n_folds :]
    if len(rows) < n_rows:
        left = [*left, (rows, np.flatnonzero(targets < 0))]
    probs = chosen.probs
    if left:
        probs = probs + fit_folds(chosen.classifier, chosen.features, targets, left, classes=classes, **options)
    if model is not None:  # which may have weights of classes
        probs = scaled(probs, share_factors(probs[rows], targets[rows]))
    return OutOfFold(probs, class_names, targets, fold_of, str(chosen.classifier), index)


def _as_kind(data: Any, kind: str | None) -> tuple[Kind, Any]:
    """Return the kind of the data, and the data as their models take them."""
    if kind not in (None, *get_args(Kind)):
        raise UnknownNameError("kind of data", str(kind), get_args(Kind))
    n_dims = 2 if is_frame(data) or hasattr(data, "column_names") else len(getattr(data, "shape", ()))
    if n_dims == 0:
        data = as_array(data, "texts, a table or images", InputError)
        n_dims = data.ndim
    if kind is None:
        kind = {1: "text", 2: "table", 3: "images", 4: "images"}.get(n_dims)
        if kind is None:
            raise InputError(f"Expected texts, a table or images, got an array of {n_dims} dimensions.")
    return kind, _texts(data) if kind == "text" else data  # type: ignore[return-value]


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


def _families(
    kind: Kind, data: Any, rarest: int, random_state: int | None, on_progress: OnProgress | None
) -> list[Family]:
    if kind == "text":
        return text_families(data)
    if kind == "images":
        return image_families(data, on_progress)
    return sparse_families(data) if hasattr(data, "tocsr") else table_families(columns_of(data), rarest, random_state)


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


def _refuse_labels_among(data: Any, labels: Any) -> None:
    """Refuse a data frame that has the column of labels among those to learn from: every label would look right."""
    name = getattr(labels, "name", None)
    if is_frame(data) and name is not None and name in list(data.columns):
        raise InputError(f"Expected columns to learn from, got the labels {name!r} among them. Leave that column out.")


def lonely_classes(labels: NDArray[np.intp], names: Sequence[str]) -> list[str]:
    """Return the classes that have one label only."""
    return [names[label] for label in np.flatnonzero(np.bincount(labels) == 1).tolist()]


def tell_lonely(lonely: Sequence[str]) -> None:
    """Warn of classes that have one label only: without it no model knows of the class."""
    if lonely:
        shown = ", ".join(map(repr, lonely[:8])) + (", …" if len(lonely) > 8 else "")
        message = (
            f"Only one row is labelled {shown}: a model that has not seen it cannot know the class, so it looks wrong."
        )
        warnings.warn(message, DualtWarning, stacklevel=3)
