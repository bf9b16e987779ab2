"""The estimators as scikit-learn classes: `fit(pred_probs, noisy_labels)`, then `transition_`.

Their parameters are the options of the functions of the same names. They live apart from these so that estimating does
not pay for importing scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator

from dualt.audit import Audit
from dualt.estimators.registry import estimate_transition
from dualt.estimators.t import AnchorChoice
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Matrix
from dualt.rng import RandomState
from dualt.validation import ClassNames

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
        given: dict[str, Any] = {"class_names": class_names, "verified": verified, **self.get_params()}
        self.estimate_ = estimate_transition(
            pred_probs, noisy_labels, self.estimator, n_jobs=n_jobs, out_of_fold=out_of_fold, **given
        )
        self.transition_, self.class_names_ = self.estimate_.transition, self.estimate_.class_names
        return self


class TEstimator(TransitionEstimator):
    """The T estimator (Eq. 1): each row read at the example most surely of its class.

    Examples
    --------
    >>> TEstimator().fit([[0.8, 0.2], [0.3, 0.7]], [0, 1]).transition_
    array([[0.8, 0.2],
           [0.3, 0.7]])
    """

    estimator = "t"

    def __init__(self, anchor: AnchorChoice = "max", quantile: float = 0.97) -> None:
        self.anchor = anchor
        self.quantile = quantile


class DualTEstimator(TEstimator):
    """The dual-T estimator (Eq. 2): T♣ read at anchors times T♠ counted by predicted class."""

    estimator = "dual-t"


class SpadeEstimator(TransitionEstimator):
    """T♠ alone (Eq. 4): given labels counted by predicted class."""

    estimator = "spade"


class ConfidentJointEstimator(TransitionEstimator):
    """The confident joint: examples that clear their class's mean confidence, calibrated to the label counts."""

    estimator = "confident-joint"


class CleanCountEstimator(TransitionEstimator):
    """Given labels counted among the examples whose true class is clear, as far as the labels support it."""

    estimator = "clean-count"

    def __init__(self, determined: bool | None = None) -> None:
        self.determined = determined


class SelectiveEstimator(TransitionEstimator):
    """Given labels counted among the highest scores of a class that hold its label most often."""

    estimator = "selective"


class JointEstimator(TransitionEstimator):
    """A small head and the matrix trained together."""

    estimator = "joint"

    def __init__(self, random_state: RandomState = 0) -> None:
        self.random_state = random_state


class HocEstimator(TransitionEstimator):
    """The matrix that explains how often nearest neighbours agree in their given labels."""

    estimator = "hoc"

    def __init__(self, features: Any = None) -> None:
        self.features = features
