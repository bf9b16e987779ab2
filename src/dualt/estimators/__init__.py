"""How T is found: one file an estimator, over one pass of the data."""

from __future__ import annotations

import importlib
from typing import Any

from dualt.estimators.registry import (
    DEFAULT_ESTIMATOR,
    ESTIMATORS,
    comparable,
    estimate_posterior,
    estimate_summary,
    estimate_transition,
    estimate_verified,
)

_CLASSES = (
    "TEstimator",
    "DualTEstimator",
    "SpadeEstimator",
    "ConfidentJointEstimator",
    "TopCountEstimator",
    "CleanCountEstimator",
    "JointEstimator",
    "HocEstimator",
)

__all__ = [  # noqa: PLE0604
    "DEFAULT_ESTIMATOR",
    "ESTIMATORS",
    "comparable",
    "estimate_posterior",
    "estimate_summary",
    "estimate_transition",
    "estimate_verified",
    *_CLASSES,
]


def __getattr__(name: str) -> Any:
    # The classes import scikit-learn, which takes a second: only those who use them pay for it.
    if name in _CLASSES:
        return getattr(importlib.import_module("dualt.estimators.sklearn"), name)
    raise AttributeError(f"module 'dualt.estimators' has no attribute {name!r}")
