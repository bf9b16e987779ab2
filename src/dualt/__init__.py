"""dualt: how noisy are your labels, which ones are wrong, and how to train well anyway.

Names are loaded when they are first used, so importing `dualt` costs nothing and never loads torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "TransitionEstimate": "dualt.results",
    "estimate_transition": "dualt.estimators",
    "TEstimator": "dualt.estimators",
    "DualTEstimator": "dualt.estimators",
    "SpadeEstimator": "dualt.estimators",
    "ConfidentJointEstimator": "dualt.estimators",
    "TopCountEstimator": "dualt.estimators",
    "CleanCountEstimator": "dualt.estimators",
    "JointEstimator": "dualt.estimators",
    "HocEstimator": "dualt.estimators",
    "LabelIssues": "dualt.issues",
    "find_label_issues": "dualt.issues",
    "RobustClassifier": "dualt.classifier",
    "RobustNetClassifier": "dualt.nn.classifier",
    "from_cleanlab": "dualt.results.cleanlab",
    "plot_curves": "dualt.results.plotting",
    "plot_transition": "dualt.results.plotting",
    "clean_posterior": "dualt.transition",
    "compose": "dualt.transition",
    "l1_error": "dualt.transition",
    "noise_rates": "dualt.transition",
    "to_noisy": "dualt.transition",
}
_MODULES = {
    **{name: f"dualt.{name}" for name in ("datasets", "errors", "estimators", "io", "issues", "noise", "transition")},
    "losses": "dualt.nn.losses",
}

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _HOME:
        raise AttributeError(f"module 'dualt' has no attribute {name!r}")
    try:
        module = importlib.import_module(_HOME.get(name) or _MODULES[name])
    except ModuleNotFoundError as error:
        from dualt.errors import missing_extra

        raise (missing_extra(error, f"dualt.{name}") or error) from None
    return module if name in _MODULES else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
