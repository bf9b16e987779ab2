"""The estimators as scikit-learn classes: `fit(pred_probs, noisy_labels)`, then `transition_`.

They live apart from the functions so that estimating does not pay for importing scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator

from dualt.estimators.anchor import AnchorChoice
from dualt.estimators.fit import Matrix
from dualt.estimators.registry import estimate_transition
from dualt.estimators.result import TransitionEstimate
from dualt.rng import RngLike

if TYPE_CHECKING:
    from typing_extensions import Self


class TransitionEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: `fit` checks, computes and sets `estimate_`, `transition_` and `class_names_`."""

    method: ClassVar[str]
    estimate_: TransitionEstimate
    transition_: Matrix
    class_names_: tuple[str, ...]

    def fit(self, pred_probs: Any, noisy_labels: Any, *, class_names: Any = None) -> Self:
        """Estimate the transition matrix of `noisy_labels` from their predicted probabilities."""
        self.estimate_ = estimate_transition(
            pred_probs, noisy_labels, self.method, class_names=class_names, **self.get_params()
        )
        self.transition_ = self.estimate_.transition
        self.class_names_ = self.estimate_.class_names
        return self


class TEstimator(TransitionEstimator):
    """The T estimator (Eq. 1): each row read at the example most surely of its class.

    Parameters
    ----------
    anchor, quantile, top_k
        How anchors are chosen; see `dualt.estimators.anchor.t_estimator`.

    Examples
    --------
    >>> TEstimator().fit([[0.8, 0.2], [0.3, 0.7]], [0, 1]).transition_
    array([[0.8, 0.2],
           [0.3, 0.7]])
    """

    method = "t"

    def __init__(self, anchor: AnchorChoice = "max", quantile: float = 0.97, top_k: int = 5) -> None:
        self.anchor = anchor
        self.quantile = quantile
        self.top_k = top_k


class DualTEstimator(TEstimator):
    """The dual-T estimator (Eq. 2): T♣ read at anchors times T♠ counted by predicted class.

    Parameters
    ----------
    anchor, quantile, top_k
        How anchors are chosen; see `dualt.estimators.anchor.t_estimator`.
    """

    method = "dual-t"


class SpadeEstimator(TransitionEstimator):
    """T♠ alone (Eq. 4): given labels counted by predicted class."""

    method = "spade"


class ConfidentJointEstimator(TransitionEstimator):
    """The confident joint: examples that clear their class's mean confidence, calibrated to the label counts."""

    method = "confident-joint"


class TopCountEstimator(TransitionEstimator):
    """Given labels counted among the most confident examples of each class.

    Parameters
    ----------
    share
        Which part of a class counts as its most confident.
    """

    method = "top-count"

    def __init__(self, share: float = 0.5) -> None:
        self.share = share


class CleanCountEstimator(TransitionEstimator):
    """Given labels counted among the examples whose true class is clear.

    Parameters
    ----------
    confidence, shrink
        See `dualt.estimators.clean_count.clean_count`.
    """

    method = "clean-count"

    def __init__(self, confidence: float = 0.8, shrink: bool = True) -> None:
        self.confidence = confidence
        self.shrink = shrink


class JointEstimator(TransitionEstimator):
    """A small head and the matrix trained together.

    Parameters
    ----------
    shrink, rng
        See `dualt.estimators.joint.joint`.
    """

    method = "joint"

    def __init__(self, shrink: bool = True, rng: RngLike = 0) -> None:
        self.shrink = shrink
        self.rng = rng


class HocEstimator(TransitionEstimator):
    """The matrix that explains how often nearest neighbours agree in their given labels.

    Parameters
    ----------
    features, n_neighbors, rng
        See `dualt.estimators.hoc.hoc`.
    """

    method = "hoc"

    def __init__(self, features: Any = None, n_neighbors: int = 2, rng: RngLike = 0) -> None:
        self.features = features
        self.n_neighbors = n_neighbors
        self.rng = rng
