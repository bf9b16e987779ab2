"""The stages of a run: a method, what it starts from, and the posterior that its matrix is read off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dualt.nn.methods import build_method, find_method
from dualt.nn.methods.settings import Settings
from dualt.nn.networks import build_network, load_weights
from dualt.nn.training import EpochRecord, Trained, TrainingData, predict_probs, train
from dualt.rng import stream, stream_seed

OnStage = Callable[[str, EpochRecord], None]


@dataclass
class Stages:
    """A run in the making: every stage is trained once, with a checkpoint of its own."""

    data: TrainingData
    n_classes: int
    settings: Settings
    folder: Path | None
    resume: bool
    on_epoch: OnStage | None
    trained: dict[str, Trained] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def train(self, name: str, transition: Any = None, data: TrainingData | None = None) -> Trained:
        """Train the stage `name`, which is a method or one fold of the posterior, unless it is done."""
        if name not in self.trained:
            method_name = name.partition("-fold-")[0]
            options = self.settings.method_options if method_name == self.settings.method else {}
            method = build_method(method_name, transition, n_classes=self.n_classes, **options)
            start = find_method(method_name).starts_from
            source = None if start is None else self.train(start, transition)
            networks = [self._network(name, number, source) for number in range(method.n_networks)]
            on_epoch, began = self.on_epoch, perf_counter()
            self.trained[name] = train(
                networks,
                method,
                data or self.data,
                self.settings.recipe(name),
                seed=stream_seed(self.settings.seed, f"stage/{name}"),
                machine=self.settings.machine,
                augment=self.settings.augment,
                checkpoint=None if self.folder is None else self.folder / f"{name}.safetensors",
                resume=self.resume,
                on_epoch=None if on_epoch is None else lambda record: on_epoch(name, record),
            )
            self.seconds[name] = perf_counter() - began
        return self.trained[name]

    def _network(self, stage: str, number: int, source: Trained | None) -> nn.Module:
        settings = self.settings
        shape = self.data.train.inputs.shape
        seed = stream_seed(settings.seed, f"init/{stage}/{number}")
        network = build_network(settings.network, shape, self.n_classes, seed=seed, **settings.network_options)
        if source is not None:
            network.load_state_dict(source.networks[number].state_dict())
        elif settings.weights is not None:
            load_weights(network, settings.weights)
        return network

    def posterior(self, folds: int | None = None) -> NDArray[np.float32]:
        """Return P(given label | x) on the training part, in sample (1 fold) or out of fold; `None`: as set."""
        inputs = self.data.train.inputs
        folds = self.settings.n_folds(len(inputs)) if folds is None else folds
        if folds == 1:
            return predict_probs(self.train("ce").networks, inputs).numpy()
        order = stream(self.settings.seed, "folds").permutation(len(inputs))
        probs = np.empty((len(inputs), self.n_classes), np.float32)
        for number, held_out in enumerate(np.array_split(order, folds), start=1):
            rest = np.setdiff1d(order, held_out)
            # Nobody asks how well the network of a fold does on the test part.
            data = self.data._replace(train=self.data.train.subset(rest), test=None)
            trained = self.train(f"ce-fold-{number}", data=data)
            probs[held_out] = predict_probs(trained.networks, self.data.train.subset(held_out).inputs).numpy()
        return probs


def learned_transition(trained: Trained) -> NDArray[np.float64] | None:
    """Return the matrix that a method has learned along with its networks; `None` if it learns none."""
    learned = getattr(trained.method, "learned_transition", None)
    return None if learned is None else learned.cpu().numpy().astype(np.float64)
