"""Which labels are wrong: P(true class = given label | x, given label), by Bayes' rule through T."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.audit import Audit, AuditResult, Calibration, as_audit, calibrated_posterior, check_order
from dualt.errors import InputError
from dualt.estimators import estimate_posterior, estimate_verified
from dualt.estimators.views import views_scores
from dualt.issues.frames import Cut, Scores, expected_wrong, lazy_issue_frame
from dualt.issues.label_issues import LabelIssues
from dualt.issues.training_dynamics import TrainingDynamics, rank_dynamics
from dualt.labels import Codes
from dualt.results import TransitionEstimate
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.dask import DaskPosterior
from dualt.rows.floats import entries_at, surest
from dualt.rows.scaling import apply_power, fit_power
from dualt.transition import EarlyPosterior, clean_prior, match_transition
from dualt.validation import ClassNames, check_count, check_fraction, check_transition, index_of

Transition: TypeAlias = TransitionEstimate | ArrayLike
Scorer: TypeAlias = Callable[[NDArray[Any], Codes], tuple[NDArray[Any], ...]]


# Share of the classifier's own probability where the matrix takes all labels to be right, which leaves only ties.
_TIE = 1e-4


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
    class_names: ClassNames | None = ...,
    verified: Audit | tuple[Any, Any] | None = ...,
    n_jobs: int | None = ...,
    determined: bool | None = ...,
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
    class_names: ClassNames | None = ...,
    verified: Audit | tuple[Any, Any] | None = ...,
    n_jobs: int | None = ...,
    determined: bool | None = ...,
) -> LabelIssues: ...
def find_label_issues(
    pred_probs: Any,
    noisy_labels: Any,
    transition: Transition | None = None,
    *,
    estimator: str | None = None,
    threshold: float | None = None,
    top: int | None = None,
    class_names: ClassNames | None = None,
    verified: Audit | tuple[Any, Any] | None = None,
    n_jobs: int | None = 1,
    determined: bool | None = None,
) -> Any:
    """Find the labels that are probably wrong, and the class that each should have.

    With p calibrated to the given labels by one power, q its clean posterior after ten EM steps (stopped early, it
    follows the errors of p less than `dualt.clean_posterior` does), and y the given label,
    P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky. The label is right with the probability of i = y, and the suggestion
    is the most probable i. As many labels are flagged as the matrix expects to be wrong, the least probable first:
    *probably wrong* if another class is likelier, else *doubtful*.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Out-of-fold probabilities of the given label. Several models: a list of such arrays, an array
        (n_models, n_samples, n_classes), or what `dualt.cross_fit` returns; their opinions are pooled. Or the
        `TrainingDynamics` of one training run: in sample, so that without a `transition` labels are ranked by their
        mean margin, and no matrix is estimated.
    noisy_labels : (n_samples,)
        A row whose label is missing (None, NaN or the empty text) is never flagged.
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
    verified
        (row numbers, true labels) of a random sample that a person has checked, or an `Audit`: they calibrate the
        probabilities, the suggestions and the expected numbers, and the verified rows are known.
    n_jobs
        How many threads read the rows; the result does not depend on it.
    determined
        Could an expert always tell the class from the example? See `dualt.estimate_transition`.

    Returns
    -------
    LabelIssues
        Of a Dask array or data frame instead a Dask data frame with the columns of `LabelIssues.to_frame`, indexed by
        row number, lazy once the matrix is known.

    Examples
    --------
    >>> import dualt
    >>> probs = [[0.9, 0.1]] * 9 + [[0.1, 0.9]] * 9
    >>> issues = dualt.find_label_issues(probs, [0] * 8 + [1] * 10, [[0.9, 0.1], [0.1, 0.9]])
    >>> issues.ranking[0], issues.suggested[8]
    (np.int64(8), np.uint8(0))
    """
    if isinstance(pred_probs, TrainingDynamics):
        if transition is None:
            if estimator is not None or verified is not None:
                raise InputError(
                    "Expected a transition or none with training dynamics, got an estimator or verified labels: the"
                    " dynamics are in sample, and no matrix is estimated from them."
                )
            _check_cut(threshold, top)
            found = rank_dynamics(pred_probs, noisy_labels, threshold, top, class_names)
            return replace(found, index=index_of(noisy_labels))
        class_names = pred_probs.class_names if class_names is None else class_names
        pred_probs = pred_probs.mean_probs
    check_order(verified, pred_probs, noisy_labels)
    posterior = as_posterior(pred_probs, noisy_labels, class_names, n_jobs=n_jobs, determined=determined)
    rows = posterior.labelled
    if verified is not None:
        verified = as_audit(verified) if rows is None else as_audit(verified).among(rows)
        if transition is not None:
            raise InputError("Expected verified labels or a transition, got both: they correct an estimate.")
        transition, estimator = estimate_verified(posterior, estimate_posterior(posterior, estimator), verified), None
    if not isinstance(posterior, DaskPosterior):
        found = find_posterior_issues(posterior, transition, estimator=estimator, threshold=threshold, top=top)
        found = found if rows is None else found.spread(rows, posterior.n_given)
        index = index_of(pred_probs)
        return replace(found, index=index_of(noisy_labels) if index is None else index)
    known = _prepare(posterior, transition, estimator, threshold, top)
    cut = Cut(threshold) if threshold is not None else top
    know = None if known.audit is None else partial(_know_verified, known.audit)
    return lazy_issue_frame(posterior, known.scorer, cut, know)


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
    if posterior.members is not None and (known.estimate is None or known.estimate.audit is None):
        small = np.min_scalar_type(posterior.n_classes - 1)
        given, right, suggested, probability = views_scores(posterior, known.matrix, posterior.determined)
        scores = Scores(
            given.astype(small), right.astype(np.float32), suggested.astype(small), probability.astype(np.float32)
        )
    else:
        scores = _score(posterior, known.scorer)
    if known.audit is not None:
        scores = _know_verified(known.audit, scores)
    is_issue = scores.right < threshold if threshold is not None else _flag(scores, top)
    return LabelIssues(*scores, known.by_pair, is_issue, posterior.coder.names, known.matrix, known.estimate,
                       label_texts=posterior.coder.label_texts)  # fmt: skip


class _Known(NamedTuple):
    """What is known before the labels are scored: the matrix and what it implies."""

    matrix: NDArray[np.float64]
    estimate: TransitionEstimate | None
    scorer: Scorer
    by_pair: NDArray[np.float64]
    audit: AuditResult | None = None


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
    _check_cut(threshold, top)
    if transition is None:
        transition = estimate_posterior(posterior, estimator)
    estimate = transition if isinstance(transition, TransitionEstimate) else None
    given: Any = transition if estimate is None else estimate.transition
    matrix = check_transition(given, posterior.n_classes)
    source = estimate
    if estimate is not None:
        matched = _match(matrix, estimate, posterior.coder.names)
        # The other figures of an estimate that was reordered are those of classes in another order.
        estimate, matrix = estimate if matched is matrix else None, matched
    label_counts = posterior.summary.label_counts
    audit = None if estimate is None else _audit_of(estimate, posterior)
    if audit is not None:
        by_pair = audit.joint.T
    else:
        shares = (clean_prior(matrix, label_counts)[:, None] * matrix).T
        # As many of a label as there are, also where no prior explains so few.
        by_pair = label_counts[:, None] * shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return _Known(matrix, estimate, _scorer(source, matrix, posterior), by_pair, audit)


def _check_cut(threshold: float | None, top: int | None) -> None:
    """Refuse a threshold and a number of issues together, or one that is out of range."""
    if threshold is not None and top is not None:
        raise InputError("Expected a threshold or a number of issues (top), got both.")
    if threshold is not None:
        check_fraction(threshold, "threshold")
    if top is not None:
        check_count(top, "a number of issues (top)", least=0)


def _match(matrix: NDArray[np.float64], estimate: TransitionEstimate, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the matrix of an estimate in the order of the data's classes."""
    matched = match_transition(matrix, estimate.class_names, names)
    if matched is not matrix and estimate.audit is not None:
        raise InputError(
            "Expected the classes in the order of the estimate, whose verified labels are in that order too, got them"
            " in another. Reorder the columns of probabilities."
        )
    return matched


def _scorer(estimate: TransitionEstimate | None, matrix: NDArray[np.float64], posterior: NoisyPosterior) -> Scorer:
    """Return what scores a chunk: as verified labels have calibrated it, else by Bayes' rule."""
    if estimate is not None and estimate.audit is not None:
        return partial(_score_calibrated, estimate.audit.calibration)
    tie = _TIE if (np.diagonal(matrix) == 1).all() else 0.0
    return BayesScorer(EarlyPosterior(matrix, posterior.dtype), fit_power(posterior.summary), tie)


@dataclass(frozen=True)
class BayesScorer:
    """From (probabilities, label codes) of a chunk to the columns of its `Scores`, by Bayes' rule through T."""

    clean_posterior: EarlyPosterior
    power: float = 1.0
    tie: float = 0.0

    def __call__(self, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
        """Return given, P(right), suggested, its probability."""
        probs = apply_power(probs, self.power, tail=0)
        right, suggested, probability = self.clean_posterior.scores(probs, labels)
        if self.tie:
            right = right + probs.dtype.type(self.tie) * (entries_at(probs, labels) - right)
        # Where the matrix rules out all that the classifier expects, one class is as good as another.
        probability = np.where(suggested == labels, right, probability)
        return labels, right, suggested, np.where(probability > 0, probability, 1 / probs.shape[1])


def _score_calibrated(calibration: Calibration, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
    weights = calibrated_posterior(calibration, probs, labels)
    return labels, entries_at(weights, labels), *surest(weights)


def _audit_of(estimate: TransitionEstimate, posterior: NoisyPosterior) -> AuditResult | None:
    """Return the audit of an estimate if its rows are rows of these data; of others, only its calibration is used."""
    audit = estimate.audit
    if audit is None or estimate.n_samples != posterior.n_samples:
        return None
    same = posterior.take(audit.rows)[1] == audit.verified.given
    return audit if same.all() else None


def _know_verified(audit: AuditResult, scores: Scores, start: int = 0) -> Scores:
    """Return the scores with certainty in the verified rows: what a person has checked need not be predicted."""
    inside = np.flatnonzero((audit.rows >= start) & (audit.rows < start + len(scores.given)))
    rows, true = audit.rows[inside] - start, audit.verified.true[inside]
    right, suggested, probability = scores.right.copy(), scores.suggested.copy(), scores.suggested_probability.copy()
    right[rows], suggested[rows], probability[rows] = scores.given[rows] == true, true, 1
    return Scores(scores.given, right, suggested, probability)


def _flag(scores: Scores, top: int | None) -> NDArray[np.bool_]:
    """Return the `top` least probable labels; by default those to which another class is preferred, and more if needed.

    The next least probable ones join them until as many are flagged as are expected to be wrong, Σ(1 − P(right)).
    """
    if top is not None:
        return _lowest(scores.right, top)
    flagged = np.asarray(scores.suggested != scores.given)
    wanted = expected_wrong(scores) - int(flagged.sum())
    if wanted > 0:
        others = np.flatnonzero(~flagged)
        flagged[others[_lowest(scores.right[others], wanted)]] = True
    return flagged


def _lowest(values: NDArray[np.float32], wanted: int) -> NDArray[np.bool_]:
    """Return a mask of the `wanted` lowest values, the first of equal ones; sorting all would take more memory."""
    if not 0 < wanted < len(values):
        return np.full(len(values), wanted > 0)
    highest = np.partition(values, wanted - 1)[wanted - 1]
    lowest: NDArray[np.bool_] = values < highest
    lowest[np.flatnonzero(values == highest)[: wanted - int(lowest.sum())]] = True
    return lowest


def _score(posterior: NoisyPosterior, scorer: Scorer) -> Scores:
    """Score every row, a chunk at a time."""
    small = np.min_scalar_type(posterior.n_classes - 1)
    columns = Scores(*(np.empty(posterior.n_samples, dtype) for dtype in (small, np.float32, small, np.float32)))
    start = 0
    for found in posterior.map(scorer):
        stop = start + len(found[0])
        for column, values in zip(columns, found, strict=True):
            column[start:stop] = values
        start = stop
    return columns
