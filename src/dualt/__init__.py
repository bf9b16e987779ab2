"""dualt: how noisy are your labels, which ones are wrong, and how to train well anyway.

Names are loaded when they are first used, so importing `dualt` costs nothing and never loads torch. Type checkers
and editors read them from `__init__.pyi`.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_NAMES = {
    "audit": ("Audit", "noisy_accuracy"),
    "classifier": ("RobustClassifier",),
    "crossfit": ("OutOfFold", "cross_fit"),
    "estimators": ("estimate_transition",),
    "estimators.sklearn": (
        "CleanCountEstimator", "ConfidentJointEstimator", "DualTEstimator", "HocEstimator", "JointEstimator",
        "SelectiveEstimator", "SpadeEstimator", "TEstimator",
    ),
    "issues": ("LabelIssues", "TrainingDynamics", "find_label_issues"),
    "nn.classifier": ("RobustNetClassifier",),
    "results": ("TransitionEstimate",),
    "results.display": ("plot_transition",),
    "transition": ("clean_posterior", "l1_error", "to_noisy"),
    "votes": ("Votes", "combine_votes"),
}  # fmt: skip
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = (
    "audit", "crossfit", "datasets", "errors", "estimators", "io", "issues", "losses", "noise", "report", "results",
    "rows", "transition", "votes",
)  # fmt: skip

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'dualt' has no attribute {name!r}")
    from dualt.errors import naming_extra

    with naming_extra(f"dualt.{name}"):
        module = importlib.import_module(f"dualt.{_HOME.get(name, name)}")
    return getattr(module, name) if name in _HOME else module


def __dir__() -> list[str]:
    return sorted(__all__)
