"""One training run instead of folds: what a network thought of every example, on average over its epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualt.errors import InputError, ProbabilitiesError
from dualt.probabilities import most_by_rounding
from dualt.validation import ROW_SUM_TOLERANCE, ClassNames, as_array, check_class_names, check_count, check_indices


class TrainingDynamics:
    """Mean probabilities and margins of every example over the epochs of an ordinary training, in sample.

    A network learns what labels have in common before it learns single ones by heart: the label that it doubted for
    most of the training is probably wrong. Only running sums are kept, two numbers per example and class.
    `dualt.find_label_issues(dynamics, labels)` ranks labels by it.

    Parameters
    ----------
    n_samples
        Number of training examples.
    class_names
        In the order of the outputs; by default the numbers of the classes.

    Attributes
    ----------
    n_epochs : int
        Number of different epochs recorded.
    n_recorded : (n_samples,)
        How often each example was recorded.

    Examples
    --------
    >>> import dualt
    >>> dynamics = dualt.TrainingDynamics(n_samples=2)
    >>> dynamics.record(0, [[0.6, 0.4], [0.5, 0.5]])
    >>> dynamics.record(1, [[0.8, 0.2]], indices=[0])
    >>> dynamics.record(1, [[0.1, 0.9]], indices=[1])
    >>> dynamics.mean_probs.round(2)
    array([[0.7, 0.3],
           [0.3, 0.7]], dtype=float32)
    >>> issues = dualt.find_label_issues(dynamics, [0, 0])
    >>> issues.indices, issues.suggested[1]
    (array([1]), np.uint8(1))
    """

    def __init__(self, n_samples: int, class_names: ClassNames | None = None) -> None:
        self.n_samples = check_count(n_samples, "a number of examples (n_samples)", least=1)
        self._names = class_names
        self._last, self._latest = np.full(self.n_samples, -1), -1
        self.n_recorded = np.zeros(self.n_samples, np.int32)
        self.n_epochs = 0
        self._probs = self._margins = np.zeros((self.n_samples, 0), np.float32)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the outputs."""
        n_classes = self._recorded(self._probs).shape[1]
        return tuple(map(str, range(n_classes))) if self._names is None else check_class_names(self._names, n_classes)

    def record(self, epoch: int, outputs: ArrayLike, indices: ArrayLike | None = None) -> None:
        """Add what the network says of some examples in an epoch.

        Parameters
        ----------
        epoch
            Its number, from 0; in each, an example is recorded once at most.
        outputs : (n, n_classes)
            Probabilities, or logits, as the network gives them: array or tensor. Rows of probabilities that were
            rounded are divided by their sums.
        indices : (n,)
            Which examples these are, counted from 0; by default all in their order.
        """
        epoch = check_count(epoch, "the number of an epoch", least=0)
        probs = _as_probs(outputs)
        if indices is None:
            if len(probs) != self.n_samples:
                raise InputError(f"Expected outputs of all {self.n_samples:,} examples or indices, got {len(probs):,}.")
            rows = np.arange(self.n_samples)
        else:
            rows = check_indices(as_array(indices, "indices of examples", InputError), self.n_samples)
        if len(rows) != len(probs):
            raise InputError(f"Expected one index per output, got {len(probs):,} outputs and {len(rows):,} indices.")
        if not self._probs.shape[1]:
            self._probs, self._margins = np.zeros((2, self.n_samples, probs.shape[1]), np.float32)
        elif probs.shape[1] != self._probs.shape[1]:
            raise InputError(f"Expected outputs of {self._probs.shape[1]} classes as before, got {probs.shape[1]}.")
        if (self._last[rows] >= epoch).any():
            row = rows[int(np.argmax(self._last[rows] >= epoch))]
            raise InputError(f"Expected example {row} once per epoch, epochs in order, got it again in epoch {epoch}.")
        if epoch > self._latest:
            self._latest, self.n_epochs = epoch, self.n_epochs + 1
        self._last[rows] = epoch
        self.n_recorded[rows] += 1
        self._probs[rows] += probs
        self._margins[rows] += margins_of(probs)

    @property
    def mean_probs(self) -> NDArray[np.float32]:
        """Mean probability of each class: (n_samples, n_classes)."""
        return self._mean(self._probs)

    @property
    def mean_margins(self) -> NDArray[np.float32]:
        """Mean of the probability of each class less that of the strongest other: (n_samples, n_classes)."""
        return self._mean(self._margins)

    def _mean(self, sums: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(self._recorded(sums) / self.n_recorded[:, None].astype(np.float32))

    def _recorded(self, sums: NDArray[np.float32]) -> NDArray[np.float32]:
        if not self.n_recorded.all():
            row = int(np.argmin(self.n_recorded))
            raise InputError(f"Expected every example to be recorded, got none of example {row}.")
        return sums

    def callback(self, predict: Callable[[], Any]) -> EpochCallback:
        """Return a callback that records all examples at the end of every epoch.

        Parameters
        ----------
        predict
            Returns the outputs of all training examples in their order.

        Examples
        --------
        Keras: ``model.fit(x, y, callbacks=[dynamics.callback(lambda: model.predict(x, verbose=0))])``.
        Transformers: ``trainer.add_callback(dynamics.callback(lambda: trainer.predict(dataset).predictions))``.
        The loop of `dualt`: ``train(..., on_epoch=dynamics.callback(lambda: predict_probs(networks, part.inputs)))``.
        """
        return EpochCallback(self, predict)

    def __repr__(self) -> str:
        return f"TrainingDynamics(n_samples={self.n_samples}, n_epochs={self.n_epochs})"


class EpochCallback:
    """Records an epoch when it ends, whoever says so: Keras, transformers or `dualt`'s own loop; see `callback`."""

    def __init__(self, dynamics: TrainingDynamics, predict: Callable[[], Any]) -> None:
        self.dynamics = dynamics
        self.predict = predict

    def __call__(self, *told: Any, **named: Any) -> None:
        """Record one epoch more."""
        self.dynamics.record(self.dynamics.n_epochs, self.predict())

    on_epoch_end = __call__

    def __getattr__(self, name: str) -> Any:
        """Return what does nothing, for all else that the frameworks tell their callbacks."""
        if name.startswith(("on_", "set_")):
            return lambda *told, **named: None
        raise AttributeError(name)


def margins_of(probs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the probability of each class less that of the strongest other.

    Examples
    --------
    >>> margins_of(np.array([[0.5, 0.25, 0.25]], np.float32))
    array([[ 0.25, -0.25, -0.25]], dtype=float32)
    """
    second, first = np.sort(probs, axis=1)[:, -2:].T
    rows, best = np.arange(len(probs)), probs.argmax(axis=1)
    margins: NDArray[np.float32] = probs - first[:, None]
    margins[rows, best] = first - second
    return margins


def _as_probs(outputs: Any) -> NDArray[np.float32]:
    """Return probabilities; of anything that is none, the softmax."""
    from scipy.special import softmax

    table = as_array(outputs, "outputs of shape (n, n_classes)", ProbabilitiesError)
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "fiu":
        raise ProbabilitiesError(
            f"Expected outputs of shape (n, n_classes), a column per class, got {table.dtype} of shape {table.shape}."
        )
    values = table.astype(np.float32)
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise ProbabilitiesError(f"Expected finite outputs, got {values[row]} at place {row}: has training diverged?")
    if _are_probabilities(values):
        sums = values.sum(axis=1)
        rounded = (np.abs(sums - 1) > ROW_SUM_TOLERANCE).any()
        return np.asarray(values / sums[:, None]) if rounded else values
    return np.asarray(softmax(values, axis=1))


def _are_probabilities(values: NDArray[np.float32]) -> bool:
    """Tell probabilities, rounded ones too, from logits; refuse rows that are neither."""
    if not ((values >= 0) & (values <= 1 + ROW_SUM_TOLERANCE)).all():
        return False
    sums = values.sum(axis=1)
    near = np.abs(sums - 1) <= most_by_rounding(values.shape[1])
    # Logits between 0 and 1 sum to one by chance only: most rows tell what they are.
    if near.sum() <= len(near) / 2:
        return False
    if not near.all():
        row = int(np.argmin(near))
        raise ProbabilitiesError(
            f"Expected probabilities that sum to 1, as most rows of these outputs do, got {sums[row]:.6g} at place"
            f" {row}. Divide each row by its sum; of logits, pass the softmax."
        )
    return True
