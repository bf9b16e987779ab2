"""Which labels are wrong: P(true class = given label | x, given label), by Bayes' rule through T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import InputError
from dualt.estimators import estimate_posterior
from dualt.issues.frames import Cut, Scores, lazy_issue_frame
from dualt.issues.label_issues import LabelIssues
from dualt.labels import Codes
from dualt.results import TransitionEstimate
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.dask import DaskPosterior
from dualt.rows.floats import surest
from dualt.transition import clean_prior, early_posterior, match_transition
from dualt.validation import check_count, check_fraction, check_transition, index_of

Transition: TypeAlias = TransitionEstimate | ArrayLike


class DaskCollection(Protocol):
    """A Dask array or data frame."""

    def __dask_graph__(self) -> Any: ...


@overload
def find_label_issues(
    pred_probs: DaskCollection,
    noisy_labels: Any,
    transition: Transition | None = ...,
    *,
    estimator: str | None = ...,
    threshold: float | None = ...,
    top: int | None = ...,
    class_names: Sequence[Any] | None = ...,
    n_jobs: int = ...,
) -> Any: ...
@overload
def find_label_issues(
    pred_probs: Any,
    noisy_labels: Any,
    transition: Transition | None = ...,
    *,
    estimator: str | None = ...,
    threshold: float | None = ...,
    top: int | None = ...,
    class_names: Sequence[Any] | None = ...,
    n_jobs: int = ...,
) -> LabelIssues: ...
def find_label_issues(
    pred_probs: Any,
    noisy_labels: Any,
    transition: Transition | None = None,
    *,
    estimator: str | None = None,
    threshold: float | None = None,
    top: int | None = None,
    class_names: Sequence[Any] | None = None,
    n_jobs: int = 1,
) -> Any:
    """Find the labels that are probably wrong, and the class that each should have.

    With q the clean posterior of x and y its given label,
    P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky: the label is right with the probability of i = y, and the
    suggestion is the most probable i.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Out-of-fold probabilities of the given label.
    noisy_labels : (n_samples,)
    transition
        A matrix or an estimate; by default it is estimated first.
    estimator
        Name of the estimator to use then; see `dualt.estimate_transition`.
    threshold
        Flag the labels that are right with less than this probability, instead of the expected number.
    top
        Flag this many, instead.
    class_names
        In the order of the columns.
    n_jobs
        How many threads read the rows; the result does not depend on it.

    Returns
    -------
    LabelIssues
        Of a Dask array or data frame instead a Dask data frame like that of `LabelIssues.to_frame`, lazy
        once the matrix is known.

    Examples
    --------
    >>> import dualt
    >>> probs = [[0.9, 0.1]] * 9 + [[0.1, 0.9]] * 9
    >>> issues = dualt.find_label_issues(probs, [0] * 8 + [1] * 10, [[0.9, 0.1], [0.1, 0.9]])
    >>> issues.ranking[0], issues.suggested[8]
    (np.int64(8), np.uint8(0))
    """
    posterior = as_posterior(pred_probs, noisy_labels, class_names, n_jobs=n_jobs)
    if not isinstance(posterior, DaskPosterior):
        found = find_posterior_issues(posterior, transition, estimator=estimator, threshold=threshold, top=top)
        index = index_of(pred_probs)
        return replace(found, index=index_of(noisy_labels) if index is None else index)
    known = _prepare(posterior, transition, estimator, threshold, top)
    cut = known.wanted if threshold is None else Cut(threshold)
    return lazy_issue_frame(posterior, partial(_score_chunk, known.matrix), cut)


def find_posterior_issues(
    posterior: NoisyPosterior,
    transition: Transition | None = None,
    *,
    estimator: str | None = None,
    threshold: float | None = None,
    top: int | None = None,
) -> LabelIssues:
    """Find label issues in a `NoisyPosterior`; see `find_label_issues`."""
    known = _prepare(posterior, transition, estimator, threshold, top)
    scores = _score(posterior, known.matrix)
    is_issue = _lowest(scores.right, known.wanted) if threshold is None else scores.right < threshold
    return LabelIssues(*scores, known.by_pair, is_issue, posterior.coder.names, known.matrix, known.estimate,
                       label_texts=posterior.coder.label_texts)  # fmt: skip


class _Known(NamedTuple):
    """What is known before the labels are scored: the matrix, what it implies, and how many labels to flag."""

    matrix: NDArray[np.float64]
    estimate: TransitionEstimate | None
    by_pair: NDArray[np.float64]
    wanted: int


def _prepare(
    posterior: NoisyPosterior,
    transition: Transition | None,
    estimator: str | None,
    threshold: float | None,
    top: int | None,
) -> _Known:
    """Check what was asked for, and estimate the matrix unless it was given."""
    if isinstance(transition, str):
        raise InputError(f"Expected a matrix or an estimate as transition, got a name. Pass estimator={transition!r}.")
    if transition is not None and estimator is not None:
        raise InputError("Expected a transition or an estimator to find one, got both.")
    if threshold is not None and top is not None:
        raise InputError("Expected a threshold or a number of issues (top), got both.")
    if threshold is not None:
        check_fraction(threshold, "threshold")
    if top is not None:
        top = check_count(top, "a number of issues (top)", least=0)
    if transition is None:
        transition = estimate_posterior(posterior, estimator)
    estimate = transition if isinstance(transition, TransitionEstimate) else None
    matrix = check_transition(transition if estimate is None else estimate.transition, posterior.n_classes)
    if estimate is not None:
        matched = match_transition(matrix, estimate.class_names, posterior.coder.names)
        # The figures of an estimate that was reordered are those of classes in another order.
        estimate, matrix = estimate if matched is matrix else None, matched
    label_counts = posterior.summary.label_counts
    by_pair = label_counts.sum() * (clean_prior(matrix, label_counts)[:, None] * matrix).T
    wanted = top if top is not None else round(float(by_pair.sum() - np.trace(by_pair)))
    return _Known(matrix, estimate, by_pair, wanted)


def _lowest(values: NDArray[np.float32], wanted: int) -> NDArray[np.bool_]:
    """Tell which are the `wanted` lowest values, of equal ones the first; sorting all would take more memory."""
    if not 0 < wanted < len(values):
        return np.full(len(values), wanted > 0)
    highest = np.partition(values, wanted - 1)[wanted - 1]
    lowest: NDArray[np.bool_] = values < highest
    lowest[np.flatnonzero(values == highest)[: wanted - int(lowest.sum())]] = True
    return lowest


def _score(posterior: NoisyPosterior, matrix: NDArray[np.float64]) -> Scores:
    """Apply Bayes' rule to every row, a chunk at a time."""
    small = np.min_scalar_type(posterior.n_classes - 1)
    columns = Scores(*(np.empty(posterior.n_samples, dtype) for dtype in (small, np.float32, small, np.float32)))
    start = 0
    for found in posterior.map(partial(_score_chunk, matrix)):
        stop = start + len(found[0])
        for column, values in zip(columns, found, strict=True):
            column[start:stop] = values
        start = stop
    return columns


def _score_chunk(matrix: NDArray[np.float64], probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
    """Return the columns of `Scores` of a chunk."""
    matrix = matrix.astype(probs.dtype)
    weights = early_posterior(probs, matrix)
    weights *= matrix.T[labels]
    of_given, total = weights[np.arange(len(labels)), labels], weights.sum(axis=1)
    ruled_out = np.flatnonzero(total == 0)
    if len(ruled_out):
        # No class that x may have is ever given this label, which then tells nothing: the clean posterior suggests.
        clean = early_posterior(probs[ruled_out], matrix)
        clean[~clean.any(axis=1)] = 1
        weights[ruled_out], total[ruled_out] = clean, clean.sum(axis=1)
    suggested, most = surest(weights)
    return labels, of_given / total, suggested, most / total
