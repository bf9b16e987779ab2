"""What is said of an estimated matrix: its figures, its claims, and how it is shown."""

from dualt.results.claims import Notice
from dualt.results.diagnostics import Diagnostics
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Fit

__all__ = ["Diagnostics", "Fit", "Notice", "TransitionEstimate"]
