"""The estimators as scikit-learn classes: `fit(pred_probs, noisy_labels)`, then `transition_`.

They live apart from the functions so that estimating does not pay for importing scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator

from dualt.audit import Audit
from dualt.errors import LabelsError
from dualt.estimators.registry import estimate_summary, estimate_transition
from dualt.estimators.t import AnchorChoice
from dualt.labels import LabelCoder, as_label_array
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Matrix
from dualt.rng import RandomState
from dualt.rows.summary import summarize
from dualt.validation import ClassNames, align_labels, as_probability_table, check_class_names, scale_with_warning

if TYPE_CHECKING:
    from typing_extensions import Self


class TransitionEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: `fit` checks, computes and sets `estimate_`, `transition_` and `class_names_`."""

    estimator: ClassVar[str]
    estimate_: TransitionEstimate
    transition_: Matrix
    class_names_: tuple[str, ...]

    def fit(
        self,
        pred_probs: Any,
        noisy_labels: Any,
        *,
        class_names: ClassNames | None = None,
        verified: Audit | tuple[Any, Any] | None = None,
        n_jobs: int | None = 1,
        out_of_fold: bool | None = None,
    ) -> Self:
        """Estimate the transition matrix of `noisy_labels`; see `dualt.estimate_transition` for the arguments."""
        estimate = estimate_transition(
            pred_probs,
            noisy_labels,
            self.estimator,
            class_names=class_names,
            verified=verified,
            n_jobs=n_jobs,
            out_of_fold=out_of_fold,
            **self.get_params(),
        )
        return self._take(estimate)

    def _take(self, estimate: TransitionEstimate) -> Self:
        self.estimate_ = estimate
        self.transition_ = estimate.transition
        self.class_names_ = estimate.class_names
        return self


class IncrementalEstimator(TransitionEstimator):
    """Base of the estimators that read the data once, and so can take them a chunk at a time."""

    def partial_fit(self, pred_probs: Any, noisy_labels: Any, classes: ClassNames | None = None) -> Self:
        """Add a chunk of rows; the estimate is then that of `fit` on all chunks one after another.

        Parameters
        ----------
        pred_probs : (n_samples, n_classes)
        noisy_labels : (n_samples,)
        classes
            Class names in the order of the columns; needed on the first call if labels are strings and the
            columns have no names.
        """
        table, columns = as_probability_table(pred_probs)
        table = scale_with_warning(table)
        labels = as_label_array(align_labels(pred_probs, noisy_labels))
        before = self.estimate_.summary if hasattr(self, "estimate_") else None
        names = columns if classes is None else classes
        if before is not None:
            _check_same_classes(self.class_names_, classes, columns)
            names = self.class_names_
        elif names is None and labels.dtype.kind == "U":
            raise LabelsError(
                "Expected classes on the first call of partial_fit, got none: not every chunk need hold every label."
                " Pass the class names in the order of the columns."
            )
        coder = LabelCoder.for_labels(labels, table.shape[1], names)
        summary = summarize(table, labels, coder, start=before.n_samples if before else 0)
        whole = before.merge(summary) if before else summary
        return self._take(estimate_summary(whole, coder.names, self.estimator, **self.get_params()))


def _check_same_classes(known: tuple[str, ...], classes: ClassNames | None, columns: tuple[str, ...] | None) -> None:
    """Refuse a chunk of other classes, or with columns of other names or in another order, than the first.

    Columns may be called otherwise if `classes` says what they are, or if the classes of the first were only numbered.
    """
    given = [] if classes is None else [check_class_names(classes)]
    numbered = known == tuple(map(str, range(len(known))))
    if columns is not None and ({*columns} == {*known} or (classes is None and not numbered)):
        given.append(columns)
    for names in given:
        if names != known:
            raise LabelsError(
                f"Expected the classes of the first call, {', '.join(known)}, got {', '.join(names)}."
                " Keep them, and their order, in every call."
            )


class TEstimator(IncrementalEstimator):
    """The T estimator (Eq. 1): each row read at the example most surely of its class.

    Parameters
    ----------
    anchor, quantile, top_k
        How anchors are chosen; see `dualt.estimators.t.t_estimator`.

    Examples
    --------
    >>> TEstimator().fit([[0.8, 0.2], [0.3, 0.7]], [0, 1]).transition_
    array([[0.8, 0.2],
           [0.3, 0.7]])
    """

    estimator = "t"

    def __init__(self, anchor: AnchorChoice = "max", quantile: float = 0.97, top_k: int = 5) -> None:
        self.anchor = anchor
        self.quantile = quantile
        self.top_k = top_k


class DualTEstimator(TEstimator):
    """The dual-T estimator (Eq. 2): T♣ read at anchors times T♠ counted by predicted class.

    Parameters
    ----------
    anchor, quantile, top_k
        How anchors are chosen; see `dualt.estimators.t.t_estimator`.
    """

    estimator = "dual-t"


class SpadeEstimator(IncrementalEstimator):
    """T♠ alone (Eq. 4): given labels counted by predicted class."""

    estimator = "spade"


class ConfidentJointEstimator(TransitionEstimator):
    """The confident joint: examples that clear their class's mean confidence, calibrated to the label counts."""

    estimator = "confident-joint"


class CleanCountEstimator(TransitionEstimator):
    """Given labels counted among the examples whose true class is clear.

    Parameters
    ----------
    confidence, shrink
        See `dualt.estimators.clean_count.clean_count`.
    """

    estimator = "clean-count"

    def __init__(self, confidence: float = 0.9, shrink: bool = True) -> None:
        self.confidence = confidence
        self.shrink = shrink


class SelectiveEstimator(TransitionEstimator):
    """Given labels counted among the highest scores of a class that hold its label most often.

    Parameters
    ----------
    least
        The fewest examples to accept for a class; see `dualt.estimators.selective.selective`.
    """

    estimator = "selective"

    def __init__(self, least: int | None = None) -> None:
        self.least = least


class JointEstimator(TransitionEstimator):
    """A small head and the matrix trained together.

    Parameters
    ----------
    shrink, random_state
        See `dualt.estimators.joint.training.joint`.
    """

    estimator = "joint"

    def __init__(self, shrink: bool = True, random_state: RandomState = 0) -> None:
        self.shrink = shrink
        self.random_state = random_state


class HocEstimator(TransitionEstimator):
    """The matrix that explains how often nearest neighbours agree in their given labels.

    Parameters
    ----------
    features, n_neighbors, random_state
        See `dualt.estimators.hoc.hoc`.
    """

    estimator = "hoc"

    def __init__(self, features: Any = None, n_neighbors: int = 2, random_state: RandomState = 0) -> None:
        self.features = features
        self.n_neighbors = n_neighbors
        self.random_state = random_state
