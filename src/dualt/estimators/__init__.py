"""How T is found: one file per estimator, from a summary of the data and, for some, further passes."""

from dualt.estimators._counts import count_fit
from dualt.estimators.registry import (
    DEFAULT_ESTIMATOR,
    ESTIMATORS,
    EstimatorEntry,
    comparable,
    estimate_posterior,
    estimate_transition,
    estimate_verified,
)

__all__ = [
    "DEFAULT_ESTIMATOR", "ESTIMATORS", "EstimatorEntry", "comparable", "count_fit", "estimate_posterior",
    "estimate_transition", "estimate_verified",
]  # fmt: skip
