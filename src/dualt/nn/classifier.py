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

from dualt.crossfit.folds import encode_labels
from dualt.datasets import Dataset, split_dataset
from dualt.datasets.dataset import channels_first
from dualt.errors import DualtWarning
from dualt.nn.config import AUTO, TrainingConfig
from dualt.nn.run import KEPT, OnStage, Stages, training_data
from dualt.nn.storage import Model


@dataclass(eq=False, repr=False)
class RobustNetClassifier(ClassifierMixin, BaseEstimator, TrainingConfig):  # type: ignore[misc]
    """Learn the noisy posterior, estimate the transition matrix, and train a network through it.

    The network gets float32 samples that are standardised: each feature, or channel of images, has mean 0 and standard
    deviation 1. Networks that need the numbers unchanged, such as those with `nn.Embedding`, are trained with
    `dualt.nn.run.Stages` on parts of `dualt.nn.samples.as_inputs(X)`: integers arrive as floats, and `x.long()` in the
    network converts them back.

    Parameters
    ----------
    network, method, estimator, transition, recipe, epochs, ...
        The parameters are those of `dualt.nn.config.TrainingConfig`.
    random_state
        Seed, `numpy.random.RandomState` or `None`.

    Attributes
    ----------
    method_ : str
        The method that trained the network.
    transition_, learned_transition_ : (n_classes, n_classes) or None
        The matrix that the method was given, and the one that it has learned by revising it (`revision`).
    transition_estimate_ : TransitionEstimate or None
        How the matrix was estimated.
    distrust_ : str or None
        Why the estimate should not be trusted, and was not used unless the recipe is the paper's.
    out_of_fold_ : bool or None
        Whether `transition_` was estimated from out-of-fold probabilities; `None` if it was not estimated.
    model_ : dualt.nn.storage.Model
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
        """Train on samples (n, features) or images (n, H, W), (n, C, H, W) or (n, H, W, C), and their noisy labels.

        `on_epoch` is called after every epoch with the name of the stage and the record of the epoch.
        """
        self.classes_, codes = encode_labels(y, "RobustNetClassifier")
        X, codes = validate_data(self, X, codes, dtype=_dtype(X), allow_nd=True)  # noqa: N806
        seed = int(check_random_state(self.random_state).randint(2**31))
        parameters = {each.name: getattr(self, each.name) for each in fields(TrainingConfig)}
        config = TrainingConfig(**{**parameters, "random_state": seed})
        names, columns = tuple(map(str, self.classes_.tolist())), getattr(self, "feature_names_in_", None)
        columns = None if columns is None else tuple(map(str, columns))
        dataset = Dataset("X", channels_first(X), codes.astype(np.int64), None, None, names, feature_names=columns)
        split = split_dataset(dataset, random_state=seed, validation_fraction=config.validation_fraction)
        run = Stages(training_data(split, config.device), names, config, on_epoch=on_epoch).run()
        if run.method != self.method and run.distrust is not None and self.method != AUTO:
            text = f"Trained with plain cross entropy instead of {self.method!r}, which needs a matrix: {run.distrust}."
            warnings.warn(text, DualtWarning, stacklevel=2)
        for name in KEPT:
            setattr(self, f"{name}_", getattr(run, name))
        self.transition_estimate_ = run.estimate
        self.history_ = {name: trained.curves for name, trained in run.stages.items()}
        self.model_ = run.as_model(dataset, history=self.history_, classes=self.classes_.tolist())
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the probabilities of the clean class, (n, n_classes)."""
        check_is_fitted(self)
        if getattr(X, "ndim", 0) > 2:
            # Grey images come with or without a channel axis: the model compares shapes, scikit-learn the second axis.
            X = check_array(X, dtype=_dtype(X), allow_nd=True)  # noqa: N806
        else:
            X = validate_data(self, X, dtype=_dtype(X), allow_nd=True, reset=False)  # noqa: N806
        probs = self.model_.predict_probs(channels_first(X), self.device).astype(np.float64)
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
    def load(cls, folder: str | Path, network: Callable[..., torch.nn.Module] | None = None) -> RobustNetClassifier:
        """Read a classifier that `save` wrote; `network` is the function that built it, if it was not one of ours."""
        model = Model.load(folder, network)
        about = {"method": "ce", "history": {}, **model.about}
        classifier = cls(network or model.network, about["method"], network_options=model.options)
        classifier.model_ = model
        classifier.classes_ = np.array(about.get("classes", model.class_names))
        classifier.n_features_in_ = model.input_shape[0]
        if model.feature_names is not None:
            classifier.feature_names_in_ = np.array(model.feature_names, dtype=object)
        for name in (*KEPT, "history"):
            value = about.get(name)
            setattr(classifier, f"{name}_", np.array(value) if isinstance(value, list) else value)
        classifier.transition_estimate_ = None
        return classifier


def _dtype(samples: Any) -> list[Any]:
    """Return the dtypes that are kept, others become the first: images may be bytes, features be precise."""
    return [np.float32, np.uint8] if getattr(samples, "ndim", 2) > 2 else [np.float64, np.float32]
