"""Summaries in files: what one job has read, to be merged with what others have. Checked as if by a stranger."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import FileError, InputError
from dualt.files import atomic_write
from dualt.io.arrays import Npz, open_npz
from dualt.rows import PosteriorSummary, concatenate
from dualt.rows.scan import CONFIDENCE_UNIT
from dualt.validation import ROW_SUM_TOLERANCE, ClassNames, check_class_names, check_probability_chunk

_VERSION = 1
# Compressed arrays of up to so many bytes are read from a file of any size; see `check_expansion`.
_ALWAYS_UNPACKED = 1 << 29
_NUMBERS = ("n_samples", "sample_size")
# The type of each array, and its number of dimensions.
_ARRAYS = {
    "counts": ("int64", 2), "confidence_sums": ("int64", 1), "anchor_index": ("int64", 2), "anchor_rows": ("float", 3),
    "sample_index": ("int64", 1), "sample_labels": ("int64", 1), "sample_rows": ("float", 2),
}  # fmt: skip
_NAMES = {"version", "class_names", "parts", *_NUMBERS, *_ARRAYS}


@dataclass(frozen=True)
class StoredSummary:
    """A summary whose rows are numbered from 0, the names of its classes, and which parts it was merged from.

    A part is known by a digest of what it holds, so that none is counted twice.
    """

    summary: PosteriorSummary
    class_names: tuple[str, ...]
    parts: tuple[bytes, ...]

    @classmethod
    def of(cls, summary: PosteriorSummary, class_names: ClassNames) -> StoredSummary:
        """Take the summary of one part, made with `start` at 0."""
        _check(summary)
        names = check_class_names(class_names, summary.n_classes)
        return cls(summary, names, (_digest(summary),))


def merge_summaries(stored: Sequence[StoredSummary]) -> StoredSummary:
    """Return the summary of all parts, their rows numbered one part after the other; see `concatenate`.

    The classes are in the order of the first summary; those of the others are matched by their names.
    """
    if not stored:
        raise InputError("Expected at least one summary to merge, got none.")
    names = stored[0].class_names
    parts: dict[bytes, int] = {}
    for number, one in enumerate(stored, 1):
        if set(one.class_names) != set(names):
            raise InputError(
                f"Expected summaries of the same classes, got {_shown(names)} in the first and"
                f" {_shown(one.class_names)} in number {number}. Summarise all parts with the same classes: those that"
                " the columns of the tables name, or else --classes."
            )
        for part in one.parts:
            if part in parts:
                raise InputError(
                    f"Expected each part once, got the same rows in summaries number {parts[part]} and {number}."
                    " Leave out one of them; a merged summary holds all its parts."
                )
            parts[part] = number
    return StoredSummary(concatenate(_in_order(one, names) for one in stored), names, tuple(parts))


def _in_order(stored: StoredSummary, names: tuple[str, ...]) -> PosteriorSummary:
    """Return the summary with its classes in the order of `names`, as if the columns had been in that order.

    Only a row with two equal largest probabilities would have been counted for the other one of them.
    """
    if stored.class_names == names:
        return stored.summary
    place = {name: code for code, name in enumerate(stored.class_names)}
    order = np.array([place[name] for name in names])
    summary = stored.summary
    return replace(
        summary,
        counts=summary.counts[np.ix_(order, order)],
        confidence_sums=summary.confidence_sums[order],
        anchor_index=summary.anchor_index[order],
        anchor_rows=summary.anchor_rows[order][:, :, order],
        sample_labels=np.argsort(order)[summary.sample_labels],
        sample_rows=summary.sample_rows[:, order],
    )


def save_summary(path: str | Path, stored: StoredSummary) -> None:
    """Write a summary as `.npz`, compressed.

    Its size does not depend on how many rows it stands for. For many classes it grows with their square: one or two
    megabytes for ten classes, 11 for a thousand, 190 for five thousand, twice that in float64.
    """
    if Path(path).suffix.lower() != ".npz":
        raise FileError(f"Expected a name that ends in .npz, got {Path(path).name!r}.")
    content: dict[str, Any] = {field.name: getattr(stored.summary, field.name) for field in fields(stored.summary)}
    content |= {name: content[name].astype(np.int64) for name, (kind, _) in _ARRAYS.items() if kind == "int64"}
    parts = np.frombuffer(b"".join(stored.parts), np.uint8).reshape(len(stored.parts), -1)
    # Our own reader might take the largest for files that were made to fill the memory, if rows shrank as counts do.
    large = any(np.asarray(array).nbytes > _ALWAYS_UNPACKED for array in content.values())
    with atomic_write(path, "wb") as stream:
        (np.savez if large else np.savez_compressed)(
            stream, version=_VERSION, class_names=np.array(stored.class_names), parts=parts, **content
        )


def load_summary(path: str | Path) -> StoredSummary:
    """Read a summary; one that is damaged, or whose numbers contradict each other, is refused."""
    with open_npz(path) as archive:
        if "version" not in archive.names:
            raise FileError(f"Expected a summary, as `dualt summarize` writes it, got another kind of file: {path}.")
        version = archive.read("version")
        if version.shape != () or version != _VERSION:
            raise FileError(
                f"Expected a summary of version {_VERSION}, got {version} in {path}. Summarise the data again."
            )
        if set(archive.names) != _NAMES:
            raise ValueError(f"it holds {', '.join(sorted(archive.names))}")
        return _read(archive)


def _read(archive: Npz) -> StoredSummary:
    numbers: dict[str, Any] = {name: _typed(archive, name, "int64", 0).item() for name in _NUMBERS}
    arrays: dict[str, Any] = {name: _typed(archive, name, *expected) for name, expected in _ARRAYS.items()}
    summary = PosteriorSummary(**numbers, **arrays)
    _check(summary)
    names, parts = _typed(archive, "class_names", "str", 1), _typed(archive, "parts", "uint8", 2)
    if parts.shape[1] != hashlib.sha256().digest_size or len(parts) == 0:
        raise ValueError(f"its parts have the shape {parts.shape}")
    class_names = check_class_names(names.tolist(), summary.n_classes)
    return StoredSummary(summary, class_names, tuple(part.tobytes() for part in parts))


def _typed(archive: Npz, name: str, kind: str, ndim: int) -> NDArray[Any]:
    """Return an array of this kind and number of dimensions, in the machine's byte order."""
    array = archive.read(name)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    known = {"float": (np.float32, np.float64), "str": (np.str_,), "int64": (np.int64,), "uint8": (np.uint8,)}[kind]
    if array.dtype.type not in known or array.ndim != ndim:
        raise ValueError(f"{name} is of type {array.dtype} and shape {array.shape}")
    return array


def _check(summary: PosteriorSummary) -> None:
    """Refuse numbers that no pass over rows, numbered from 0, can have come to."""
    n_classes, n_samples = len(summary.counts), summary.n_samples
    _agree(n_classes >= 2 and 1 <= n_samples < 2**62 and summary.sample_size >= 1, "sizes")
    _agree(summary.counts.shape == (n_classes, n_classes) and bool((summary.counts >= 0).all()), "counts")
    # In halves of 32 bits, whose sums cannot overflow.
    high, low = int((summary.counts >> 32).sum()), int((summary.counts & 0xFFFFFFFF).sum())
    _agree((high << 32) + low == n_samples, "counts")
    sums = summary.confidence_sums
    _agree(sums.shape == (n_classes,) and bool((sums >= 0).all()), "confidence sums")
    limit = summary.label_counts * ((1 + ROW_SUM_TOLERANCE) / CONFIDENCE_UNIT)
    _agree(bool((sums <= limit).all()), "confidence sums")
    _check_anchors(summary)
    _check_sample(summary)


def _check_anchors(summary: PosteriorSummary) -> None:
    n_classes, index, rows = summary.n_classes, summary.anchor_index, summary.anchor_rows
    n_anchors = index.shape[1] if index.ndim == 2 else 0
    _agree(n_anchors >= 1 and index.shape[0] == n_classes and rows.shape == (*index.shape, n_classes), "anchors")
    there = np.arange(n_anchors) < summary.n_samples
    _agree(bool((index[:, ~there] == -1).all() and (rows[:, ~there] == 0).all()), "anchors")
    index, rows = index[:, there], rows[:, there]
    _agree(bool((index >= 0).all() and (index < summary.n_samples).all()), "anchors")
    _agree(bool((np.diff(np.sort(index, axis=1), axis=1) > 0).all()), "anchors")
    check_probability_chunk(rows.reshape(-1, n_classes), 0)
    own = rows[np.arange(n_classes), :, np.arange(n_classes)]
    _agree(bool((np.diff(own, axis=1) <= 0).all()), "anchors")


def _check_sample(summary: PosteriorSummary) -> None:
    index, labels, rows = summary.sample_index, summary.sample_labels, summary.sample_rows
    n_rows = min(summary.n_samples, summary.sample_size)
    _agree(index.shape == labels.shape == (n_rows,) and rows.shape == (n_rows, summary.n_classes), "sample")
    _agree(rows.dtype == summary.anchor_rows.dtype, "types of sample and anchors")
    _agree(bool(index[0] >= 0 and index[-1] < summary.n_samples and (np.diff(index) > 0).all()), "sample")
    _agree(bool((labels >= 0).all() and (labels < summary.n_classes).all()), "labels of the sample")
    check_probability_chunk(rows, 0)


def _agree(holds: bool, what: str) -> None:
    if not holds:
        raise InputError(f"Expected the summary of rows numbered from 0, got {what} that contradict it.")


def _digest(summary: PosteriorSummary) -> bytes:
    """Return a digest of all numbers of a summary."""
    digest = hashlib.sha256(repr([getattr(summary, name) for name in _NUMBERS]).encode())
    for name in _ARRAYS:
        digest.update(np.ascontiguousarray(getattr(summary, name)).tobytes())
    return digest.digest()


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f", … {len(names)} in all" if len(names) > 8 else "")
