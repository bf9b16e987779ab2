"""How T is found: one file per estimator, from a summary of the data and, for some, further passes."""

from __future__ import annotations

import importlib
from typing import Any

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

_CLASSES = (
    "TEstimator",
    "DualTEstimator",
    "SpadeEstimator",
    "ConfidentJointEstimator",
    "CleanCountEstimator",
    "SelectiveEstimator",
    "JointEstimator",
    "HocEstimator",
)

__all__ = [  # noqa: PLE0604
    "DEFAULT_ESTIMATOR",
    "ESTIMATORS",
    "EstimatorEntry",
    "comparable",
    "count_fit",
    "estimate_posterior",
    "estimate_transition",
    "estimate_verified",
    *_CLASSES,
]


def __getattr__(name: str) -> Any:
    # The classes import scikit-learn, which takes a second: only those who use them pay for it.
    if name in _CLASSES:
        return getattr(importlib.import_module("dualt.estimators.sklearn"), name)
    raise AttributeError(f"module 'dualt.estimators' has no attribute {name!r}")
