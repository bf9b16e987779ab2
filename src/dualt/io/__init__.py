"""Probabilities, labels and matrices in and out of files."""

from dualt.io.issues import issue_rows, save_issues
from dualt.io.load import (
    Probabilities,
    load_class_names,
    load_labels,
    load_named_transition,
    load_probabilities,
    load_transition,
    save_labels,
)
from dualt.io.review import Decision, apply_review, read_review

__all__ = [
    "Decision",
    "Probabilities",
    "apply_review",
    "issue_rows",
    "load_class_names",
    "load_labels",
    "load_named_transition",
    "load_probabilities",
    "load_transition",
    "read_review",
    "save_issues",
    "save_labels",
]
