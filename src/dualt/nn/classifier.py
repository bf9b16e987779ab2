"""A neural network with scikit-learn's interface that learns the clean class from noisy labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from dualt.datasets.dataset import compute_moments
from dualt.errors import InputError
from dualt.nn.pipeline import RobustRun, Settings, train_robustly
from dualt.nn.training import Machine, Part, TrainingData, as_inputs
from dualt.nn.training.model import Model
from dualt.nn.training.tensorboard import tensorboard_log
from dualt.results import TransitionEstimate
from dualt.rng import stream
from dualt.validation import check_fraction

# Small data get smaller batches, so that an epoch has about this many steps.
_STEPS = 32
_SMALLEST_BATCH = 8


class RobustNetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn the noisy posterior, estimate the transition matrix, and train a network through it.

    Parameters
    ----------
    network
        Name in `dualt.nn.networks.NETWORKS`, or a function `(input_shape, n_classes, **options) -> nn.Module`.
    method
        Name in `dualt.nn.methods.METHODS`.
    transition
        Name of an estimator, an estimate, or a known matrix whose rows follow the sorted classes.
    epochs
        Of every stage of training; `None`: as published, the posterior 100 and most methods 200.
    batch_size
        Smaller data sets get smaller batches, down to 8, for about 32 steps an epoch.
    learning_rate
        Of the method, and of the stages before it that use the same optimizer; `None`: as published.
    validation_fraction
        Share of the samples set aside to choose the best epoch, with their noisy labels.
    patience
        Stop a stage after this many epochs without a better validation accuracy.
    folds
        Learn the posterior out of fold in this many folds; 1: on the training part itself, like the paper;
        `None`: whichever suits the estimator.
    method_options
        Such as `{"volume_weight": 1e-3}` for `volminnet`.
    network_options
        Such as `{"hidden": (64, 64), "dropout": 0.2}`.
    device, precision, threads
        Of the machine to train on.
    tensorboard
        Folder for TensorBoard's curves of every stage (the extra `[tensorboard]`).
    random_state
        Seed, generator or `None`.

    Attributes
    ----------
    classes_ : (n_classes,)
    transition_ : (n_classes, n_classes) or None
        The matrix that the method was given.
    transition_estimate_ : TransitionEstimate or None
        How it was found.
    learned_transition_ : (n_classes, n_classes) or None
        The matrix that the method has learned: from nothing (`volminnet`, `total-variation`), or by revising the
        one it was given (`revision`).
    out_of_fold_ : bool or None
        Whether `transition_` was estimated from out-of-fold probabilities; `None` if it was not estimated.
    model_ : dualt.nn.training.model.Model
    history_ : dict
        Curves of every stage.
    n_features_in_ : int

    Examples
    --------
    >>> import dualt, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.integers(2, size=400)
    >>> x = rng.normal(size=(400, 5)) + 3 * clean[:, None]
    >>> given = dualt.noise.corrupt(clean, dualt.noise.symmetric(2, 0.3))
    >>> model = RobustNetClassifier(epochs=20, learning_rate=0.1, random_state=0).fit(x, given)
    >>> bool((model.predict(x) == clean).mean() > 0.95)
    True
    """

    def __init__(
        self,
        network: str | Callable[..., nn.Module] = "mlp",
        method: str = "forward",
        transition: str | ArrayLike | TransitionEstimate = "dual-t",
        *,
        epochs: int | None = None,
        batch_size: int = 128,
        learning_rate: float | None = None,
        validation_fraction: float = 0.2,
        patience: int | None = None,
        folds: int | None = None,
        method_options: Mapping[str, Any] | None = None,
        network_options: Mapping[str, Any] | None = None,
        device: str = "auto",
        precision: Literal["float32", "bf16"] = "float32",
        threads: int | None = None,
        tensorboard: str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.method = method
        self.transition = transition
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.folds = folds
        self.method_options = method_options
        self.network_options = network_options
        self.device = device
        self.precision = precision
        self.threads = threads
        self.tensorboard = tensorboard
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RobustNetClassifier:  # noqa: N803
        """Train on samples (n, features) or images (n, H, W) or (n, C, H, W), and their noisy labels."""
        X, y = validate_data(self, X, y, dtype=_dtype(X), allow_nd=True)  # noqa: N806
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"Expected labels of at least two classes, got one class: {self.classes_[0]!r}.")
        seed = int(check_random_state(self.random_state).randint(2**31))
        rows = _divide(codes, check_fraction(self.validation_fraction, "validation_fraction"), seed)
        moments = compute_moments(X[rows[0]])
        mean, std = np.array(moments.mean, np.float32), np.array(moments.std, np.float32)
        machine = Machine(self.device, precision=self.precision, threads=self.threads)

        def part(chosen: NDArray[np.intp]) -> Part:
            labels = torch.from_numpy(codes[chosen].astype(np.int64)).to(machine.torch_device)
            return Part(as_inputs(X[chosen], mean, std, machine.torch_device), labels)

        data = TrainingData(part(rows[0]), part(rows[1]))
        names = tuple(map(str, self.classes_.tolist()))
        settings = self._settings(len(rows[0]), seed, machine)
        with tensorboard_log(self.tensorboard) as on_epoch:
            run = train_robustly(data, len(names), settings, class_names=names, on_epoch=on_epoch)
        self._keep(run, data, names, mean, std)
        return self

    def _settings(self, n_samples: int, seed: int, machine: Machine) -> Settings:
        return Settings(
            method=self.method,
            transition=self.transition,
            network=self.network,
            network_options=self.network_options or {},
            epochs=self.epochs,
            batch_size=min(self.batch_size, max(_SMALLEST_BATCH, n_samples // _STEPS)),
            learning_rate=self.learning_rate,
            patience=self.patience,
            folds=self.folds,
            seed=seed,
            machine=machine,
            method_options=self.method_options or {},
        )

    def _keep(
        self, run: RobustRun, data: TrainingData, names: tuple[str, ...], mean: NDArray[Any], std: NDArray[Any]
    ) -> None:
        self.transition_ = run.transition
        self.transition_estimate_ = run.estimate
        self.learned_transition_ = run.learned_transition
        self.out_of_fold_ = run.out_of_fold
        self.history_ = {name: trained.history.to_dict() for name, trained in run.stages.items()}
        self.model_ = Model(
            networks=run.networks,
            network=self.network if isinstance(self.network, str) else None,
            options=self.network_options or {},
            input_shape=data.train.inputs.shape,
            class_names=names,
            mean=mean,
            std=std,
            about={
                "method": self.method,
                "transition": _listed(run.transition),
                "learned_transition": _listed(run.learned_transition),
                "out_of_fold": run.out_of_fold,
                "classes": self.classes_.tolist(),
                "n_features": int(self.n_features_in_),
                "history": self.history_,
            },
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the clean class, (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=_dtype(X), allow_nd=True, reset=False)  # noqa: N806
        probs = self.model_.predict_probs(X, Machine(self.device)).astype(np.float64)
        normalized: NDArray[np.float64] = probs / probs.sum(axis=1, keepdims=True)
        return normalized

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most likely clean class of every sample."""
        check_is_fitted(self)
        chosen: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return chosen

    def save(self, folder: str | Path) -> None:
        """Write the fitted classifier into a folder: weights as safetensors, the rest as JSON."""
        check_is_fitted(self)
        self.model_.save(folder)

    @classmethod
    def load(cls, folder: str | Path, network: Callable[..., nn.Module] | None = None) -> RobustNetClassifier:
        """Read a classifier that `save` wrote; `network` is the function that built it, if it was not one of ours."""
        model = Model.load(folder, network)
        builder = network or model.network or "mlp"
        classifier = cls(builder, model.about.get("method", "ce"), network_options=model.options)
        classifier.model_ = model
        classifier.classes_ = np.array(model.about.get("classes", model.class_names))
        classifier.n_features_in_ = model.about.get("n_features", model.input_shape[0])
        for name in ("transition", "learned_transition"):
            matrix = model.about.get(name)
            setattr(classifier, f"{name}_", None if matrix is None else np.array(matrix))
        classifier.transition_estimate_ = None
        classifier.out_of_fold_ = model.about.get("out_of_fold")
        classifier.history_ = model.about.get("history", {})
        return classifier


def _listed(matrix: NDArray[np.float64] | None) -> list[list[float]] | None:
    return None if matrix is None else matrix.tolist()


def _dtype(samples: Any) -> Any:
    """Images of bytes stay bytes; everything else becomes float32."""
    return None if getattr(samples, "dtype", None) == np.uint8 and np.ndim(samples) > 2 else np.float32


def _divide(codes: NDArray[np.intp], fraction: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train and to validate on, each class divided alike, neither part empty."""
    order = stream(seed, "split").permutation(len(codes))
    by_class = order[np.argsort(codes[order], kind="stable")]
    # Every 1/fraction-th sample, counted through the classes one after the other.
    places = np.floor(np.arange(1, len(codes) + 1) * fraction) > np.floor(np.arange(len(codes)) * fraction)
    places[-1] |= not places.any()
    return np.sort(by_class[~places]), np.sort(by_class[places])
