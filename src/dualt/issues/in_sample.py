"""Labels ranked by one training run, in sample: no transition matrix is estimated from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualt.dynamics import TrainingDynamics
from dualt.errors import InputError
from dualt.issues.label_issues import LabelIssues
from dualt.label_arrays import as_label_array
from dualt.labels import LabelCoder
from dualt.rows.counts import normalize_counts
from dualt.validation import ClassNames, check_count, check_fraction, check_same_length


def rank_dynamics(
    dynamics: TrainingDynamics,
    noisy_labels: Any,
    *,
    threshold: float | None = None,
    top: int | None = None,
    class_names: ClassNames | None = None,
) -> LabelIssues:
    """Rank labels by their mean margin over the epochs of a training; see `find_label_issues`.

    In place of a probability stands (1 + margin) / 2: that of two classes, and one half where a label was on average
    as probable as its strongest rival. Labels to which another class was preferred on average are flagged. `by_pair`
    and `transition` count those, and estimate nothing.
    """
    if threshold is not None and top is not None:
        raise InputError("Expected a threshold or a number of issues (top), got both.")
    margins = dynamics.mean_margins
    labels = as_label_array(noisy_labels)
    check_same_length(len(margins), len(labels))
    n_classes = margins.shape[1]
    coder = LabelCoder.for_labels(labels, n_classes, dynamics.class_names if class_names is None else class_names)
    given, suggested = coder.encode_small(labels), margins.argmax(axis=1).astype(np.min_scalar_type(n_classes - 1))
    rows = np.arange(len(margins))
    right, suggested_score = ((1 + margins[rows, classes]) / 2 for classes in (given, suggested))
    is_issue = suggested != given
    if threshold is not None:
        check_fraction(threshold, "threshold")
        is_issue = right < threshold
    if top is not None:
        is_issue = np.zeros(len(margins), dtype=bool)
        is_issue[np.argsort(right, kind="stable")[: check_count(top, "a number of issues (top)", least=0)]] = True
    pairs = given.astype(np.intp) * n_classes + suggested
    by_pair = np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
    return LabelIssues(
        given, right, suggested, suggested_score, by_pair.astype(np.float64), is_issue, coder.names,
        normalize_counts(by_pair.T), None, label_texts=coder.label_texts,
    )  # fmt: skip
