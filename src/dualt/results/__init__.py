"""What is said of an estimated matrix: its intervals, its diagnostics, and how far to trust it."""

from dualt.results.diagnostics import Diagnostics
from dualt.results.estimate import TransitionEstimate
from dualt.results.fit import Fit
from dualt.results.notices import Notice

__all__ = ["Diagnostics", "Fit", "Notice", "TransitionEstimate"]
