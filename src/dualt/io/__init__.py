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
from dualt.io.shards import Shards, divide, find_shards, is_sharded, open_shards
from dualt.io.summaries import StoredSummary, load_summary, merge_summaries, save_summary

__all__ = [
    "Decision",
    "Probabilities",
    "Shards",
    "StoredSummary",
    "apply_review",
    "divide",
    "draw_audit",
    "find_shards",
    "is_sharded",
    "issue_rows",
    "load_class_names",
    "load_labels",
    "load_named_transition",
    "load_probabilities",
    "load_summary",
    "load_transition",
    "merge_summaries",
    "open_shards",
    "read_audit",
    "read_review",
    "save_audit",
    "save_issues",
    "save_labels",
    "save_summary",
]
