"""Counts of what is predicted where which label is given, and how much probability the labels got."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.labels import Codes
from dualt.rows.counts import add_counts

# Self-confidences are summed as whole multiples of this, so that sums do not depend on the order.
CONFIDENCE_UNIT = 2.0**-24
_ROWS_AT_ONCE = 1 << 16


class Tally:
    """Adds up a stream of chunks, many at once, since adding a few costs as much.

    `counts` (flat) and `sums` are for those who add to them in another way; see `finish` for what they are.
    """

    def __init__(self, n_classes: int) -> None:
        self.counts = np.zeros(n_classes * n_classes, np.int64)
        self.sums = np.zeros(n_classes, np.int64)
        self._n_classes = n_classes
        self._waiting: list[tuple[NDArray[np.intp], Codes, NDArray[Any]]] = []
        self._n_waiting = 0

    def read(self, chunk: NDArray[Any], predicted: NDArray[Any], labels: Codes) -> None:
        """Add the rows of `chunk`, given where they are largest, and their labels."""
        own = chunk.ravel().take(np.arange(0, chunk.size, self._n_classes) + labels, mode="clip")
        self._waiting.append((predicted.astype(np.intp) * self._n_classes + labels, labels, own))
        self._n_waiting += len(labels)
        if self._n_waiting >= _ROWS_AT_ONCE:
            self._add_waiting()

    def _add_waiting(self) -> None:
        if not self._waiting:
            return
        pairs, labels, own = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        add_counts(self.counts, pairs)
        # Whole numbers, whose sum stays below 2^53: bincount adds them exactly, in whatever order.
        units = np.rint(np.multiply(own, 1 / CONFIDENCE_UNIT, out=own), out=own)
        self.sums += np.bincount(labels, units, self._n_classes).astype(np.int64)
        self._waiting, self._n_waiting = [], 0

    def finish(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many rows are largest at class l and have the label j, and the sums of p[j] over those labels j.

        The latter in units of `CONFIDENCE_UNIT`.
        """
        self._add_waiting()
        return self.counts.reshape(self._n_classes, self._n_classes), self.sums
