"""A neural network with scikit-learn's interface that learns the clean class from noisy labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from dualt.crossfit.targets import encode_labels
from dualt.datasets.dataset import compute_moments
from dualt.errors import DualtWarning
from dualt.nn.config import AUTO, RecipeName, TrainingConfig
from dualt.nn.pipeline import RobustRun, as_lists, train_robustly
from dualt.nn.training import Machine, Part, TrainingData, as_inputs
from dualt.nn.training.loop import Augment
from dualt.nn.training.model import Model
from dualt.nn.training.recipe import Optimizer, Precision
from dualt.nn.training.tensorboard import tensorboard_log
from dualt.results import TransitionEstimate
from dualt.rng import stream

# Attributes, less the underscore behind them, that a saved model tells.
_MATRICES = ("transition", "learned_transition")
_TOLD = ("method", *_MATRICES, "out_of_fold", "distrust", "history")


class RobustNetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn the noisy posterior, estimate the transition matrix, and train a network through it.

    The network sees float32 samples that are standardised: each feature, or channel of images, has mean 0 and standard
    deviation 1 over the training part. Networks that need the numbers as they are, as those with `nn.Embedding`, are
    trained by `dualt.nn.pipeline.train_robustly` on parts of `dualt.nn.training.as_inputs(X)`: whole numbers come as
    floats, and `x.long()` in the network brings them back.

    Parameters
    ----------
    network
        Name in `dualt.nn.networks.NETWORKS`, or a function `(input_shape, n_classes, **options) -> nn.Module`.
    method
        Name in `dualt.nn.methods.METHODS`, or `"auto"`: Forward if the estimate says that one class is mistaken for
        another, else DivideMix, or plain cross entropy if hardly any labels are wrong. Where the estimate is not to be
        trusted, cross entropy takes the place of every method that needs it.
    estimator
        Name in `dualt.estimators.ESTIMATORS`: how the transition matrix is found. `None`: the library's default.
    transition
        A known matrix whose rows follow the sorted classes, or an estimate, instead.
    recipe
        `"default"`: Adam under a one-cycle schedule, with enough steps for the data. `"paper"`: every stage as
        published, and dual-T on the training part itself.
    epochs
        Of every stage of training; `None`: 15 to 60, for at least 700 steps; by the paper's recipe, as published.
    batch_size
        `None`: a 32nd of the samples, from 16 to 128; by the paper's recipe, as published.
    optimizer
        `"sgd"` or `"adam"`, of every stage; `None`: that of the recipe.
    learning_rate, momentum, weight_decay
        Of the method, and of the stages before it that use the same optimizer; `None`: those of the recipe.
    validation_fraction
        Share of the samples set aside to choose the best epoch, with their noisy labels. The network of
        a fold learns from them too, from all samples but those of the fold.
    patience
        Stop a stage after this many epochs without a better validation accuracy.
    folds
        Learn the posterior out of fold in this many folds of all samples; 1: on the training part itself, like the
        paper; `None`: 5 up to 20,000 samples, 3 up to 100,000, else 2; by the paper's recipe 1.
    method_options
        Such as `{"volume_weight": 1e-3}` for `volminnet`.
    network_options
        Such as `{"hidden": (64, 64), "dropout": 0.2, "batch_norm": True}` for `mlp`, and
        `{"width": 0.25, "stem": "imagenet"}` for `resnet18`.
    weights
        Where pre-trained weights are: a `.safetensors` file, or `"imagenet"`.
    augment
        `"shift"` or `"shift-flip"`, or a function of a batch of images and a generator.
    device, precision
        What to train on.
    n_jobs
        Number of CPU threads; `None` leaves torch's own setting.
    tensorboard
        Folder for TensorBoard's curves of every stage (the extra `[tensorboard]`).
    random_state
        Seed, generator or `None`.

    Attributes
    ----------
    classes_ : (n_classes,)
    transition_ : (n_classes, n_classes) or None
        The matrix that the method was given.
    method_ : str
        The method that trained the network.
    distrust_ : str or None
        Why the estimate is not to be trusted, and was not used but by the paper's recipe; `None`: it is.
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
    >>> model = RobustNetClassifier(epochs=10, random_state=0).fit(x, given)
    >>> bool((model.predict(x) == clean).mean() > 0.95)
    True
    """

    def __init__(
        self,
        network: str | Callable[..., nn.Module] = TrainingConfig.network,
        method: str = TrainingConfig.method,
        estimator: str | None = TrainingConfig.estimator,
        transition: ArrayLike | TransitionEstimate | None = TrainingConfig.transition,
        *,
        recipe: RecipeName = TrainingConfig.recipe,
        epochs: int | None = TrainingConfig.epochs,
        batch_size: int | None = TrainingConfig.batch_size,
        optimizer: Optimizer | None = TrainingConfig.optimizer,
        learning_rate: float | None = TrainingConfig.learning_rate,
        momentum: float | None = TrainingConfig.momentum,
        weight_decay: float | None = TrainingConfig.weight_decay,
        validation_fraction: float = TrainingConfig.validation_fraction,
        patience: int | None = TrainingConfig.patience,
        folds: int | None = TrainingConfig.folds,
        method_options: Mapping[str, Any] | None = TrainingConfig.method_options,
        network_options: Mapping[str, Any] | None = TrainingConfig.network_options,
        weights: str | Path | None = TrainingConfig.weights,
        augment: str | Augment | None = TrainingConfig.augment,
        device: str = TrainingConfig.device,
        precision: Precision = TrainingConfig.precision,
        n_jobs: int | None = TrainingConfig.n_jobs,
        tensorboard: str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.method = method
        self.estimator = estimator
        self.transition = transition
        self.recipe = recipe
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.folds = folds
        self.method_options = method_options
        self.network_options = network_options
        self.weights = weights
        self.augment = augment
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.tensorboard = tensorboard
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> RobustNetClassifier:  # noqa: N803
        """Train on samples (n, features) or images (n, H, W) or (n, C, H, W), and their noisy labels."""
        self.classes_, codes = encode_labels(y, "RobustNetClassifier")
        X, codes = validate_data(self, X, codes, dtype=_dtype(X), allow_nd=True)  # noqa: N806
        config = self._config()
        rows = _divide(codes, config.validation_fraction, config.random_state)
        moments = compute_moments(X[rows[0]])
        mean, std = np.array(moments.mean), np.array(moments.std)
        device = config.machine.torch_device

        def part(chosen: NDArray[np.intp]) -> Part:
            labels = torch.from_numpy(codes[chosen].astype(np.int64)).to(device)
            return Part(as_inputs(X[chosen], mean, std, device), labels)

        data = TrainingData(part(rows[0]), part(rows[1]))
        names = tuple(map(str, self.classes_.tolist()))
        with tensorboard_log(self.tensorboard) as on_epoch:
            run = train_robustly(data, len(names), config, class_names=names, on_epoch=on_epoch)
        if run.method != self.method and run.distrust is not None and self.method != AUTO:
            text = f"Trained with plain cross entropy instead of {self.method!r}, which needs a matrix: {run.distrust}."
            warnings.warn(text, DualtWarning, stacklevel=2)
        self._keep(run)
        network = self.network if isinstance(self.network, str) else None
        features = getattr(self, "feature_names_in_", None)
        columns = None if features is None else tuple(map(str, features))
        self.model_ = Model(
            run.networks, network, self.network_options or {}, data.train.inputs.shape, names, mean, std,
            self._about(), columns, on_bytes=X.dtype == np.uint8,
        )  # fmt: skip
        return self

    def _config(self) -> TrainingConfig:
        """Return the parameters as a configuration, with a seed drawn from `random_state`."""
        known = {field.name for field in fields(TrainingConfig)}
        given = {name: value for name, value in self.get_params(deep=False).items() if name in known}
        seed = int(check_random_state(self.random_state).randint(2**31))
        return TrainingConfig(**{**given, "random_state": seed})

    def _keep(self, run: RobustRun) -> None:
        self.method_ = run.method
        self.distrust_ = run.distrust
        self.transition_ = run.transition
        self.transition_estimate_ = run.estimate
        self.learned_transition_ = run.learned_transition
        self.out_of_fold_ = run.out_of_fold
        self.history_ = {name: trained.history.to_dict() for name, trained in run.stages.items()}

    def _about(self) -> dict[str, Any]:
        """Return what the saved model tells of the fit, which `load` takes up again."""
        told = {name: getattr(self, f"{name}_") for name in _TOLD}
        matrices = {name: as_lists(told[name]) for name in _MATRICES}
        return {**told, **matrices, "classes": self.classes_.tolist(), "n_features": int(self.n_features_in_)}

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the clean class, (n, n_classes)."""
        check_is_fitted(self)
        dtype = _dtype(X, keep_integers=self.model_.on_bytes)
        if getattr(X, "ndim", 0) > 2:
            # Grey images come with or without their channel: the model compares shapes, scikit-learn the second axis.
            X = check_array(X, dtype=dtype, allow_nd=True)  # noqa: N806
        else:
            X = validate_data(self, X, dtype=dtype, allow_nd=True, reset=False)  # noqa: N806
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
        told = {"method": "ce", "history": {}, **model.about}
        classifier = cls(builder, told["method"], network_options=model.options)
        classifier.model_ = model
        classifier.classes_ = np.array(told.get("classes", model.class_names))
        classifier.n_features_in_ = told.get("n_features", model.input_shape[0])
        if model.feature_names is not None:
            classifier.feature_names_in_ = np.array(model.feature_names, dtype=object)
        for name in _TOLD:
            value = told.get(name)
            setattr(classifier, f"{name}_", np.array(value) if name in _MATRICES and value is not None else value)
        classifier.transition_estimate_ = None
        return classifier


def _dtype(samples: Any, *, keep_integers: bool = False) -> Any:
    """Images of bytes, and where asked of other integers, stay as they are; others, and features, become floats."""
    dtype = getattr(samples, "dtype", np.dtype(object))
    if getattr(samples, "ndim", 2) == 2:
        return [np.float64, np.float32]
    kept = dtype == np.uint8 or (keep_integers and getattr(dtype, "kind", None) in ("i", "u"))
    return None if kept else np.float32


def _divide(codes: NDArray[np.intp], fraction: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train and to validate on, each class divided alike, neither part empty."""
    order = stream(seed, "split").permutation(len(codes))
    by_class = order[np.argsort(codes[order], kind="stable")]
    # Every 1/fraction-th sample, counted through the classes one after the other.
    places = np.floor(np.arange(1, len(codes) + 1) * fraction) > np.floor(np.arange(len(codes)) * fraction)
    places[-1] |= not places.any()
    return np.sort(by_class[~places]), np.sort(by_class[places])
