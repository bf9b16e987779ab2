"""The rows of the paper's Table 1, and DivideMix, one file each, by name."""

import inspect
from typing import Any

from dualt.errors import InputError
from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.methods.ce import CrossEntropy
from dualt.nn.methods.co_teaching import CoTeaching
from dualt.nn.methods.decoupling import Decoupling
from dualt.nn.methods.dividemix import DivideMix
from dualt.nn.methods.forward import Forward
from dualt.nn.methods.mentornet import MentorNet
from dualt.nn.methods.mixup import Mixup
from dualt.nn.methods.revision import Revision
from dualt.nn.methods.reweighting import Reweighting

__all__ = ["METHODS", "Batch", "Losses", "Method", "Networks", "build_method"]

# A constructor with a parameter `transition`, `n_classes` or `n_samples` gets the matrix, the number of classes or the
# size of the training part.
METHODS: dict[str, type[Method]] = {
    "ce": CrossEntropy,
    "mixup": Mixup,
    "decoupling": Decoupling,
    "mentornet": MentorNet,
    "co-teaching": CoTeaching,
    "forward": Forward,
    "reweighting": Reweighting,
    "revision": Revision,
    "dividemix": DivideMix,
}
_GIVEN = ("transition", "n_classes", "n_samples")


def build_method(
    name: str, transition: Any = None, n_classes: int | None = None, n_samples: int | None = None
) -> Method:
    """Return a method with those of the matrix, the number of classes and of training samples that it needs."""
    values = dict(zip(_GIVEN, (transition, n_classes, n_samples), strict=True))
    needed = {key: values[key] for key in _GIVEN if key in inspect.signature(METHODS[name]).parameters}
    for key, value in needed.items():
        if value is None:
            raise InputError(f"The method {name!r} needs {key}, got none.")
    return METHODS[name](**needed)
