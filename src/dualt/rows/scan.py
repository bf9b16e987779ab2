"""The one pass over a block of rows: validated, counted, and searched for what is worth keeping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt import kernels
from dualt.labels import Codes
from dualt.rows.anchors import AnchorTracker, RowSampler
from dualt.rows.floats import as_rows
from dualt.rows.tally import CONFIDENCE_UNIT, Tally
from dualt.transition import chunk_rows
from dualt.validation import ROW_SUM_TOLERANCE, largest_entries


class Scan:
    """The running state of the pass.

    A panel of rows is read in chunks that fit a core's cache, so that each comes from memory once. The compiled kernel
    needs no chunks, unless rows have to be converted.
    """

    def __init__(self, dtype: np.dtype[Any], tally: Tally, anchors: AnchorTracker, sampler: RowSampler) -> None:
        self.tally = tally
        self.anchors = anchors
        self.sampler = sampler
        self.n_samples = 0
        self._dtype = dtype
        self._hits = np.empty(kernels.GROUP * len(tally.sums) + anchors.capacity, np.int64)

    def read(self, probs: NDArray[Any], labels: Codes, start: int) -> None:
        """Read a panel of rows and their labels; `start` is the number of the first."""
        as_they_are = kernels.library and probs.dtype == self._dtype and probs.flags.c_contiguous
        rows, done = chunk_rows(probs.shape[1], self._dtype.itemsize), 0
        while done < len(probs):
            if as_they_are:
                done += self._read_compiled(probs[done:], labels[done:], start + done)
            part = slice(done, done + rows)  # empty, unless there is no kernel or it has come to a row in doubt
            self._read_chunk(as_rows(probs[part], self._dtype), labels[part], start + done)
            done += rows
        self.sampler.read(start, len(probs))
        self.n_samples += len(probs)

    def _read_chunk(self, chunk: NDArray[Any], labels: Codes, start: int) -> None:
        done = self._read_compiled(chunk, labels, start) if kernels.library else 0
        chunk, labels, start = chunk[done:], labels[done:], start + done
        if not len(chunk):
            return
        predicted, largest = largest_entries(chunk, start)
        self.tally.read(chunk, predicted, labels)
        self.anchors.read(chunk, predicted, largest, start)

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
                counts=self.tally.counts,
                sums=self.tally.sums,
                hits=self._hits,
            )
            places = self._hits[:n_hits]
            rows, columns = np.divmod(places, n_classes)
            self.anchors.keep(columns, rest.ravel()[places], rows + (start + done))
            done += n_rows
            full = n_hits + kernels.GROUP * n_classes > len(self._hits)
        return done
