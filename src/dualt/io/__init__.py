"""Probabilities, labels and matrices in and out of files."""

from dualt.io.load import (
    Probabilities,
    load_class_names,
    load_labels,
    load_named_transition,
    load_probabilities,
    load_texts,
    load_transition,
    open_table,
    save_labels,
)
from dualt.io.rewrite import save_corrected
from dualt.io.shards import Shards, divide, find_shards, is_sharded, labelled_rows, open_shards
from dualt.io.summaries import StoredSummary, load_summary, merge_summaries, save_summary

__all__ = [
    "Probabilities",
    "Shards",
    "StoredSummary",
    "divide",
    "find_shards",
    "is_sharded",
    "labelled_rows",
    "load_class_names",
    "load_labels",
    "load_named_transition",
    "load_probabilities",
    "load_summary",
    "load_texts",
    "load_transition",
    "merge_summaries",
    "open_shards",
    "open_table",
    "save_corrected",
    "save_labels",
    "save_summary",
]
