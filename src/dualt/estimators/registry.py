"""Every estimator by name: what the command line, `--compare` and the documentation read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dualt.audit import Audit, as_audit, check_order, correct_by_audit, corrected_fit
from dualt.errors import InputError, UnknownNameError
from dualt.estimators.clean_count import clean_count
from dualt.estimators.confident_joint import confident_joint
from dualt.estimators.dual_t import dual_t
from dualt.estimators.hoc import hoc
from dualt.estimators.joint import joint
from dualt.estimators.oracle import oracle
from dualt.estimators.selective import selective
from dualt.estimators.spade import spade
from dualt.estimators.t import t_estimator
from dualt.estimators.views import views
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Fit
from dualt.rows.entry import as_posterior
from dualt.rows.posterior import NoisyPosterior
from dualt.validation import ClassNames


@dataclass(frozen=True)
class EstimatorEntry:
    """An estimator, from a `NoisyPosterior` and keyword options to a `Fit`, and what it does in one line.

    `needs_members` if it reads the probabilities of several models; not `for_many_classes` if it would take minutes
    with more than `MANY_CLASSES`, and is then left out of comparisons.
    """

    function: Callable[..., Fit]
    summary: str
    needs_clean_labels: bool = False
    needs_members: bool = False
    for_many_classes: bool = True


ESTIMATORS: dict[str, EstimatorEntry] = {
    "t": EstimatorEntry(t_estimator, "reads each row at its anchor, the example most surely of the class"),
    "dual-t": EstimatorEntry(dual_t, "T♣ at anchors times T♠ by counting; for over-confident probabilities"),
    "spade": EstimatorEntry(spade, "T♠ alone: given labels counted by predicted class"),
    "confident-joint": EstimatorEntry(confident_joint, "counts examples that reach their class's mean confidence"),
    "clean-count": EstimatorEntry(clean_count, "counts given labels among examples whose true class is clear"),
    "views": EstimatorEntry(
        views, "hears the given label and several models as voices about the true class", needs_members=True
    ),
    "selective": EstimatorEntry(selective, "counts the examples of highest score among which a label is most frequent"),
    "joint": EstimatorEntry(
        joint, "trains a small head and T together; best if noise depends on the class alone", for_many_classes=False
    ),
    "hoc": EstimatorEntry(hoc, "matches how often nearest neighbours agree in their labels", for_many_classes=False),
    "oracle": EstimatorEntry(oracle, "counts clean against given labels: the yardstick", needs_clean_labels=True),
}
DEFAULT_ESTIMATOR, DEFAULT_WITH_MEMBERS = "clean-count", "views"
MANY_CLASSES = 100


def comparable(n_classes: int) -> list[str]:
    """Return the names of the estimators to compare on data with this many classes and unknown true labels."""
    return [
        name
        for name, entry in ESTIMATORS.items()
        if not (entry.needs_clean_labels or entry.needs_members)
        and (entry.for_many_classes or n_classes <= MANY_CLASSES)
    ]


def estimate_transition(
    pred_probs: Any,
    noisy_labels: Any,
    estimator: str | None = None,
    *,
    class_names: ClassNames | None = None,
    verified: Audit | tuple[Any, Any] | None = None,
    n_jobs: int | None = 1,
    out_of_fold: bool | None = None,
    determined: bool | None = None,
    **options: Any,
) -> TransitionEstimate:
    """Estimate `transition[i, j] = P(given label j | true class i)` from noisy labels alone.

    Parameters
    ----------
    pred_probs : (n_samples, n_classes)
        A classifier's probabilities of the *given* label, best out-of-fold. Array, memory map, list or
        data frame. Better, those of several models that err differently: a list of such arrays, an array
        (n_models, n_samples, n_classes), or what `dualt.cross_fit` returns.
    noisy_labels : (n_samples,)
        Given labels: class numbers from 0, class names, or one-hot rows. Rows whose label is missing (None, NaN or
        the empty text) are left out.
    estimator
        One of `dualt.estimators.ESTIMATORS`; by default `clean-count`, with several models `views`.
    class_names
        In the order of the columns; needed for string labels unless each class occurs.
    verified
        (row positions, true labels) of a *random* sample that a person has checked, or an `Audit`, as
        `dualt.audit.read_audit` reads it from the file of `dualt audit`. They calibrate the estimate, and its
        intervals then hold whatever its bias was.
    n_jobs
        How many threads read the rows; −1 for all cores.
    out_of_fold
        Whether the classifier had not seen the rows whose probabilities these are, if you know; for the warnings.
    determined
        Could an expert always tell the class from the example? True for most texts and images: what good models
        contradict is then noise. False where classes overlap, as in predictions of risk: then it may be chance. By
        default what `dualt.cross_fit` assumes for its kind of data, else unknown. For `clean-count` and `views`.
    **options
        Options of the estimator, such as `anchor="quantile"` for `t` and `dual-t`.

    Examples
    --------
    >>> import dualt, numpy as np
    >>> clean = np.repeat([0, 1], 500)
    >>> given = dualt.noise.corrupt(clean, dualt.noise.symmetric(2, 0.2))
    >>> probs = np.where(clean[:, None] == [0, 1], 0.99, 0.01)
    >>> estimate = dualt.estimate_transition(probs, given)
    >>> estimate.transition.round(1)
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """
    check_order(verified, pred_probs, noisy_labels)
    posterior = as_posterior(
        pred_probs, noisy_labels, class_names, n_jobs=n_jobs, out_of_fold=out_of_fold, determined=determined
    )
    estimate = estimate_posterior(posterior, estimator, **options)
    return estimate if verified is None else estimate_verified(posterior, estimate, verified)


def estimate_posterior(posterior: NoisyPosterior, estimator: str | None = None, **options: Any) -> TransitionEstimate:
    """Estimate from a `NoisyPosterior`, whose first pass several estimators share."""
    if estimator is None:
        estimator = DEFAULT_ESTIMATOR if posterior.members is None else DEFAULT_WITH_MEMBERS
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise UnknownNameError("estimator", estimator, ESTIMATORS)
    function = ESTIMATORS[estimator].function
    allowed = getattr(function, "__kwdefaults__", None) or {}
    for name in options:
        if name not in allowed:
            known = ", ".join(sorted(allowed)) or "none"
            raise InputError(f"Estimator {estimator!r} has no option {name!r}. Its options: {known}.")
    if "determined" in allowed:
        options = {"determined": posterior.determined, **options}
    fit = function(posterior, **options)
    return TransitionEstimate(estimator, posterior.coder.names, fit, posterior.summary, posterior.out_of_fold)


def estimate_verified(
    posterior: NoisyPosterior, estimate: TransitionEstimate, verified: Audit | tuple[Any, Any]
) -> TransitionEstimate:
    """Correct an estimate by verified labels, given as for `estimate_transition`."""
    audit, rows = as_audit(verified), posterior.labelled
    result = correct_by_audit(posterior, estimate.transition, audit if rows is None else audit.among(rows))
    name = f"{estimate.estimator} + {len(result)} verified"
    return replace(estimate, estimator=name, fit=corrected_fit(result))
