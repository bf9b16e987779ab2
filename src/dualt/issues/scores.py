"""Which labels are wrong: P(true class = given label | x, given label), by Bayes' rule through T."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypedDict, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.audit import Audit, AuditResult, Calibration, check_order
from dualt.errors import InputError
from dualt.estimators import estimate_posterior, estimate_verified
from dualt.estimators.views import views_scores
from dualt.issues.label_issues import LabelIssues, Scores, check_cut, expected_wrong, flag, issue_frame
from dualt.issues.training_dynamics import TrainingDynamics, rank_dynamics
from dualt.labels import Codes
from dualt.results import TransitionEstimate
from dualt.rows import NoisyPosterior, as_posterior
from dualt.rows.chunks import entries_at, surest
from dualt.rows.dask import DaskPosterior, delayed, lazy_frame
from dualt.rows.scaling import apply_power
from dualt.transition import EarlyPosterior, clean_prior, matrix_for
from dualt.validation import ClassNames, index_of, is_frame

if TYPE_CHECKING:
    from typing_extensions import Unpack

Transition: TypeAlias = TransitionEstimate | ArrayLike
# From (probabilities, label codes) of a chunk to the columns of its `Scores`.
Scorer: TypeAlias = Callable[[NDArray[Any], Codes], tuple[NDArray[Any], ...]]

# Share of the classifier's own probability where the matrix takes all labels to be right, which leaves only ties.
_TIE = 1e-4


class DaskCollection(Protocol):
    """A Dask array or data frame."""

    def __dask_graph__(self) -> Any: ...


class _Options(TypedDict, total=False):
    estimator: str | None
    threshold: float | None
    top: int | None
    class_names: ClassNames | None
    verified: Audit | tuple[Any, Any] | None
    n_jobs: int | None
    determined: bool | None


@overload
def find_label_issues(
    pred_probs: DaskCollection, noisy_labels: Any, transition: Transition | None = ..., **options: Unpack[_Options]
) -> Any: ...
@overload
def find_label_issues(
    pred_probs: Any, noisy_labels: Any, transition: Transition | None = ..., **options: Unpack[_Options]
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

    With p calibrated to the given labels by one power, q its clean posterior after eight EM steps (stopped early, it
    follows the errors of p less than `dualt.clean_posterior` does), and y the given label,
    P(Y=i | x, y) = q_i · T_iy / Σ_k q_k · T_ky. The label is right with the probability of i = y, and the suggestion
    is the most probable i. (Several models: the pooled opinion of `dualt.estimators.views`.) Labels for which another
    class is likelier are flagged as *probably wrong*, then the least probable ones as *doubtful*, until as many are
    flagged as the matrix expects to be wrong.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        Out-of-fold probabilities of the given label. Several models: a list of such arrays, an array
        (n_models, n_samples, n_classes), or what `dualt.cross_fit` returns. Or `TrainingDynamics`, which are in sample:
        without a `transition`, labels are ranked by their mean margin, and no matrix is estimated.
    noisy_labels : (n_samples,)
        A row whose label is missing (None, NaN or the empty text) is never flagged.
    transition
        A matrix or an estimate; by default it is estimated first.
    estimator
        Name of the estimator to use then; see `dualt.estimate_transition`.
    threshold
        Flag the labels that are right with less than this probability, instead.
    top
        Flag this many, instead.
    class_names
        In the order of the columns.
    verified
        (row positions, true labels) of a random sample that a person has checked, or an `Audit`: they calibrate the
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
            return rank_dynamics(pred_probs, noisy_labels, threshold, top, class_names)
        pred_probs = pred_probs.mean_probs
    check_order(verified, pred_probs, noisy_labels)
    posterior = as_posterior(pred_probs, noisy_labels, class_names, n_jobs=n_jobs, determined=determined)
    if verified is not None:
        if transition is not None:
            raise InputError("Expected verified labels or a transition, got both: they correct an estimate.")
        transition, estimator = estimate_verified(posterior, estimate_posterior(posterior, estimator), verified), None
    if isinstance(posterior, DaskPosterior):
        check_cut(threshold, top)
        return _lazy_frame(posterior, _prepare(posterior, transition, estimator), threshold, top)
    found = find_posterior_issues(posterior, transition, estimator=estimator, threshold=threshold, top=top)
    # A data frame may have a class of that name.
    index, texts = index_of(pred_probs), None if is_frame(pred_probs) else getattr(pred_probs, "texts", None)
    return replace(found, index=index_of(noisy_labels) if index is None else index, texts=texts)


def find_posterior_issues(
    posterior: NoisyPosterior,
    transition: Transition | None = None,
    *,
    estimator: str | None = None,
    threshold: float | None = None,
    top: int | None = None,
) -> LabelIssues:
    """Find label issues in a `NoisyPosterior`, of all rows that were passed; see `find_label_issues`."""
    check_cut(threshold, top)
    known = _prepare(posterior, transition, estimator)
    if posterior.members is not None and not known.is_calibrated:
        chunks: Iterable[Any] = [views_scores(posterior, known.matrix, posterior.determined)]
    else:
        chunks = posterior.map(known.scorer)
    scores = _collect(chunks, posterior.n_samples, posterior.n_classes)
    if known.audit is not None:
        scores = _know_verified(known.audit, scores)
    is_issue = flag(scores.right, scores.suggested != scores.given, expected_wrong(known.by_pair), threshold, top)
    found = LabelIssues(*scores, known.by_pair, is_issue, posterior.coder.names, known.matrix, known.estimate)
    return found if posterior.labelled is None else found.spread(posterior.labelled, posterior.n_given)


def second_likeliest(
    posterior: NoisyPosterior, found: LabelIssues, rows: NDArray[np.intp], right: NDArray[Any]
) -> list[tuple[int, float]]:
    """Return the likeliest class other than the given label, and its share of what `right` leaves to other classes."""
    probs, labels = posterior.take(rows)
    clean_posterior = EarlyPosterior(found.transition, posterior.dtype)
    weights = clean_posterior(apply_power(probs, posterior.power, tail=0)) * found.transition.T[labels]
    np.put_along_axis(weights, labels[:, None], -1, axis=1)  # below the zeros of a matrix that leaves no other class
    best, largest = surest(weights)
    shares = largest / np.maximum(np.maximum(weights, 0).sum(axis=1), np.finfo(weights.dtype).tiny)
    return list(zip(best.tolist(), ((1 - right) * shares).tolist(), strict=True))


class _Known(NamedTuple):
    """What is known before the labels are scored; of an audit of other rows only the calibration is used."""

    matrix: NDArray[np.float64]
    estimate: TransitionEstimate | None
    scorer: Scorer
    by_pair: NDArray[np.float64]
    is_calibrated: bool = False
    audit: AuditResult | None = None


def _prepare(posterior: NoisyPosterior, transition: Transition | None, estimator: str | None) -> _Known:
    """Return the matrix, estimated unless it was given, what scores a chunk, and the expected numbers of pairs."""
    if isinstance(transition, str):
        raise InputError(f"Expected a matrix or an estimate as transition, got a name. Pass estimator={transition!r}.")
    if transition is not None and estimator is not None:
        raise InputError("Expected a transition or an estimator to find one, got both.")
    transition = estimate_posterior(posterior, estimator) if transition is None else transition
    estimate, audit, names = None, None, posterior.coder.names
    matrix = matrix_for(names, transition, posterior.n_classes)
    if isinstance(transition, TransitionEstimate):
        own, audit = transition.class_names, transition.audit
        # The other figures of an estimate are in the order of its own classes.
        estimate = transition if own == names or {*own} != {*names} else None
    # The expected number of rows with given label j and true class i; each label keeps its count.
    label_counts = posterior.summary.label_counts
    prior = clean_prior(matrix, label_counts) if estimate is None else estimate.clean_prior
    shares = (prior[:, None] * matrix).T
    by_pair = np.asarray(label_counts[:, None] * shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))
    if audit is None:
        tie = _TIE if (np.diagonal(matrix) == 1).all() else 0.0
        scorer = partial(_bayes_scores, EarlyPosterior(matrix, posterior.dtype), posterior.power, tie)
        return _Known(matrix, estimate, scorer, by_pair)
    if estimate is None:
        raise InputError(
            "Expected the classes in the order of the estimate, whose verified labels are in that order too, got them"
            " in another. Reorder the columns of probabilities."
        )
    known = _Known(matrix, estimate, partial(_calibrated_scores, audit.calibration), by_pair, is_calibrated=True)
    same_rows = estimate.n_samples == posterior.n_samples
    if same_rows and np.array_equal(posterior.take(audit.rows)[1], audit.verified.given):
        return known._replace(by_pair=audit.joint.T, audit=audit)
    return known


def _bayes_scores(
    clean_posterior: EarlyPosterior, power: float, tie: float, probs: NDArray[Any], labels: Codes
) -> tuple[NDArray[Any], ...]:
    probs = apply_power(probs, power, tail=0)
    right, suggested, probability = clean_posterior.scores(probs, labels)
    if tie:
        right = right + probs.dtype.type(tie) * (entries_at(probs, labels) - right)
    probability = np.where(suggested == labels, right, probability)
    # Where the matrix rules out all that the classifier expects, one class is as good as another.
    return labels, right, suggested, np.where(probability > 0, probability, 1 / probs.shape[1])


def _calibrated_scores(calibration: Calibration, probs: NDArray[Any], labels: Codes) -> tuple[NDArray[Any], ...]:
    weights = calibration.predict(probs, labels)
    return labels, entries_at(weights, labels), *surest(weights)


def _collect(chunks: Iterable[tuple[NDArray[Any], ...]], n_rows: int, n_classes: int) -> Scores:
    """Return the scores of consecutive chunks as one, in as few bytes as hold them."""
    small = np.min_scalar_type(n_classes - 1)
    columns = Scores(*(np.empty(n_rows, dtype) for dtype in (small, np.float32, small, np.float32)))
    start = 0
    for found in chunks:
        stop = start + len(found[0])
        for column, values in zip(columns, found, strict=True):
            column[start:stop] = values
        start = stop
    return columns


def _know_verified(audit: AuditResult, scores: Scores, start: int = 0) -> Scores:
    """Return the scores with certainty in the verified rows; `start` is the number of the first row."""
    inside = np.flatnonzero((audit.rows >= start) & (audit.rows < start + len(scores.given)))
    rows, true = audit.rows[inside] - start, audit.verified.true[inside]
    right, suggested, probability = scores.right.copy(), scores.suggested.copy(), scores.suggested_probability.copy()
    right[rows], suggested[rows], probability[rows] = scores.given[rows] == true, true, 1
    return Scores(scores.given, right, suggested, probability)


def _lazy_frame(posterior: DaskPosterior, known: _Known, threshold: float | None, top: int | None) -> Any:
    """Return a Dask data frame; with a threshold each partition is computed alone, else one task ranks all labels."""
    names, starts = posterior.coder.names, posterior.block_starts
    chunks = zip(posterior.delayed_map(known.scorer), np.diff(starts).tolist(), strict=True)
    parts = [delayed(_collect)(some, n_rows, len(names)) for some, n_rows in chunks]
    if known.audit is not None:
        know = delayed(partial(_know_verified, known.audit))
        parts = [know(part, start) for part, start in zip(parts, starts[:-1], strict=True)]
    groups = [parts] if threshold is None else [[part] for part in parts]
    expected = expected_wrong(known.by_pair)
    ranked = [delayed(_flagged)(some, expected, threshold, top) for some in groups]
    flags = [found[number] for found, some in zip(ranked, groups, strict=True) for number in range(len(some))]
    columns = zip(parts, flags, starts[:-1], strict=True)
    frames = [delayed(issue_frame)(part, flagged, names, start) for part, flagged, start in columns]
    meta = issue_frame(_collect([], 0, len(names)), np.zeros(0, bool), names)
    return lazy_frame(frames, meta, (*starts[:-1], posterior.n_samples - 1))


def _flagged(parts: list[Scores], expected: float, threshold: float | None, top: int | None) -> list[NDArray[np.bool_]]:
    """Return which labels of each part to flag among those of all."""
    whole = Scores(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    flagged = flag(whole.right, whole.suggested != whole.given, expected, threshold, top)
    return np.split(flagged, np.cumsum([len(part.given) for part in parts])[:-1])
