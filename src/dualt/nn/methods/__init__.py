"""The rows of the paper's Table 1, and DivideMix, one file each, by name."""

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

# A constructor with a parameter `transition` gets the matrix.
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


def build_method(name: str, transition: Any = None) -> Method:
    """Return the method `name`, with the matrix if it needs one."""
    if not METHODS[name].takes_transition:
        return METHODS[name]()
    if transition is None:
        raise InputError(f"The method {name!r} needs a transition matrix, got none.")
    return METHODS[name](transition)
