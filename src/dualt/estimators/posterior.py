"""Probabilities and given labels as the estimators see them: a summary, and rows to be read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.estimators.summary import PosteriorSummary, summarize, working_dtype
from dualt.labels import Codes, LabelCoder, as_label_array
from dualt.transition import chunk_rows
from dualt.validation import as_probability_table, check_same_length


@dataclass(frozen=True)
class NoisyPosterior:
    """The noisy posterior of a data set and its given labels.

    `summary` reads every row once and validates it; `chunks` reads the rows again, for estimators that
    count under a condition known only after the first pass.
    """

    pred_probs: NDArray[Any]
    noisy_labels: NDArray[Any]
    coder: LabelCoder

    @classmethod
    def from_arrays(
        cls, pred_probs: Any, noisy_labels: Any, class_names: Sequence[Any] | None = None
    ) -> NoisyPosterior:
        """Take anything that looks like probabilities and labels, without copying arrays.

        Class names come from `class_names`, else from the columns of a data frame, else from the labels.
        """
        table, columns = as_probability_table(pred_probs)
        labels = as_label_array(noisy_labels)
        check_same_length(len(table), len(labels))
        names = class_names if class_names is not None else columns
        return cls(table, labels, LabelCoder.for_labels(labels, table.shape[1], names))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.coder.n_classes

    @cached_property
    def summary(self) -> PosteriorSummary:
        """The summary of all rows; the first use reads and validates them."""
        return summarize(self.pred_probs, self.noisy_labels, self.coder)

    def chunks(self) -> Iterator[tuple[NDArray[Any], Codes]]:
        """Yield (probabilities, label codes) in cache-sized chunks, known to be valid."""
        _ = self.summary
        dtype = working_dtype(self.pred_probs.dtype)
        rows = chunk_rows(self.n_classes, dtype.itemsize)
        for low in range(0, len(self.pred_probs), rows):
            part = slice(low, low + rows)
            probs = np.ascontiguousarray(self.pred_probs[part], dtype=dtype)
            yield probs, self.coder.encode(self.noisy_labels[part], low)
