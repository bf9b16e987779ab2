"""The joint estimator: a small head and the matrix trained together."""

from dualt.estimators.joint.training import joint

__all__ = ["joint"]
