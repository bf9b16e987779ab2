"""Probabilities, labels and matrices in and out of files."""

from dualt.io.audit import draw_audit, read_audit, save_audit
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
    "draw_audit",
    "issue_rows",
    "load_class_names",
    "load_labels",
    "load_named_transition",
    "load_probabilities",
    "load_transition",
    "read_audit",
    "read_review",
    "save_audit",
    "save_issues",
    "save_labels",
]
