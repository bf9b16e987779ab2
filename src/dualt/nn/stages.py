"""The stages of a run: a method, what it starts from, and the posterior that its matrix is read off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dualt.errors import InputError
from dualt.labels import LabelCoder
from dualt.nn.config import TrainingConfig, method_of
from dualt.nn.methods import build_method, find_method
from dualt.nn.networks import build_network, load_weights
from dualt.nn.training import EpochRecord, Part, Recipe, Trained, TrainingData, predict_probs, train
from dualt.nn.training.history import OnStage
from dualt.nn.training.replicated import train_replicated
from dualt.nn.training.run import Replica
from dualt.nn.training.stacking import is_perceptron
from dualt.rng import stream, stream_seed
from dualt.rows import NoisyPosterior, as_posterior


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
    _probs: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    _posteriors: dict[int, NoisyPosterior] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def train(self, name: str, transition: Any = None) -> Trained:
        """Train the stage `name`, which is a method or one of the folds, unless it is done."""
        if name not in self.trained:
            new = self._replica(name, transition)
            trained = train(
                new.networks,
                new.method,
                new.data,
                self.recipe_of(name),
                random_state=new.random_state,
                machine=self.config.machine,
                augment=self.config.augmentation,
                checkpoint=new.checkpoint,
                n_epochs=new.n_epochs,
                resume=self.resume,
                on_epoch=None if self.on_epoch is None else partial(self.on_epoch, name),
            )
            self._keep(name, trained)
        return self.trained[name]

    @cached_property
    def every_row(self) -> Part:
        """The training part, followed by the validation part."""
        train, validation = self.data.train, self.data.validation
        return train if validation is None else train.followed_by(validation)

    @property
    def folds(self) -> dict[str, NDArray[np.intp]]:
        """The rows (of `every_row`) that each fold holds out, by its stage; none if the posterior is learned in sample.

        The network of a fold stops at the epoch that the validation part has chosen for that of `ce`: had its own rows
        chosen it, their labels would seem to be predicted where nothing can be learned.
        """
        n_folds = self._folds(None)
        order = stream(self.config.random_state, "folds").permutation(len(self.every_row.labels))
        held_out = np.array_split(order, n_folds) if n_folds > 1 else []
        return {f"ce-fold-{number}": rows for number, rows in enumerate(held_out, start=1)}

    def _replica(self, name: str, transition: Any) -> Replica:
        """Return what a stage starts with; what it starts from is trained first."""
        config, method_name, data, n_epochs = self.config, method_of(name), self.data, None
        start = starts_from(name)
        source = None if start is None else self.train(start, transition)
        held_out = self.folds.get(name)
        if held_out is not None and source is not None:
            n_epochs, source = source.history.learned_epoch + 1, None
            rest = np.setdiff1d(np.arange(len(self.every_row.labels)), held_out)
            # Nobody asks how well the network of a fold does on the test part.
            data = TrainingData(self.every_row.subset(rest))
        options = config.method_options or {} if method_name == config.method else {}
        n_samples = len(data.train.labels)
        method = build_method(method_name, transition, n_classes=self.n_classes, n_samples=n_samples, **options)
        networks = [self.new_network(name, number, source) for number in range(method.n_networks)]
        checkpoint = None if self.folder is None else self.folder / f"{name}.safetensors"
        return Replica(networks, method, data, stream_seed(config.random_state, f"stage/{name}"), checkpoint, n_epochs)

    def _keep(self, name: str, trained: Trained) -> None:
        self.trained[name] = trained
        # Of all parts of a run that was resumed.
        self.seconds[name] = trained.history.seconds

    def recipe_of(self, name: str) -> Recipe:
        """Return the recipe of a stage."""
        return self.config.recipe_of(name, len(self.data.train.labels))

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
        if not isinstance(config.network, str):
            self._check_outputs(network)
        return network

    def _check_outputs(self, network: nn.Module) -> None:
        """Refuse a network of one's own that does not give one number per class."""
        samples = self.data.train.inputs.take(torch.zeros(1, dtype=torch.int64)).cpu()
        with torch.no_grad():
            shape = tuple(network.eval()(samples).shape)
        network.train()
        if shape != (1, self.n_classes):
            raise InputError(
                f"Expected a network that gives {self.n_classes} numbers per sample, one for each class, got the shape"
                f" {shape[1:]}."
            )

    def pred_probs(self, folds: int | None = None) -> NDArray[np.float32]:
        """Return P(given label | x) on the training part, in sample (1 fold), or as configured (`None`)."""
        return self._probs_of_every_row(folds)[: len(self.data.train.labels)]

    def held_out_probs(self, folds: int | None = None) -> NDArray[np.float32] | None:
        """Return P(given label | x) on the validation part, by the networks of `pred_probs`; `None` without the part.

        No network was trained on these samples, though they have chosen its epoch.
        """
        if self.data.validation is None:
            return None
        return self._probs_of_every_row(folds)[len(self.data.train.labels) :]

    def _probs_of_every_row(self, folds: int | None) -> NDArray[np.float32]:
        folds, part = self._folds(folds), self.every_row
        if folds not in self._probs:
            probs = np.empty((len(part.labels), self.n_classes), np.float32)
            judges = self.folds if folds > 1 else {"ce": np.arange(len(part.labels))}
            for name, rows in judges.items():
                probs[rows] = predict_probs(self.train(name).networks, part.subset(rows).inputs).numpy()
            self._probs[folds] = probs
        return self._probs[folds]

    def posterior(self, folds: int | None = None) -> NoisyPosterior:
        """Return the probabilities with the given labels: one object, whose one summary all estimators share.

        Out of fold, of every row; in sample, as the paper has it, of the training part.
        """
        folds = self._folds(folds)
        if folds not in self._posteriors:
            part = self.every_row if folds > 1 else self.data.train
            probs, labels = self._probs_of_every_row(folds)[: len(part.labels)], part.labels.cpu().numpy()
            self._posteriors[folds] = posterior_of(probs, labels, self.class_names, out_of_fold=folds > 1)
        return self._posteriors[folds]

    def unseen(self) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Return probabilities and labels of the rows whose judge was not trained on them; `None` if there are none."""
        n_seen = 0 if self._folds(None) > 1 else len(self.data.train.labels)
        labels = self.every_row.labels[n_seen:].cpu().numpy()
        return (self._probs_of_every_row(None)[n_seen:], labels) if len(labels) else None

    def _folds(self, folds: int | None) -> int:
        return self.config.n_folds(len(self.every_row.labels)) if folds is None else folds


def starts_from(stage: str) -> str | None:
    """Return the stage to be trained before: the one whose networks are refined or, by a fold, whose epoch is taken."""
    return "ce" if "-fold-" in stage else find_method(stage).starts_from


def posterior_of(
    probs: NDArray[np.float32], labels: NDArray[Any], class_names: Sequence[str], *, out_of_fold: bool | None
) -> NoisyPosterior:
    """Return probabilities with labels that are class numbers, whatever the names."""
    coder = LabelCoder(tuple(class_names), by_name=False)
    return as_posterior(probs, labels, coder=coder, out_of_fold=out_of_fold)


def train_stages(every: Sequence[Stages], name: str, transitions: Sequence[Any] | None = None) -> list[Trained]:
    """Train the stage `name` of many runs as one batched training where that can be, and return them.

    Each comes out as `stages.train(name, transition)` would train it; what a method starts from is trained first, and
    what is trained already stays. The runs have one configuration but for random states, and parts of one size.

    Parameters
    ----------
    every
    name
        Of a method, or of a fold.
    transitions
        A matrix for each, where the method takes one.
    """
    matrices = [None] * len(every) if transitions is None else transitions
    start = starts_from(name)
    if start is not None:
        train_stages(every, start, matrices)
    waiting = [(stages, matrix) for stages, matrix in zip(every, matrices, strict=True) if name not in stages.trained]
    if len(waiting) > 1 and all(can_replicate(stages, name) for stages, _ in waiting):
        first = waiting[0][0]
        recipe, n_jobs = first.recipe_of(name), first.config.n_jobs
        if any(stages.recipe_of(name) != recipe for stages, _ in waiting):
            raise InputError(f"Expected one recipe of {name!r} for all runs that are trained as one, got several.")

        def tell(number: int, record: EpochRecord) -> None:
            told = waiting[number][0].on_epoch
            if told is not None:
                told(name, record)

        replicas = [stages._replica(name, matrix) for stages, matrix in waiting]
        trained = train_replicated(replicas, recipe, n_jobs=n_jobs, resume=first.resume, on_epoch=tell)
        for (stages, _), one in zip(waiting, trained, strict=True):
            stages._keep(name, one)
    return [stages.train(name, matrix) for stages, matrix in zip(every, matrices, strict=True)]


def can_replicate(stages: Stages, name: str) -> bool:
    """Tell whether a stage can be batched with others: a perceptron on a CPU, as it is, by a method of many at once."""
    config = stages.config
    plain = config.augment is None and config.precision == "float32" and config.machine.torch_device.type == "cpu"
    replicable = getattr(find_method(method_of(name)).build, "replicable", False)
    return plain and replicable and is_perceptron(stages.new_network(name))


def learned_transition(trained: Trained) -> NDArray[np.float64] | None:
    """Return the matrix that a method has learned along with its networks; `None` if it learns none."""
    learned = trained.method.learned_transition
    return None if learned is None else learned.cpu().numpy().astype(np.float64)
