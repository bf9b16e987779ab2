"""Probabilities, labels and matrices in and out of files."""

from dualt.io.image_folder import ClassFolder, is_class_folder, list_images, read_class_folder
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
from dualt.io.moves import is_moves, make_moves, plan_moves, read_moves, save_moves
from dualt.io.rewrite import save_corrected
from dualt.io.shards import Shards, divide, find_shards, is_sharded, labelled_rows, open_shards
from dualt.io.summaries import StoredSummary, load_summary, merge_summaries, save_summary

__all__ = [
    "ClassFolder",
    "Probabilities",
    "Shards",
    "StoredSummary",
    "divide",
    "find_shards",
    "is_class_folder",
    "is_moves",
    "is_sharded",
    "labelled_rows",
    "list_images",
    "load_class_names",
    "load_labels",
    "load_named_transition",
    "load_probabilities",
    "load_summary",
    "load_texts",
    "load_transition",
    "make_moves",
    "merge_summaries",
    "open_shards",
    "open_table",
    "plan_moves",
    "read_class_folder",
    "read_moves",
    "save_corrected",
    "save_labels",
    "save_moves",
    "save_summary",
]
