"""Which labels are wrong: P(true class = given label | x, given label), by Bayes' rule through T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import InputError
from dualt.estimators import estimate_posterior
from dualt.issues.frames import Cut, Scores, issue_frame, lazy_issue_frame
from dualt.labels import Codes
from dualt.results import TransitionEstimate
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.dask import DaskPosterior
from dualt.rows.floats import surest
from dualt.transition import clean_prior, early_posterior
from dualt.validation import check_count, check_fraction, check_transition


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """What is known of every given label.

    Attributes
    ----------
    given : (n_samples,)
        Given labels as class numbers.
    probability_right : (n_samples,)
        Probability that the given label is the true class.
    suggested : (n_samples,)
        The most probable true class.
    suggested_probability : (n_samples,)
        Its probability.
    by_pair : (n_classes, n_classes)
        `by_pair[given, true]`: expected number of examples with that given label and that true class, as
        the matrix and the label counts imply.
    is_issue : (n_samples,)
        The labels taken to be wrong: as many as are expected to be, unless a threshold or budget was set.
    class_names : tuple of str
    transition : (n_classes, n_classes)
        The matrix that was used.
    transition_estimate : TransitionEstimate or None
        Where it came from; None if it was given.
    """

    given: NDArray[Any]
    probability_right: NDArray[np.float32]
    suggested: NDArray[Any]
    suggested_probability: NDArray[np.float32]
    by_pair: NDArray[np.float64]
    is_issue: NDArray[np.bool_]
    class_names: tuple[str, ...]
    transition: NDArray[np.float64]
    transition_estimate: TransitionEstimate | None

    @cached_property
    def ranking(self) -> NDArray[np.intp]:
        """Row numbers, most suspect first."""
        return np.argsort(self.probability_right, kind="stable")

    @cached_property
    def indices(self) -> NDArray[np.intp]:
        """Row numbers of the issues, most suspect first."""
        issues = np.flatnonzero(self.is_issue)
        return issues[np.argsort(self.probability_right[issues], kind="stable")]

    @property
    def expected_count(self) -> float:
        """Expected number of wrong labels: the off-diagonal of `by_pair`."""
        return float(self.by_pair.sum() - np.trace(self.by_pair))

    def to_frame(self) -> Any:
        """Return every label as a row of a pandas data frame, in the order of the data, with class names."""
        scores = Scores(self.given, self.probability_right, self.suggested, self.suggested_probability)
        return issue_frame(scores, self.is_issue, self.class_names)

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        return (
            f"LabelIssues(n_samples={len(self)}, expected_count={self.expected_count:.1f},"
            f" flagged={int(self.is_issue.sum())})"
        )


def find_label_issues(
    pred_probs: Any,
    noisy_labels: Any,
    transition: TransitionEstimate | ArrayLike | str | None = None,
    *,
    threshold: float | None = None,
    top: int | None = None,
    class_names: Sequence[Any] | None = None,
    n_jobs: int = 1,
) -> LabelIssues:
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
        A matrix, an estimate, or the name of an estimator; by default it is estimated first.
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
        return find_posterior_issues(posterior, transition, threshold=threshold, top=top)
    known = _known(posterior, transition, threshold, top)
    cut = known.wanted if threshold is None else Cut(threshold)
    return cast("LabelIssues", lazy_issue_frame(posterior, partial(_score_chunk, known.matrix), cut))


def find_posterior_issues(
    posterior: NoisyPosterior,
    transition: TransitionEstimate | ArrayLike | str | None = None,
    *,
    threshold: float | None = None,
    top: int | None = None,
) -> LabelIssues:
    """Find label issues in a `NoisyPosterior`; see `find_label_issues`."""
    known = _known(posterior, transition, threshold, top)
    scores = _score(posterior, known.matrix)
    is_issue = _lowest(scores.right, known.wanted) if threshold is None else scores.right < threshold
    return LabelIssues(
        scores.given,
        scores.right,
        scores.suggested,
        scores.suggested_probability,
        known.by_pair,
        is_issue,
        posterior.coder.names,
        known.matrix,
        known.estimate,
    )


class _Known(NamedTuple):
    """What is known before the labels are scored: the matrix, what it implies, and how many labels to flag."""

    matrix: NDArray[np.float64]
    estimate: TransitionEstimate | None
    by_pair: NDArray[np.float64]
    wanted: int


def _known(
    posterior: NoisyPosterior,
    transition: TransitionEstimate | ArrayLike | str | None,
    threshold: float | None,
    top: int | None,
) -> _Known:
    """Check what was asked for, and estimate the matrix unless it was given."""
    if threshold is not None and top is not None:
        raise InputError("Expected a threshold or a number of issues (top), got both.")
    if threshold is not None:
        check_fraction(threshold, "threshold")
    if top is not None:
        top = check_count(top, "a number of issues (top)", least=0)
    if transition is None or isinstance(transition, str):
        transition = estimate_posterior(posterior, transition)
    estimate = transition if isinstance(transition, TransitionEstimate) else None
    matrix = check_transition(estimate.transition if estimate else transition, posterior.n_classes)  # type: ignore[arg-type]
    label_counts = posterior.summary.label_counts
    by_pair = label_counts.sum() * (clean_prior(matrix, label_counts)[:, None] * matrix).T
    wanted = int(top) if top is not None else round(float(by_pair.sum() - np.trace(by_pair)))
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
    n_samples, n_classes = posterior.summary.n_samples, posterior.n_classes
    small = np.min_scalar_type(n_classes - 1)
    given, suggested = np.empty(n_samples, small), np.empty(n_samples, small)
    right, suggested_probability = np.empty(n_samples, np.float32), np.empty(n_samples, np.float32)
    columns = Scores(given, right, suggested, suggested_probability)
    start = 0
    for found in posterior.map(partial(_score_chunk, matrix)):
        for column, values in zip(columns, found, strict=True):
            column[start : start + len(values)] = values
        start += len(found[0])
    return columns


def _score_chunk(matrix: NDArray[np.float64], probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
    weights = early_posterior(probs, matrix.astype(probs.dtype))
    weights *= matrix.T.astype(probs.dtype)[labels]
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(probs.dtype).tiny)
    return labels, weights[np.arange(len(labels)), labels], *surest(weights)
