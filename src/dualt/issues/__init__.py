"""Which labels are wrong: their scores, the tables of them, and what a review decided."""

from dualt.issues.label_issues import LabelIssues
from dualt.issues.review import Decision, apply_review, read_review
from dualt.issues.scores import find_label_issues, find_posterior_issues
from dualt.issues.training_dynamics import TrainingDynamics

__all__ = [
    "Decision", "LabelIssues", "TrainingDynamics", "apply_review", "find_label_issues", "find_posterior_issues",
    "read_review",
]  # fmt: skip
