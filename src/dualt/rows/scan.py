"""The first pass over rows: they are validated, counted, and searched for what is worth keeping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels
from dualt.labels import Codes
from dualt.rows.anchors import AnchorTracker
from dualt.rows.counts import add_counts
from dualt.rows.floats import as_rows
from dualt.transition import chunk_rows
from dualt.validation import ROW_SUM_TOLERANCE, check_probability_chunk

# Self-confidences are summed as whole multiples of this, so that sums do not depend on the order.
CONFIDENCE_UNIT = 2.0**-24
_ROWS_AT_ONCE = 1 << 16


class Scan:
    """The running state of the pass.

    Attributes
    ----------
    counts : (n_classes, n_classes)
        `counts[l, j]`: rows that are largest at class l and have the label j.
    sums : (n_classes,)
        Sums of p[j] over the rows with label j, in units of `CONFIDENCE_UNIT`.
    """

    def __init__(self, anchors: AnchorTracker) -> None:
        n_classes = len(anchors.floor)
        self.anchors = anchors
        self.counts = np.zeros((n_classes, n_classes), np.int64)
        self.sums = np.zeros(n_classes, np.int64)
        self._hits = np.empty(kernels.GROUP * n_classes + anchors.capacity, np.int64)

    def read(self, probs: NDArray[Any], codes: NDArray[Any], start: int) -> None:
        """Read rows and their class indices; `start` is the number of the first."""
        dtype = self.anchors.floor.dtype
        rows, low = chunk_rows(probs.shape[1], dtype.itemsize), 0
        # Where nothing has to be converted, the kernel reads many chunks in one call.
        direct = kernels.library and probs.dtype == dtype and probs.flags.c_contiguous
        while low < len(probs):
            some = slice(low, low + (max(rows, _ROWS_AT_ONCE) if direct else rows))
            chunk, labels = as_rows(probs[some], dtype), codes[some].astype(np.intp, copy=False)
            done = self._read_compiled(chunk, labels, start + low) if kernels.library else 0
            if done < len(chunk):  # there is no kernel, or it has come to a row in doubt
                rest = slice(done, done + rows)
                self._read_chunk(chunk[rest], labels[rest], start + low + done)
                done = min(done + rows, len(chunk))
            low += done

    def _read_chunk(self, chunk: NDArray[Any], labels: Codes, start: int) -> None:
        check_probability_chunk(chunk, start)
        predicted, n_classes = chunk.argmax(axis=1), len(self.sums)
        add_counts(self.counts.reshape(-1), predicted * n_classes + labels)
        own = chunk[np.arange(len(chunk)), labels]
        # Whole numbers, whose sum stays below 2^53: bincount adds them exactly, in whatever order.
        self.sums += np.bincount(labels, np.rint(own / CONFIDENCE_UNIT), n_classes).astype(np.int64)
        self.anchors.read(chunk, start)

    def _read_compiled(self, chunk: NDArray[Any], labels: Codes, start: int) -> int:
        """Return how many rows the compiled kernel read: all, or those before some that may be bad."""
        n_classes, done, full = chunk.shape[1], 0, True
        while full and done < len(chunk):
            rest = chunk[done:]
            n_rows, n_hits = kernels.scan_rows(
                rest,
                labels[done:],
                self.anchors.floor,
                tolerance=ROW_SUM_TOLERANCE,
                unit=CONFIDENCE_UNIT,
                counts=self.counts,
                sums=self.sums,
                hits=self._hits,
            )
            places = self._hits[:n_hits]
            rows, columns = np.divmod(places, n_classes)
            self.anchors.keep(columns, rest.ravel()[places], rows + (start + done))
            done += n_rows
            full = n_hits + kernels.GROUP * n_classes > len(self._hits)
        return done
