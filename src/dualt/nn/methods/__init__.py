"""The rows of the paper's Table 1 and methods past it, one file each, by name."""

import inspect
from typing import Any

from dualt.errors import InputError, UnknownNameError
from dualt.nn.methods.base import Batch, Losses, Method, Networks
from dualt.nn.methods.ce import CrossEntropy
from dualt.nn.methods.co_teaching import CoTeaching
from dualt.nn.methods.decoupling import Decoupling
from dualt.nn.methods.dividemix import DivideMix
from dualt.nn.methods.forward import Forward
from dualt.nn.methods.gce import GeneralizedCrossEntropy
from dualt.nn.methods.mentornet import MentorNet
from dualt.nn.methods.mixup import Mixup
from dualt.nn.methods.revision import Revision
from dualt.nn.methods.reweighting import Reweighting
from dualt.nn.methods.volminnet import VolMinNet

__all__ = ["METHODS", "Batch", "Losses", "Method", "Networks", "build_method", "options_of"]

# A constructor with a parameter `transition`, `n_classes` or `n_samples` gets the matrix, the number of classes or the
# size of the training part; other parameters are options.
METHODS: dict[str, type[Method]] = {
    "ce": CrossEntropy,
    "mixup": Mixup,
    "decoupling": Decoupling,
    "mentornet": MentorNet,
    "co-teaching": CoTeaching,
    "forward": Forward,
    "reweighting": Reweighting,
    "revision": Revision,
    "gce": GeneralizedCrossEntropy,
    "dividemix": DivideMix,
    "volminnet": VolMinNet,
}
_GIVEN = ("transition", "n_classes", "n_samples")


def options_of(name: str) -> list[str]:
    """Return the names of the options of the method `name`."""
    return [each for each in inspect.signature(METHODS[name]).parameters if each not in _GIVEN]


def build_method(
    name: str, transition: Any = None, *, n_classes: int | None = None, n_samples: int | None = None, **options: Any
) -> Method:
    """Return a method with those of the matrix, the number of classes and of training samples that it needs."""
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    values = dict(zip(_GIVEN, (transition, n_classes, n_samples), strict=True))
    needed = {key: values[key] for key in _GIVEN if key in inspect.signature(METHODS[name]).parameters}
    for key, value in needed.items():
        if value is None:
            raise InputError(f"The method {name!r} needs {key}, got none.")
    method = METHODS[name](**needed, **options)
    method.options = options
    return method
