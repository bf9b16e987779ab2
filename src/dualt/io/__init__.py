"""Probabilities, labels and matrices in and out of files."""

from dualt.io.load import (
    Probabilities,
    load_class_names,
    load_labels,
    load_probabilities,
    load_transition,
    save_labels,
)

__all__ = [
    "Probabilities",
    "load_class_names",
    "load_labels",
    "load_probabilities",
    "load_transition",
    "save_labels",
]
