"""Probabilities, labels and matrices in and out of files."""

from dualt.io.image_folder import is_class_folder, list_images, plan_moves, read_class_folder
from dualt.io.load import load_class_names, load_labels, load_transition, save_corrected
from dualt.io.shards import find_shards, is_sharded, open_shards
from dualt.io.table_columns import open_table
from dualt.io.tables import read_table, write_table

__all__ = [
    "find_shards", "is_class_folder", "is_sharded", "list_images", "load_class_names", "load_labels",
    "load_transition", "open_shards", "open_table", "plan_moves", "read_class_folder", "read_table", "save_corrected",
    "write_table",
]  # fmt: skip
