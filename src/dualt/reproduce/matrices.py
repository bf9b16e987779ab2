"""The matrices that an experiment compares, by name: every estimator, the same in sample, and the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.errors import InputError
from dualt.estimators import ESTIMATORS, estimate_transition

if TYPE_CHECKING:
    from dualt.reproduce.learning import Learned

# The known matrix of the noise: what no estimate can be better than.
TRUE = "true"
# From the probabilities of samples that the network was trained on, like the paper, though the spec has folds.
IN_SAMPLE = "-in-sample"

MATRICES = (
    *ESTIMATORS,
    *(f"{name}{IN_SAMPLE}" for name, entry in ESTIMATORS.items() if not entry.needs_clean_labels),
    TRUE,
)


def find_matrix(name: str, learned: Learned) -> NDArray[np.float64]:
    """Return the matrix `name` of what was learned: estimated from its probabilities, or known."""
    split = learned.split
    if name == TRUE:
        if split.transition is None:
            raise InputError(f"Expected labels with known noise for the matrix {TRUE!r}, got {learned.spec.dataset!r}.")
        return split.transition
    estimator = name.removesuffix(IN_SAMPLE)
    pred_probs = learned.pred_probs if estimator == name else learned.in_sample_probs
    classes = np.array([str(number) for number in range(learned.dataset.n_classes)])
    options: dict[str, Any] = {}
    if ESTIMATORS[estimator].needs_clean_labels:
        options["clean_labels"] = classes[split.train_clean]
    estimate = estimate_transition(
        pred_probs, classes[split.train_noisy], estimator, class_names=classes.tolist(), **options
    )
    return estimate.transition
