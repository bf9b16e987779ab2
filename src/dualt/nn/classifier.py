"""A neural network with scikit-learn's interface that learns the clean class from noisy labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from dualt.crossfit.folds import encode_labels
from dualt.datasets.dataset import compute_moments
from dualt.errors import DualtWarning
from dualt.nn.config import AUTO, TrainingConfig
from dualt.nn.run import OnStage, Stages
from dualt.nn.samples import Part, TrainingData, as_inputs, torch_device
from dualt.nn.saved_model import Model
from dualt.rng import stream

# Fitted attributes, without the trailing underscore, that are the run's and that a saved model keeps.
_KEPT = ("method", "distrust", "transition", "learned_transition", "out_of_fold")


@dataclass(eq=False, repr=False)
class RobustNetClassifier(ClassifierMixin, BaseEstimator, TrainingConfig):  # type: ignore[misc]
    """Learn the noisy posterior, estimate the transition matrix, and train a network through it.

    The network gets float32 samples that are standardised: each feature, or channel of images, has mean 0 and standard
    deviation 1 over the training part. Networks that need the numbers unchanged, such as those with `nn.Embedding`, are
    trained with `dualt.nn.run.Stages` on parts of `dualt.nn.samples.as_inputs(X)`: integers arrive as floats, and
    `x.long()` in the network converts them back.

    Parameters
    ----------
    network, method, estimator, transition, recipe, epochs, ...
        The parameters are those of `dualt.nn.config.TrainingConfig`.
    random_state
        Seed, generator or `None`.

    Attributes
    ----------
    method_ : str
        The method that trained the network.
    transition_, learned_transition_ : (n_classes, n_classes) or None
        The matrix that the method was given, and the one that it has learned: from scratch (`volminnet`,
        `total-variation`), or by revising the given one (`revision`).
    transition_estimate_ : TransitionEstimate or None
        How the matrix was estimated.
    distrust_ : str or None
        Why the estimate should not be trusted, and was not used unless the recipe is the paper's.
    out_of_fold_ : bool or None
        Whether `transition_` was estimated from out-of-fold probabilities; `None` if it was not estimated.
    model_ : dualt.nn.saved_model.Model
    history_ : dict
        Curves of every stage.

    Examples
    --------
    >>> import dualt, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.integers(2, size=400)
    >>> x = rng.normal(size=(400, 5)) + 3 * clean[:, None]
    >>> given = dualt.noise.corrupt(clean, dualt.noise.symmetric(2, 0.3))
    >>> model = RobustNetClassifier(method="forward", epochs=5, random_state=0).fit(x, given)
    >>> bool((model.predict(x) == clean).mean() > 0.95)
    True
    """

    random_state: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check nothing: scikit-learn wants parameters to be checked in `fit`."""

    def fit(self, X: Any, y: Any, *, on_epoch: OnStage | None = None) -> RobustNetClassifier:  # noqa: N803
        """Train on samples (n, features) or images (n, H, W) or (n, C, H, W), and their noisy labels.

        `on_epoch` is called after every epoch with the name of the stage and the record of the epoch.
        """
        self.classes_, codes = encode_labels(y, "RobustNetClassifier")
        X, codes = validate_data(self, X, codes, dtype=_dtype(X), allow_nd=True)  # noqa: N806
        seed = int(check_random_state(self.random_state).randint(2**31))
        parameters = {each.name: getattr(self, each.name) for each in fields(TrainingConfig)}
        config = TrainingConfig(**{**parameters, "random_state": seed})
        train_rows, held_out_rows = _divide(codes, config.validation_fraction, seed)
        mean, std = map(np.array, compute_moments(X[train_rows]))
        device = torch_device(config.device)

        def part(rows: NDArray[np.intp]) -> Part:
            labels = torch.from_numpy(codes[rows].astype(np.int64)).to(device)
            return Part(as_inputs(X[rows], mean, std, device), labels)

        data = TrainingData(part(train_rows), part(held_out_rows))
        names = tuple(map(str, self.classes_.tolist()))
        run = Stages(data, names, config, on_epoch=on_epoch).run()
        if run.method != self.method and run.distrust is not None and self.method != AUTO:
            text = f"Trained with plain cross entropy instead of {self.method!r}, which needs a matrix: {run.distrust}."
            warnings.warn(text, DualtWarning, stacklevel=2)
        for name in _KEPT:
            setattr(self, f"{name}_", getattr(run, name))
        self.transition_estimate_ = run.estimate
        self.history_ = {name: trained.history.to_dict() for name, trained in run.stages.items()}
        plain, columns = run.to_dict(), getattr(self, "feature_names_in_", None)
        about = {name: plain[name] for name in _KEPT} | {"history": self.history_}
        self.model_ = Model(
            run.networks,
            self.network if isinstance(self.network, str) else None,
            self.network_options or {},
            data.train.inputs.shape,
            names,
            mean,
            std,
            {**about, "classes": self.classes_.tolist(), "n_features": int(self.n_features_in_)},
            None if columns is None else tuple(map(str, columns)),
            on_bytes=X.dtype == np.uint8,
        )
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the clean class, (n, n_classes)."""
        check_is_fitted(self)
        dtype = _dtype(X, keep_integers=self.model_.on_bytes)
        if getattr(X, "ndim", 0) > 2:
            # Grey images come with or without a channel axis: the model compares shapes, scikit-learn the second axis.
            X = check_array(X, dtype=dtype, allow_nd=True)  # noqa: N806
        else:
            X = validate_data(self, X, dtype=dtype, allow_nd=True, reset=False)  # noqa: N806
        probs = self.model_.predict_probs(X, self.device).astype(np.float64)
        return np.asarray(probs / probs.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most likely clean class of every sample."""
        chosen = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def save(self, folder: str | Path) -> None:
        """Write the fitted classifier into a folder, as one safetensors file with a JSON header."""
        check_is_fitted(self)
        self.model_.save(folder)

    @classmethod
    def load(cls, folder: str | Path, network: Callable[..., nn.Module] | None = None) -> RobustNetClassifier:
        """Read a classifier that `save` wrote; `network` is the function that built it, if it was not one of ours."""
        model = Model.load(folder, network)
        about = {"method": "ce", "history": {}, **model.about}
        classifier = cls(network or model.network, about["method"], network_options=model.options)
        classifier.model_ = model
        classifier.classes_ = np.array(about.get("classes", model.class_names))
        classifier.n_features_in_ = about.get("n_features", model.input_shape[0])
        if model.feature_names is not None:
            classifier.feature_names_in_ = np.array(model.feature_names, dtype=object)
        for name in (*_KEPT, "history"):
            value = about.get(name)
            setattr(classifier, f"{name}_", np.array(value) if isinstance(value, list) else value)
        classifier.transition_estimate_ = None
        return classifier


def _dtype(samples: Any, *, keep_integers: bool = False) -> Any:
    """Return the dtype to convert to: images of bytes (or, if asked, other integers) are kept, others become floats."""
    dtype = getattr(samples, "dtype", np.dtype(object))
    if getattr(samples, "ndim", 2) == 2:
        return [np.float64, np.float32]
    kept = dtype == np.uint8 or (keep_integers and getattr(dtype, "kind", None) in ("i", "u"))
    return None if kept else np.float32


def _divide(codes: NDArray[np.intp], fraction: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train and to validate on, stratified by class, neither part empty."""
    order = stream(seed, "split").permutation(len(codes))
    by_class = order[np.argsort(codes[order], kind="stable")]
    # Every 1/fraction-th sample, counted through the classes one after the other.
    places = np.floor(np.arange(1, len(codes) + 1) * fraction) > np.floor(np.arange(len(codes)) * fraction)
    places[-1] |= not places.any()
    return np.sort(by_class[~places]), np.sort(by_class[places])
