"""Which labels are wrong: P(true class = given label | x, given label), by Bayes' rule through T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import InputError
from dualt.estimators import NoisyPosterior, TransitionEstimate, estimate_posterior
from dualt.transition import clean_prior, early_posterior
from dualt.validation import check_fraction, check_transition


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

    @property
    def indices(self) -> NDArray[np.intp]:
        """Row numbers of the issues, most suspect first."""
        return self.ranking[: int(self.is_issue.sum())]

    @property
    def expected_count(self) -> float:
        """Expected number of wrong labels: the off-diagonal of `by_pair`."""
        return float(self.by_pair.sum() - np.trace(self.by_pair))

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

    Examples
    --------
    >>> import dualt
    >>> probs = [[0.9, 0.1]] * 9 + [[0.1, 0.9]] * 9
    >>> issues = dualt.find_label_issues(probs, [0] * 8 + [1] * 10, [[0.9, 0.1], [0.1, 0.9]])
    >>> issues.ranking[0], issues.suggested[8]
    (np.int64(8), np.uint8(0))
    """
    posterior = NoisyPosterior.from_arrays(pred_probs, noisy_labels, class_names)
    return find_posterior_issues(posterior, transition, threshold=threshold, top=top)


def find_posterior_issues(
    posterior: NoisyPosterior,
    transition: TransitionEstimate | ArrayLike | str | None = None,
    *,
    threshold: float | None = None,
    top: int | None = None,
) -> LabelIssues:
    """Find label issues in a `NoisyPosterior`; see `find_label_issues`."""
    if threshold is not None and top is not None:
        raise InputError("Expected a threshold or a number of issues (top), got both.")
    if threshold is not None:
        check_fraction(threshold, "threshold")
    if top is not None and top < 0:
        raise InputError(f"Expected a number of issues (top) of at least 0, got {top}.")
    if transition is None or isinstance(transition, str):
        transition = estimate_posterior(posterior, transition)
    estimate = transition if isinstance(transition, TransitionEstimate) else None
    matrix = check_transition(estimate.transition if estimate else transition, posterior.n_classes)  # type: ignore[arg-type]
    label_counts = posterior.summary.label_counts
    by_pair = label_counts.sum() * (clean_prior(matrix, label_counts)[:, None] * matrix).T
    given, right, suggested, suggested_probability = _score(posterior, matrix)
    if threshold is not None:
        is_issue = right < threshold
    else:
        wanted = top if top is not None else round(float(by_pair.sum() - np.trace(by_pair)))
        is_issue = np.zeros(len(right), bool)
        is_issue[np.argsort(right, kind="stable")[:wanted]] = True
    names = posterior.coder.names
    return LabelIssues(given, right, suggested, suggested_probability, by_pair, is_issue, names, matrix, estimate)


def _score(posterior: NoisyPosterior, matrix: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
    """Apply Bayes' rule to every row, a chunk at a time."""
    n_samples, n_classes = posterior.summary.n_samples, posterior.n_classes
    small = np.min_scalar_type(n_classes - 1)
    given, suggested = np.empty(n_samples, small), np.empty(n_samples, small)
    right, suggested_probability = np.empty(n_samples, np.float32), np.empty(n_samples, np.float32)
    start = 0
    for probs, labels in posterior.chunks():
        part = slice(start, start + len(labels))
        rows = np.arange(len(labels))
        weights = early_posterior(probs, matrix.astype(probs.dtype))
        weights *= matrix.T.astype(probs.dtype)[labels]
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(probs.dtype).tiny)
        best = weights.argmax(axis=1)
        given[part], suggested[part] = labels, best
        right[part], suggested_probability[part] = weights[rows, labels], weights[rows, best]
        start += len(labels)
    return given, right, suggested, suggested_probability
