"""The yardstick: count pairs of clean and given label."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dualt.errors import InputError
from dualt.estimators._counts import count_fit
from dualt.labels import as_label_array
from dualt.results.fit import Fit
from dualt.rows.chunks import add_counts
from dualt.rows.posterior import NoisyPosterior
from dualt.validation import check_same_length


def oracle(posterior: NoisyPosterior, *, clean_labels: Any = None) -> Fit:
    """T̂[i, j] = share of given label j among the examples whose clean label is i.

    No estimator that does not see the clean labels can be expected to do better: the floor of every
    comparison.
    """
    if clean_labels is None:
        raise InputError("The oracle counts clean against given labels: pass clean_labels.")
    labels = as_label_array(clean_labels)
    check_same_length(posterior.summary.n_samples, len(labels))
    n_classes, start = posterior.n_classes, 0
    counts = np.zeros(n_classes * n_classes, np.int64)
    for _, given in posterior.chunks():
        clean = posterior.coder.encode(labels[start : start + len(given)], start)
        add_counts(counts, clean * n_classes + given)
        start += len(given)
    pairs = counts.reshape(n_classes, n_classes)
    rate = 1 - float(np.trace(pairs) / pairs.sum())
    return replace(count_fit(pairs), rate_interval=(rate, rate))
