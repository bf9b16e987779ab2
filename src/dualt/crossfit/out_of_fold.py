"""`cross_fit`: out-of-fold probabilities from data and labels, by several models that err differently."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import shorten as shorten_text
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dualt.crossfit.examples import Kind, read_examples
from dualt.crossfit.folds import OnProgress, check_classifier, fit_folds, group_numbers, make_folds
from dualt.crossfit.models import families_of, fit_family, member_weights, quick_family
from dualt.errors import InputError, LabelsError
from dualt.labels import LabelCoder, as_label_array, is_missing
from dualt.rng import check_seed
from dualt.rows.scaling import scale_classes, share_factors
from dualt.validation import align_labels, as_array, check_same_length, index_of, is_frame


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Probabilities of the given label, each from models that have not seen it; `find_label_issues` takes it as it is.

    Attributes
    ----------
    pred_probs : (n_samples, n_classes)
        Mean of the members.
    class_names : tuple of str
        In the order of the columns.
    given, fold : (n_samples,)
        Given label as class number, and the fold in which the row was left out; −1 where it has no label.
    model : str
        The classifiers that were fitted.
    index
        The index of the data frame or series that the data, else the labels, came in.
    members : (n_models, n_samples, n_classes)
        Out-of-fold probabilities of each model.
    determined : bool or None
        Whether an expert could always tell the class from the example: assumed unless the data are a table.
    choices, weights : (n_models,)
        How strongly each of our models is regularised (its place among the candidates), and its weight in the mean.
    texts : list of str or None
        The texts that were learned from, for the tables and pages of `find_label_issues`; None if the data are others.
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
    texts: Sequence[str] | None = None
    # Estimates carry it.
    out_of_fold: ClassVar[bool] = True

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label: (n_samples,)."""
        return self.given >= 0

    @property
    def agreement(self) -> float:
        """Share of the labels that are the most probable class."""
        known = self.labelled
        return float(np.mean(self.pred_probs[known].argmax(axis=1) == self.given[known]))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The class names, for the readers of tables."""
        return self.class_names

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
        texts = None if self.texts is None else np.array(self.texts, dtype=object)[rows].tolist()
        return replace(self, **chosen, index=index, members=self.members[:, rows], texts=texts)

    def __repr__(self) -> str:
        model = shorten_text(self.model, 60, placeholder=" …")
        return f"OutOfFold(n_samples={len(self)}, n_classes={len(self.class_names)}, model={model})"


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
    random_state = None if random_state is None else check_seed(random_state)
    index = index_of(labels) if index_of(data) is None else index_of(data)
    groups = None if groups is None else align_labels(data, groups, "groups")
    labels = align_labels(data, labels)
    name = getattr(labels, "name", None)
    if is_frame(data) and name is not None and name in list(data.columns):
        raise InputError(f"Expected columns to learn from, got the labels {name!r} among them. Leave that column out.")
    examples = read_examples(data, kind, text)
    targets, class_names, classes = encode(labels)
    check_same_length(examples.n_known, len(targets))
    rows = np.flatnonzero(targets >= 0)
    if groups is not None:
        groups = group_numbers(groups, len(targets))[rows]
    copies = examples.duplicates()
    found = make_folds(targets[rows], cv, groups, random_state, None if copies is None else copies[rows])
    folds = [(rows[train], rows[test]) for train, test in found]
    fold_of = np.full(len(targets), -1)
    for number, (_, test) in enumerate(folds):
        fold_of[test] = number
    if len(rows) < len(targets):
        folds.append((rows, np.flatnonzero(targets < 0)))
    options: dict[str, Any] = {"n_jobs": n_jobs, "on_progress": on_progress}
    fitted, members, choices = [], [], []
    if model is None:
        given = examples, targets, random_state, on_progress
        # Small fits in several BLAS threads spend ten times the CPU on waiting for one another.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, about classes with one row
            for family in [quick_family(*given)] if quick else families_of(*given):
                choice, probs = fit_family(family, targets, len(classes), folds, **options)
                fitted.append(family.classifiers[choice])
                choices.append(choice)
                members.append(probs)
    else:
        fitted = [check_classifier(one) for one in (model if isinstance(model, (list, tuple)) else [model])]
        features = examples.data[:] if examples.kind == "images" else examples.data
        for classifier in fitted:
            probs = fit_folds(classifier, features, targets, folds, classes=classes, **options)
            members.append(scale_classes(probs, share_factors(probs[rows], targets[rows])))  # it may weigh the classes
    # The label of a single row is that of no other: naive Bayes would name it wherever it is undecided.
    each = np.stack(members) * np.where(np.bincount(targets[rows], minlength=len(classes)) == 1, 1e-100, 1)
    each /= np.maximum(each.sum(axis=2, keepdims=True), 1e-300)
    weights = member_weights(each, targets, weighted=examples.kind == "table" and model is None)
    return OutOfFold(
        pred_probs=np.einsum("k,knc->nc", weights, each),
        class_names=class_names,
        given=targets,
        fold=fold_of,
        model=" + ".join(" ".join(str(classifier).split()) for classifier in fitted),
        index=index,
        members=each.astype(np.float32),
        determined=examples.kind != "table",
        choices=tuple(choices),
        weights=weights,
        texts=[" ".join(parts) for parts in zip(*examples.texts, strict=True)] or None,
    )


def encode(labels: Any) -> tuple[NDArray[np.intp], tuple[str, ...], NDArray[Any]]:
    """Return the class number of every row, −1 where it has no label, the class names, and the labels themselves."""
    given = np.atleast_1d(as_array(labels, "labels as numbers or strings", LabelsError))  # None has no dimension
    missing = is_missing(given)
    if missing.all():
        raise LabelsError("Expected at least one label, got none.")
    there = as_label_array(given[~missing])
    coder = LabelCoder.found_in(there)
    codes = np.full(len(given), -1, np.intp)
    codes[~missing] = coder.encode(there)
    return codes, coder.names, np.unique(there) if there.ndim == 1 else np.arange(coder.n_classes)
