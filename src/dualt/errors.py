"""Everything `dualt` raises or warns with.

::

    DualtError
    ├── InputError            (also a ValueError)   an argument or the content of a file is not usable
    │   ├── ProbabilitiesError                      predicted probabilities
    │   ├── LabelsError                             given labels or class names
    │   └── TransitionError                         a transition matrix
    ├── FileError             (also an OSError)     a file cannot be read or written
    ├── UnknownNameError      (also a ValueError)   no estimator, noise, network... of that name
    ├── MissingExtraError     (also an ImportError) an optional dependency is not installed
    └── TrainingError         (also a RuntimeError) a training run cannot go on

    DualtWarning              (a UserWarning)       the result is returned, but deserves a second look

Messages say what was expected, what came, where, and what to do about it.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_EXTRAS = {
    "train": ("torch", "safetensors", "pooch", "matplotlib"),
    "tables": ("pyarrow",),
    "cluster": ("dask", "distributed"),
}


class DualtError(Exception):
    """Base of every error that `dualt` raises on purpose."""


class InputError(DualtError, ValueError):
    """An argument, or the content of a file, is not usable."""


class ProbabilitiesError(InputError):
    """Predicted probabilities are not probabilities."""


class LabelsError(InputError):
    """Given labels or class names do not fit the probabilities."""


class TransitionError(InputError):
    """A matrix is not a row-stochastic transition matrix."""


class FileError(DualtError, OSError):
    """A file cannot be read or written."""


class UnknownNameError(DualtError, ValueError):
    """Nothing is registered under that name."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        name, known = str(name), list(known)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(known if len(known) <= 20 else [*known[:20], f"… {len(known)} in all"])
        super().__init__(f"Unknown {kind} {name!r}.{hint} Known: {shown}.")


class MissingExtraError(DualtError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra [{extra}]: pip install 'dualt[{extra}]'")


def missing_extra(error: ModuleNotFoundError, what: str) -> MissingExtraError | None:
    """Return the error that names the extra with a module that was not found; None if no extra has it."""
    package = (error.name or "").partition(".")[0]
    return next((MissingExtraError(what, extra) for extra, names in _EXTRAS.items() if package in names), None)


@contextmanager
def naming_extra(what: str) -> Iterator[None]:
    """Turn the error of a missing optional module into one that names its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise (missing_extra(error, what) or error) from None


class TrainingError(DualtError, RuntimeError):
    """A training run cannot go on."""


class DualtWarning(UserWarning):
    """The result is returned, but deserves a second look."""
