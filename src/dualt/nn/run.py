"""A whole run: learn the noisy posterior, estimate the matrix, train through it, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dualt.datasets import Dataset, Split
from dualt.datasets.images import take_rows
from dualt.errors import InputError
from dualt.estimators import ESTIMATORS, estimate_posterior
from dualt.files import make_folder
from dualt.issues import LabelIssues, find_posterior_issues
from dualt.labels import LabelCoder
from dualt.nn.config import AUTO, TrainingConfig, n_folds, recipe_of
from dualt.nn.loop import EpochRecord, Trained, train
from dualt.nn.methods import METHODS, build_method
from dualt.nn.networks import build_network, predict_probs
from dualt.nn.samples import AUGMENTATIONS, Part, TrainingData, as_inputs, sample_shape, torch_device
from dualt.nn.storage import Model, load_weights
from dualt.results import TransitionEstimate, claims
from dualt.rng import stream, stream_seed
from dualt.rows import NoisyPosterior, as_posterior
from dualt.transition import matrix_for
from dualt.validation import check_answer

# Called with the name of a stage and the record of an epoch.
OnStage: TypeAlias = Callable[[str, EpochRecord], None]

# `auto` uses cross entropy below this noise rate, and Forward if, averaged over classes, the most frequent wrong label
# is at least this fraction as frequent as the right one; docs/training.md has the measurements.
LITTLE_NOISE, MISTAKEN = 0.05, 1 / 3
# What a saved model keeps of its run.
KEPT = ("method", "distrust", "transition", "learned_transition", "out_of_fold")


@dataclass
class Stages:
    """The stages of a run, each trained once with its own checkpoint: `ce`, its folds, and the methods.

    Examples
    --------
    >>> import dualt
    >>> from dualt.datasets import load_dataset, split_dataset
    >>> dataset = load_dataset("synthetic", n_samples=500, n_test=200)
    >>> split = split_dataset(dataset, dualt.noise.symmetric(2, 0.2))
    >>> config = TrainingConfig(epochs=5, network="mlp-small", method="forward")
    >>> run = Stages(training_data(split), dataset.class_names, config).run()
    >>> run.transition.shape, [*run.stages][-1]
    ((2, 2), 'forward')
    """

    data: TrainingData
    class_names: Sequence[str]
    config: TrainingConfig
    folder: Path | None = None  # for checkpoints
    resume: bool = False  # from the checkpoints in the folder
    on_epoch: OnStage | None = None
    trained: dict[str, Trained] = field(default_factory=dict)

    @cached_property
    def folds(self) -> dict[str, NDArray[np.intp]]:
        """The rows that each fold holds out, by the name of its stage, model by model; none with one fold."""
        n_samples = len(self.data.rows.labels)
        number, held_out = n_folds(self.config, n_samples), []
        for model in range(self.config.fold_models if number > 1 else 0):
            name = f"folds/{model}" if model else "folds"
            held_out += np.array_split(stream(self.config.random_state, name).permutation(n_samples), number)
        return {f"ce-fold-{number}": rows for number, rows in enumerate(held_out, start=1)}

    def check(self) -> None:
        """Raise the errors of settings that do not fit the data or one another, before anything is trained."""
        config, part, n_classes = self.config, self.data.train, len(self.class_names)
        check_answer(config.determined, "determined")
        if not self.folds and config.fold_models > 1:
            raise InputError(f"Expected at least 2 folds for fold_models={config.fold_models}, got 1.")
        if config.estimator is not None and ESTIMATORS[config.estimator].needs_members and config.fold_models < 2:
            raise InputError(f"Expected fold_models of at least 2 for {config.estimator!r}, got 1.")
        network = self._new_network("ce", 0, None)
        if not isinstance(config.network, str):
            with torch.no_grad():
                shape = tuple(network.eval()(part.inputs.take(torch.tensor([0])).cpu()).shape[1:])
            if shape != (n_classes,):
                raise InputError(f"Expected a network with {n_classes} outputs per sample, got the shape {shape}.")
        for name in {"ce", config.method} - {AUTO}:
            recipe_of(config, name, len(part.labels))

    def train(self, name: str, transition: Any = None) -> Trained:
        """Train the stage `name`, a method or a fold, unless it is done; the stage that it starts from comes first.

        The network of a fold stops at the epoch that the validation part chose for `ce`. If its own held-out rows
        chose the epoch, their labels would look predictable even where nothing can be learned.
        """
        if name in self.trained:
            return self.trained[name]
        config, data, source, n_epochs = self.config, self.data, None, None
        if name in self.folds:
            n_epochs = self.train("ce").learned_epoch + 1
            learned = np.setdiff1d(np.arange(len(data.rows.labels)), self.folds[name])
            data = TrainingData(data.rows.subset(learned))
        elif (first := METHODS[name].starts_from) is not None:
            source = self.train(first, transition)
        method = build_method("ce" if name in self.folds else name, transition)
        self.trained[name] = train(
            [self._new_network(name, number, source) for number in range(method.n_networks)],
            method,
            data,
            recipe_of(config, name, len(self.data.train.labels)),
            random_state=stream_seed(config.random_state, f"stage/{name}"),
            n_jobs=config.n_jobs,
            augment=AUGMENTATIONS[config.augment] if isinstance(config.augment, str) else config.augment,
            checkpoint=None if self.folder is None else make_folder(self.folder) / f"{name}.safetensors",
            n_epochs=n_epochs,
            resume=self.resume,
            on_epoch=None if self.on_epoch is None else partial(self.on_epoch, name),
        )
        return self.trained[name]

    def _new_network(self, stage: str, number: int, source: Trained | None) -> nn.Module:
        """Return a network with its initial weights: random, pre-trained, or from the stage `source`."""
        config, inputs, n_classes = self.config, self.data.train.inputs, len(self.class_names)
        seed = stream_seed(config.random_state, f"init/{stage}/{number}")
        options = config.network_options or {}
        network = build_network(config.network, inputs.shape, n_classes, random_state=seed, **options)
        if source is not None:
            network.load_state_dict(source.networks[number].state_dict())
        elif config.weights is not None:
            load_weights(network, config.weights)
        return network

    @cached_property
    def probs(self) -> NDArray[np.float32]:
        """P(given label | x) of every row: out of fold, or, with one fold, by the network of `ce`.

        The shape is (n, C), with several models for each row (fold_models, n, C).
        """
        part, n_models = self.data.rows, self.config.fold_models if self.folds else 1
        probs = np.empty((n_models, len(part.labels), len(self.class_names)), np.float32)
        folds = self.folds or {"ce": np.arange(len(part.labels))}
        for number, (name, rows) in enumerate(folds.items()):
            own = predict_probs(self.train(name).networks, part.subset(rows).inputs).numpy()
            probs[number * n_models // len(folds), rows] = own
        return probs if n_models > 1 else probs[0]

    @cached_property
    def posterior(self) -> NoisyPosterior:
        """The probabilities with the given labels: of every row out of fold, or of the training part in sample."""
        labels = (self.data.rows if self.folds else self.data.train).labels.cpu().numpy()
        probs, determined = self.probs[..., : len(labels), :], self.config.determined
        return posterior_of(probs, labels, self.class_names, bool(self.folds), determined)

    def estimate(self) -> tuple[TransitionEstimate, str | None]:
        """Return the estimate of the configured estimator, and why it should not be used, if so."""
        name = self.config.estimator or ("dual-t" if self.config.recipe == "paper" else None)
        estimate, unseen = estimate_posterior(self.posterior, name), None
        if not self.folds and self.data.validation is not None:  # these rows judge the network
            unseen = (self.probs[self.posterior.n_samples :], self.data.validation.labels.cpu().numpy())
        return estimate, claims.doubt(estimate, unseen)

    def run(self) -> RobustRun:
        """Learn the noisy posterior, estimate the transition matrix from it, and train through the matrix."""
        self.check()
        config, is_paper = self.config, self.config.recipe == "paper"
        estimate, doubt, probs = None, None, None
        given: Any = config.transition
        if isinstance(given, TransitionEstimate):
            estimate = given
        elif given is None and _needs_estimate(config.method):
            (estimate, doubt), probs = self.estimate(), self.probs
            # With the paper's recipe the estimate is used in any case, and the doubt is reported.
            given = None if doubt and not is_paper else estimate.transition
        method = config.method
        if method == AUTO:
            method = "forward" if is_paper or estimate is None else chosen_by_auto(estimate, doubt)
        elif doubt is not None and not is_paper:
            method = "ce"
        transition = None
        if given is not None and _needs_estimate(method):
            transition = matrix_for(self.class_names, given, len(self.class_names))
        trained, test = self.train(method, transition), self.data.test
        networks, accuracy = trained.networks, trained.test_accuracy
        if probs is not None and config.method == AUTO and method != "forward":
            networks = [*networks, *(network for name in self.folds for network in self.train(name).networks)]
        if len(networks) > 1 and test is not None and not is_paper:
            hits = predict_probs(networks, test.inputs).argmax(1) == test.labels.cpu()
            accuracy = float(hits.float().mean())
        out_of_fold = None if probs is None else bool(self.folds)
        both = transition, trained.learned_transition
        return RobustRun(config, method, networks, *both, estimate, doubt, probs, out_of_fold, self.trained, accuracy)


def posterior_of(
    probs: NDArray[np.float32],
    labels: NDArray[Any],
    class_names: Sequence[str],
    out_of_fold: bool | None,
    determined: bool | None,
) -> NoisyPosterior:
    """Return probabilities with labels that are class numbers, whatever the class names."""
    given, coder = np.array(class_names)[labels], LabelCoder(tuple(class_names))
    found = as_posterior(probs, given, class_names, out_of_fold=out_of_fold, determined=determined)
    return replace(found, coder=coder)


@dataclass(frozen=True, eq=False)
class RobustRun:
    """The result of a run."""

    config: TrainingConfig
    # The configured method, the choice of `auto`, or cross entropy if the estimate cannot be trusted.
    method: str
    # Their probabilities are averaged. Unless `auto` chooses Forward, they include those of its folds.
    networks: Sequence[nn.Module]
    # The matrix that the method was given, and the one that it has learned by revising it, if any.
    transition: NDArray[np.float64] | None
    learned_transition: NDArray[np.float64] | None
    # The estimate, if the matrix was estimated, and why it should not be trusted, if so.
    estimate: TransitionEstimate | None
    distrust: str | None
    # Noisy posterior of the training part followed by the validation part (by each of several fold models), if learned,
    # and whether it is out of fold.
    pred_probs: NDArray[np.float32] | None
    out_of_fold: bool | None
    # Every training by name, in order.
    stages: Mapping[str, Trained]
    # On the clean test part: of the averaged networks, or, with one network or the paper's recipe, as the method's
    # recipe reports it.
    test_accuracy: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        network, learned = self.config.network, self.learned_transition
        return {
            "method": self.method,
            "asked_method": self.config.method,
            "distrust": self.distrust,
            "network": network if isinstance(network, str) else getattr(network, "__name__", "own"),
            "random_state": self.config.random_state,
            "test_accuracy": self.test_accuracy,
            "transition": None if self.transition is None else self.transition.tolist(),
            "learned_transition": None if learned is None else learned.tolist(),
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "out_of_fold": self.out_of_fold,
            "stages": {
                name: {
                    "recipe": trained.recipe.to_dict(),
                    "test_accuracy": trained.test_accuracy,
                    "best_epoch": trained.best_epoch,
                    "history": trained.curves,
                }
                for name, trained in self.stages.items()
            },
            "total_seconds": sum(trained.seconds for trained in self.stages.values()),
        }

    def as_model(self, dataset: Dataset, **about: Any) -> Model:
        """Return the networks with all that predictions need, and what is said `about` them."""
        plain, network = self.to_dict(), self.config.network
        center, scale = dataset.moments
        return Model(
            self.networks,
            network if isinstance(network, str) else None,
            self.config.network_options or {},
            sample_shape(dataset.train_x),
            dataset.class_names,
            center,
            scale,
            dataset.feature_names,
            {**{name: plain[name] for name in KEPT}, **about},
        )


def training_data(split: Split, device: str = "auto") -> TrainingData:
    """Return the parts of a split as standardised tensors on a device."""
    place, dataset = torch_device(device), split.dataset
    mean, std = dataset.moments

    def part(samples: Any, labels: NDArray[Any]) -> Part:
        return Part(as_inputs(samples, mean, std, place), torch.from_numpy(labels).to(place))

    rows = take_rows(dataset.train_x, np.concatenate([split.train_index, split.val_index]))
    test = None if dataset.test_x is None or dataset.test_y is None else part(dataset.test_x, dataset.test_y)
    return TrainingData(part(rows, np.concatenate([split.train_noisy, split.val_noisy])), len(split.train_noisy), test)


def _needs_estimate(method: str) -> bool:
    """Return whether to estimate a matrix for a method; for `ce` it is only reported."""
    return method in (AUTO, "ce") or METHODS[method].takes_transition


def chosen_by_auto(estimate: TransitionEstimate, doubt: str | None) -> str:
    """Return the method that suits an estimate.

    Forward if one class is mistaken for another, which no method without a matrix can correct; else DivideMix, which
    needs no matrix; cross entropy if hardly any labels are wrong, or the classifier has learned too little.
    """
    if doubt is not None or estimate.noise_rate < LITTLE_NOISE:
        return "ce"
    kept = np.diagonal(estimate.transition)
    mistaken = (estimate.transition - np.diag(kept)).max(axis=1) / np.maximum(kept, 1e-12)
    return "forward" if np.minimum(mistaken, 1).mean() >= MISTAKEN else "dividemix"


def issues_of_all_rows(run: RobustRun, split: Split) -> LabelIssues:
    """Return the label issues of every row of the data set, in its order: trained on or held out."""
    order = np.argsort(np.concatenate([split.train_index, split.val_index]))
    labels = np.concatenate([split.train_noisy, split.val_noisy])[order]
    probs, names = np.asarray(run.pred_probs)[..., order, :], split.dataset.class_names
    posterior = posterior_of(probs, labels, names, run.out_of_fold, run.config.determined)
    return find_posterior_issues(posterior, run.estimate)
