"""Data sets, without torch: by name or from your own files, and split for an experiment with noisy labels."""

from dualt.datasets.catalog import REGISTRY, data_root, download, load_dataset
from dualt.datasets.dataset import Dataset, Split, from_arrays, split_dataset
from dualt.datasets.images import LazyImages

__all__ = [
    "REGISTRY", "Dataset", "LazyImages", "Split", "data_root", "download", "from_arrays", "load_dataset",
    "split_dataset",
]  # fmt: skip
