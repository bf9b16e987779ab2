"""Probabilities, labels and matrices in and out of files."""

from dualt.io.rewrite import save_corrected
from dualt.io.load import (
    Probabilities,
    load_class_names,
    load_labels,
    load_named_transition,
    load_probabilities,
    load_texts,
    load_transition,
    save_labels,
)
from dualt.io.shards import Shards, divide, find_shards, is_sharded, open_shards
from dualt.io.summaries import StoredSummary, load_summary, merge_summaries, save_summary

__all__ = [
    "Probabilities",
    "Shards",
    "StoredSummary",
    "divide",
    "find_shards",
    "is_sharded",
    "load_class_names",
    "load_labels",
    "load_named_transition",
    "load_probabilities",
    "load_summary",
    "load_texts",
    "load_transition",
    "merge_summaries",
    "open_shards",
    "save_corrected",
    "save_labels",
    "save_summary",
]
