"""The stages of a run: a method, what it starts from, and the posterior that its matrix is read off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dualt.labels import LabelCoder
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import build_method, find_method
from dualt.nn.networks import build_network, load_weights
from dualt.nn.training import EpochRecord, Trained, TrainingData, predict_probs, train
from dualt.rng import stream, stream_seed
from dualt.rows import NoisyPosterior, as_posterior

OnStage = Callable[[str, EpochRecord], None]


@dataclass
class Stages:
    """A run in the making: every stage is trained once, with a checkpoint of its own."""

    data: TrainingData
    class_names: Sequence[str]
    config: TrainingConfig
    folder: Path | None = None
    resume: bool = False
    on_epoch: OnStage | None = None
    trained: dict[str, Trained] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    _pred_probs: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    _posteriors: dict[int, NoisyPosterior] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def train(self, name: str, transition: Any = None, data: TrainingData | None = None) -> Trained:
        """Train the stage `name`, which is a method or one fold of the posterior, unless it is done."""
        if name not in self.trained:
            config, method_name = self.config, name.partition("-fold-")[0]
            options = config.method_options or {} if method_name == config.method else {}
            n_samples = len((data or self.data).train.labels)
            method = build_method(method_name, transition, n_classes=self.n_classes, n_samples=n_samples, **options)
            start = find_method(method_name).starts_from
            source = None if start is None else self.train(start, transition)
            networks = [self.new_network(name, number, source) for number in range(method.n_networks)]
            on_epoch = self.on_epoch
            self.trained[name] = train(
                networks,
                method,
                data or self.data,
                config.recipe_of(name, len(self.data.train.labels)),
                random_state=self.seed_of(name),
                machine=config.machine,
                augment=config.augmentation,
                checkpoint=None if self.folder is None else self.folder / f"{name}.safetensors",
                resume=self.resume,
                on_epoch=None if on_epoch is None else lambda record: on_epoch(name, record),
            )
            # Of all parts of a run that was resumed.
            self.seconds[name] = self.trained[name].history.seconds
        return self.trained[name]

    def seed_of(self, name: str) -> int:
        """Return the seed of a stage."""
        return stream_seed(self.config.random_state, f"stage/{name}")

    def new_network(self, stage: str, number: int = 0, source: Trained | None = None) -> nn.Module:
        """Return a network as a stage starts with it."""
        config, shape = self.config, self.data.train.inputs.shape
        seed = stream_seed(config.random_state, f"init/{stage}/{number}")
        options = config.network_options or {}
        network = build_network(config.network, shape, self.n_classes, random_state=seed, **options)
        if source is not None:
            network.load_state_dict(source.networks[number].state_dict())
        elif config.weights is not None:
            load_weights(network, config.weights)
        return network

    def pred_probs(self, folds: int | None = None) -> NDArray[np.float32]:
        """Return P(given label | x) on the training part, in sample (1 fold) or out of fold; `None`: as configured."""
        folds = self._folds(folds)
        if folds not in self._pred_probs:
            self._pred_probs[folds] = self._in_sample() if folds == 1 else self._out_of_fold(folds)
        return self._pred_probs[folds]

    def held_out_probs(self, folds: int | None = None) -> NDArray[np.float32] | None:
        """Return P(given label | x) on the validation part, by the networks of `pred_probs`; `None` without the part.

        No network was trained on these samples, though they have chosen its epoch.
        """
        folds, part = self._folds(folds), self.data.validation
        if part is None:
            return None
        self.pred_probs(folds)
        names = ["ce"] if folds == 1 else [f"ce-fold-{number}" for number in range(1, folds + 1)]
        networks = [network for name in names for network in self.trained[name].networks]
        return predict_probs(networks, part.inputs).numpy()

    def posterior(self, folds: int | None = None) -> NoisyPosterior:
        """Return `pred_probs` with the given labels: one object, whose one summary all estimators share."""
        folds = self._folds(folds)
        if folds not in self._posteriors:
            labels = self.data.train.labels.cpu().numpy()
            # The labels are class numbers, whatever the names.
            coder = LabelCoder(tuple(self.class_names), by_name=False)
            self._posteriors[folds] = as_posterior(self.pred_probs(folds), labels, coder=coder, out_of_fold=folds > 1)
        return self._posteriors[folds]

    def _folds(self, folds: int | None) -> int:
        return self.config.n_folds(len(self.data.train.labels)) if folds is None else folds

    def _in_sample(self) -> NDArray[np.float32]:
        return predict_probs(self.train("ce").networks, self.data.train.inputs).numpy()

    def _out_of_fold(self, folds: int) -> NDArray[np.float32]:
        order = stream(self.config.random_state, "folds").permutation(len(self.data.train.labels))
        probs = np.empty((len(order), self.n_classes), np.float32)
        for number, held_out in enumerate(np.array_split(order, folds), start=1):
            rest = np.setdiff1d(order, held_out)
            # Nobody asks how well the network of a fold does on the test part.
            data = self.data._replace(train=self.data.train.subset(rest), test=None)
            trained = self.train(f"ce-fold-{number}", data=data)
            probs[held_out] = predict_probs(trained.networks, self.data.train.subset(held_out).inputs).numpy()
        return probs


def learned_transition(trained: Trained) -> NDArray[np.float64] | None:
    """Return the matrix that a method has learned along with its networks; `None` if it learns none."""
    learned = trained.method.learned_transition
    return None if learned is None else learned.cpu().numpy().astype(np.float64)
