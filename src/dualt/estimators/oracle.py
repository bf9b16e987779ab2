"""The yardstick: count pairs of clean and given label."""

from dataclasses import replace
from typing import Any

import numpy as np

from dualt.errors import InputError
from dualt.estimators._counts import count_fit
from dualt.labels import as_label_array
from dualt.results.fit import Fit
from dualt.rows.chunks import count_pairs
from dualt.rows.posterior import NoisyPosterior
from dualt.validation import check_same_length


def oracle(posterior: NoisyPosterior, *, clean_labels: Any = None) -> Fit:
    """T̂[i, j] = share of given label j among the examples whose clean label is i.

    No estimator that does not see the clean labels can be expected to do better. `clean_labels` are those of all rows.
    """
    if clean_labels is None:
        raise InputError("The oracle counts clean against given labels: pass clean_labels, in Python.")
    labels = as_label_array(clean_labels)
    check_same_length(posterior.n_given, len(labels))
    labels = labels if posterior.labelled is None else labels[posterior.labelled]
    given = np.concatenate([codes for _, codes in posterior.chunks()])
    counts = count_pairs([posterior.coder.encode(labels) * posterior.n_classes + given], posterior.n_classes)
    rate = 1 - float(np.trace(counts) / counts.sum())
    return replace(count_fit(counts), rate_interval=(rate, rate))
