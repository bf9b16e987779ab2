"""The clean posterior of rows by the compiled library; `dualt.transition.EarlyPosterior` is its caller and twin."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels

# Up to this many classes every entry of the matrix is kept as it is. With more, those are kept that are further from
# the background of their row than this, or than a tenth of a uniform row, and at most this many per row.
_FEW_CLASSES = 32
_NEAR_BACKGROUND, _MOST_ENTRIES = 1e-3, 32
# As in posterior.c: a factor that is cubed is at most this, so that products stay finite.
MOST_CUBED = 2.0**20
_NUMBERS = ("n_classes", "steps", "is_whole")
_ENTRIES = ("class_start", "class_other", "class_value", "label_start", "label_other", "label_value")
_ARRAYS = ("background", "at_start", "own", *_ENTRIES, "by_class", "by_label")


class _Model(ctypes.Structure):
    """`model_t` of posterior.h, with the three arrays of each `entries_t`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _NUMBERS),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        ("mean_background", ctypes.c_double),
    )


class _Output(ctypes.Structure):
    """`output_t` of posterior.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("posterior", "best", "best_probability", "labels", "right")),
        ("goes_on", ctypes.c_int64),
    )


class PosteriorKernel:
    """EM steps for one matrix of float32 or float64, and rows of its type.

    What the kernel needs of the matrix is prepared once; rows may then be read in several threads.
    """

    def __init__(self, transition: NDArray[Any], steps: int) -> None:
        transition = np.ascontiguousarray(transition)
        background, kept = split_background(transition)
        # They must live as long as their addresses.
        by_label = np.ascontiguousarray(transition.T)
        self._arrays = {"background": background, "by_class": transition, "by_label": by_label}
        is_whole = bool(kept.all())
        if is_whole:  # there is no background, and entries need not be listed
            self._arrays["at_start"] = transition.mean(axis=0)
        else:
            self._arrays |= zip(_ENTRIES, _both_ways(transition, background, kept), strict=True)
            self._arrays["at_start"] = np.where(kept, transition, background[:, None]).mean(axis=0)
            diagonal = kept.diagonal()
            tied = (kept.sum(axis=0) > diagonal) | (kept.sum(axis=1) > diagonal)
            if not tied.all():
                beyond = np.where(diagonal, transition.diagonal() - background, 0)
                self._arrays["own"] = np.where(tied, -1, beyond).astype(transition.dtype)
        addresses = {name: array.ctypes.data for name, array in self._arrays.items()}
        self._model = _Model(len(transition), steps, is_whole, **addresses, mean_background=background.mean())
        self._dtype = transition.dtype
        self._read = getattr(kernels.library, f"read_posterior_{kernels.TYPES[transition.dtype]}")

    def posterior(self, probs: NDArray[Any], out: NDArray[Any] | None = None, goes_on: bool = False) -> NDArray[Any]:
        """Return the posterior of every row, in `out` if given; if `goes_on`, the steps start from what it holds."""
        out = np.empty(probs.shape, self._dtype) if out is None else out
        if out.shape != probs.shape or out.dtype != self._dtype or not out.flags.c_contiguous:
            raise ValueError(f"Expected room for {probs.shape} of {self._dtype}, got {out.shape} of {out.dtype}.")
        self._call(probs, goes_on, posterior=out)
        return out

    def clearest(self, probs: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the most probable class of every row, the first of equals, and its posterior."""
        best, probability = np.empty(len(probs), np.int64), np.empty(len(probs), self._dtype)
        self._call(probs, best=best, best_probability=probability)
        return best, probability

    def scores(self, probs: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
        """Return P(label is right), the most probable class and its probability, all given the label of the row."""
        labels = np.ascontiguousarray(labels, np.int64)
        if labels.shape != (len(probs),):
            raise ValueError(f"Expected a label for each of {len(probs)} rows, got an array of shape {labels.shape}.")
        right, probability = np.empty(len(probs), self._dtype), np.empty(len(probs), self._dtype)
        best = np.empty(len(probs), np.int64)
        self._call(probs, best=best, best_probability=probability, labels=labels, right=right)
        return right, best, probability

    def _call(self, probs: NDArray[Any], goes_on: bool = False, **arrays: NDArray[Any]) -> None:
        probs = np.ascontiguousarray(probs, self._dtype)
        if probs.ndim != 2 or probs.shape[1] != self._model.n_classes:
            raise ValueError(f"Expected rows of {self._model.n_classes} classes, got shape {probs.shape}.")
        output = _Output(**{name: array.ctypes.data for name, array in arrays.items()}, goes_on=goes_on)
        if not self._read(ctypes.byref(self._model), probs.ctypes.data, len(probs), ctypes.byref(output)):
            raise MemoryError("There is no memory for a bundle of rows.")


def split_background(transition: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the background of each row, and which entries differ from it.

    With many classes few entries of a noise matrix matter by themselves: its diagonal, and classes that are taken for
    each other. The others of a row are zero or nearly equal, so a step of EM need not cost `n_classes`² products: it is
    exact for the matrix whose background entries are their mean, which is off by less than
    2 · min(`_NEAR_BACKGROUND`, 0.1 / n_classes) unless more than `_MOST_ENTRIES` of a row stand out.

    Measured: with symmetric, pair and group noise, true or counted from 50 labels per class, rows differ from those of
    the whole matrix by rounding only; with a background that is uneven by a fifth, by at most 0.03 (L1).
    """
    n_classes = len(transition)
    if n_classes <= _FEW_CLASSES:
        return np.zeros(n_classes, transition.dtype), np.ones(transition.shape, np.bool_)
    distance = np.abs(transition - np.sort(transition, axis=1)[:, n_classes // 2, None])  # faster than a median
    kept = distance > min(_NEAR_BACKGROUND, 0.1 / n_classes)
    crowded = np.flatnonzero(kept.sum(axis=1) > _MOST_ENTRIES)
    if len(crowded):
        least = -np.partition(-distance[crowded], _MOST_ENTRIES - 1, axis=1)[:, _MOST_ENTRIES - 1, None]
        kept[crowded] &= distance[crowded] >= least
    n_background = n_classes - kept.sum(axis=1)
    background = np.where(kept, 0, transition).sum(axis=1) / np.maximum(n_background, 1)
    return background.astype(transition.dtype), kept


def _both_ways(transition: NDArray[Any], background: NDArray[Any], kept: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    """Return the entries that are kept as the arrays of scipy's csr and csc, which it makes more slowly.

    It would take 6 % of the time of the default with 1,000 classes.
    """
    n_classes = len(transition)
    classes, labels = np.divmod(np.flatnonzero(kept), n_classes)
    values = transition[classes, labels] - background[classes]
    by_label = np.argsort(labels.astype(np.min_scalar_type(n_classes)), kind="stable")  # in linear time
    numbers = np.arange(n_classes + 1)
    of_class = np.searchsorted(classes, numbers).astype(np.int64), labels.astype(np.int32), values
    start = np.searchsorted(labels[by_label], numbers).astype(np.int64)
    return *of_class, start, classes[by_label].astype(np.int32), values[by_label]
