"""Mean predictions over one ordinary training run, and a ranking of labels by them: no folds, no matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import InputError, ProbabilitiesError
from dualt.issues.label_issues import LabelIssues, check_cut, expected_wrong, flag
from dualt.labels import LabelCoder, as_label_array
from dualt.rows.chunks import count_pairs, normalize_counts
from dualt.validation import as_array, check_count, check_indices, check_same_length, index_of, most_by_rounding


class TrainingDynamics:
    """Mean probabilities and margins of every training example over the epochs of one training run.

    A network learns common patterns before it memorises single labels: a label that it doubted during most of the
    training is probably wrong. `dualt.find_label_issues(dynamics, labels)` ranks labels by their mean margin. Only
    running sums are kept, two numbers per example and class.

    >>> import dualt
    >>> dynamics = dualt.TrainingDynamics(n_samples=2)
    >>> dynamics.record(0, [[0.6, 0.4], [0.5, 0.5]])
    >>> dynamics.record(1, [[0.8, 0.2], [0.1, 0.9]])
    >>> dualt.find_label_issues(dynamics, [0, 0]).indices
    array([1])
    """

    def __init__(self, n_samples: int) -> None:
        self.n_samples = check_count(n_samples, "a number of examples (n_samples)", least=1)
        self.n_recorded = np.zeros(self.n_samples, np.int32)
        self.n_epochs = 0
        self._probs = self._margins = np.zeros((self.n_samples, 0), np.float32)

    def record(self, epoch: int, outputs: ArrayLike, indices: ArrayLike | None = None) -> None:
        """Add probabilities or logits, (n, n_classes), of all examples in order or of those at `indices`, once each."""
        epoch, probs = check_count(epoch, "the number of an epoch", least=0), _as_probs(outputs)
        rows = np.arange(self.n_samples)
        if indices is not None:
            rows = check_indices(as_array(indices, "indices", InputError), self.n_samples)
        if len(rows) != len(probs):
            raise InputError(f"Expected one output per example, got {len(probs):,} outputs and {len(rows):,} examples.")
        if not self._probs.shape[1]:
            self._probs, self._margins = np.zeros((2, self.n_samples, probs.shape[1]), np.float32)
        elif probs.shape[1] != self._probs.shape[1]:
            raise InputError(f"Expected outputs with {self._probs.shape[1]} classes as before, got {probs.shape[1]}.")
        self.n_epochs = max(self.n_epochs, epoch + 1)
        self.n_recorded[rows] += 1
        self._probs[rows] += probs
        second, first = np.sort(probs, axis=1)[:, -2:].T
        margins = probs - first[:, None]
        margins[np.arange(len(probs)), probs.argmax(axis=1)] = first - second
        self._margins[rows] += margins

    @property
    def mean_probs(self) -> NDArray[np.float32]:
        """Mean probability of each class: (n_samples, n_classes)."""
        return self._mean(self._probs)

    @property
    def mean_margins(self) -> NDArray[np.float32]:
        """Mean of (probability of the class − largest of the others): (n_samples, n_classes)."""
        return self._mean(self._margins)

    def _mean(self, sums: NDArray[np.float32]) -> NDArray[np.float32]:
        if not self.n_recorded.all():
            raise InputError(f"Expected every example to be recorded, got none of example {self.n_recorded.argmin()}.")
        return np.asarray(sums / self.n_recorded[:, None].astype(np.float32))

    def __repr__(self) -> str:
        return f"TrainingDynamics(n_samples={self.n_samples}, n_epochs={self.n_epochs})"


def rank_dynamics(
    dynamics: TrainingDynamics, noisy_labels: Any, threshold: float | None, top: int | None, class_names: Any
) -> LabelIssues:
    """Rank labels by (1 + mean margin) / 2; by default flag those with another class preferred on average."""
    check_cut(threshold, top)
    right, labels = (1 + dynamics.mean_margins) / 2, as_label_array(noisy_labels)
    check_same_length(len(right), len(labels))
    n_classes = right.shape[1]
    coder = LabelCoder.for_labels(labels, n_classes, class_names)
    given, suggested = coder.encode_small(labels), right.argmax(axis=1).astype(np.min_scalar_type(n_classes - 1))
    pairs, rows = given.astype(np.intp) * n_classes + suggested, np.arange(len(right))
    by_pair = count_pairs([pairs], n_classes).astype(np.float64)
    score = right[rows, given]
    is_issue = flag(score, suggested != given, expected_wrong(by_pair), threshold, top)
    return LabelIssues(
        given, score, suggested, right[rows, suggested], by_pair, is_issue,
        coder.names, normalize_counts(by_pair.T), None, index_of(noisy_labels),
    )  # fmt: skip


def _as_probs(outputs: Any) -> NDArray[np.float32]:
    """Return probabilities as they are, up to rounding, and the softmax of anything else."""
    from scipy.special import softmax

    table = as_array(outputs, "outputs", ProbabilitiesError)
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "fiu":
        raise ProbabilitiesError(f"Expected outputs, a column per class, got {table.dtype} of shape {table.shape}.")
    values = table.astype(np.float32)
    if not np.isfinite(values).all():
        raise ProbabilitiesError("Expected finite outputs, got NaN or infinity: has training diverged?")
    sums = values.sum(axis=1, keepdims=True)
    near = (np.abs(sums - 1) <= most_by_rounding(values.shape[1]))[:, 0]
    # Logits between 0 and 1 sum to one by chance only, so most rows decide.
    if values.min() < 0 or values.max() > 1.001 or near.sum() <= len(near) / 2:
        return np.asarray(softmax(values, axis=1))
    if not near.all():
        row = int(near.argmin())
        raise ProbabilitiesError(f"Expected rows that sum to 1, as most do, got {sums[row, 0]:.6g} in row {row}.")
    return np.asarray(values / sums)
