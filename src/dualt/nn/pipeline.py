"""The whole recipe: learn the noisy posterior, estimate the matrix, train through it, evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dualt.datasets import Dataset, Split
from dualt.errors import InputError, UnknownNameError
from dualt.estimators import ESTIMATORS, estimate_posterior
from dualt.nn.config import AUTO, TrainingConfig, network_name
from dualt.nn.methods import check_labels_possible, find_method
from dualt.nn.stages import Stages, learned_transition
from dualt.nn.training import Machine, Part, Trained, TrainingData, as_inputs, predict_probs
from dualt.nn.training.history import OnStage
from dualt.nn.training.model import make_folder
from dualt.results import TransitionEstimate
from dualt.results.credibility import distrust
from dualt.rows import NoisyPosterior
from dualt.transition import match_transition
from dualt.validation import check_transition

# What `auto` goes by; docs/training.md has the figures behind it. The estimate finds fewer wrong labels than the first;
# in the mean over classes, the commonest wrong label is at least the second as frequent as the right one.
LITTLE_NOISE, MISTAKEN = 0.05, 1 / 3


@dataclass(frozen=True, eq=False)
class RobustRun:
    """What came out: networks, matrix, and the stages on the way.

    Attributes
    ----------
    config
    method
        The one that trained the networks: the configured one, or what `auto` or `distrust` has made of it.
    networks
        With the weights that the method reports, to be averaged. Unless `auto` takes Forward, the networks of its
        folds are among them: they are there already, and the mean of all is better than any.
    transition : (C, C) or None
        The matrix that the method was given; `None` if it takes none, or there is none to be trusted.
    estimate
        How it was found, if it was estimated.
    distrust
        Why its noise rate should not be told and, but by the paper's recipe, the estimate was not used; `None`:
        nothing speaks against it.
    pred_probs, held_out_probs : (n, C) or None
        Noisy posterior on the training and on the validation part, if it was learned.
    posterior
        What the estimate was read off, read once for all who ask: every row out of fold; in sample the training part.
    stages
        Every training run by name, in order.
    seconds
        Per stage and for the estimate.
    test_accuracy
        On the clean test part: of the mean of the networks if there are several, and as the method's recipe reports it
        if there is one, or the recipe is the paper's.
    """

    config: TrainingConfig
    method: str
    networks: Sequence[nn.Module]
    transition: NDArray[np.float64] | None
    estimate: TransitionEstimate | None
    distrust: str | None
    pred_probs: NDArray[np.float32] | None
    held_out_probs: NDArray[np.float32] | None
    posterior: NoisyPosterior | None
    stages: Mapping[str, Trained]
    seconds: Mapping[str, float]
    test_accuracy: float | None

    @property
    def out_of_fold(self) -> bool | None:
        """Whether no network judged the samples that it was trained on in `pred_probs`; `None` without them."""
        return None if self.posterior is None else self.posterior.out_of_fold

    @property
    def learned_transition(self) -> NDArray[np.float64] | None:
        """The matrix that the method has learned, from nothing or by revising the one it was given, if it does."""
        return learned_transition(self.stages[self.method])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""
        return {
            "method": self.method,
            "asked_method": self.config.method,
            "distrust": self.distrust,
            "network": network_name(self.config.network),
            "random_state": self.config.random_state,
            "test_accuracy": self.test_accuracy,
            "transition": as_lists(self.transition),
            "learned_transition": as_lists(self.learned_transition),
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "out_of_fold": self.out_of_fold,
            "stages": {name: _describe(trained) for name, trained in self.stages.items()},
            "seconds": dict(self.seconds),
            "total_seconds": sum(self.seconds.values()),
        }


def as_lists(matrix: NDArray[np.float64] | None) -> list[list[float]] | None:
    """Return a matrix as JSON can hold it."""
    return None if matrix is None else matrix.tolist()


def _describe(trained: Trained) -> dict[str, Any]:
    return {
        "recipe": trained.recipe.to_dict(),
        "test_accuracy": trained.test_accuracy,
        "best_epoch": trained.history.best_epoch,
        "history": trained.history.to_dict(),
    }


def training_data(split: Split, dataset: Dataset, machine: Machine | None = None) -> TrainingData:
    """Return the parts of a split as standardised tensors on the machine's device."""
    device = (machine or Machine()).torch_device

    def part(samples: Any, labels: NDArray[Any]) -> Part:
        return Part(as_inputs(samples, dataset.mean, dataset.std, device), torch.from_numpy(labels).to(device))

    test = None
    if split.test_x is not None and split.test_y is not None:
        test = part(split.test_x, split.test_y)
    return TrainingData(part(split.train_x, split.train_noisy), part(split.val_x, split.val_noisy), test)


def train_robustly(
    data: TrainingData,
    n_classes: int,
    config: TrainingConfig | None = None,
    *,
    class_names: Sequence[str] | None = None,
    clean_labels: NDArray[Any] | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    on_epoch: OnStage | None = None,
) -> RobustRun:
    """Learn the noisy posterior, estimate the transition matrix from it, and train through the matrix.

    Parameters
    ----------
    data
        Noisy training and validation parts and, where there is one, a clean test part.
    n_classes
    config
        Method, estimator, network, schedule, random state.
    class_names
        For the estimate.
    clean_labels : (n,)
        Class numbers of the training part and then of the validation part, for the estimator `oracle` only.
    folder
        Where each stage keeps its checkpoint.
    resume
        Continue from the checkpoints in `folder`.
    on_epoch
        Called with the stage's name and the record of each epoch.

    Examples
    --------
    >>> import dualt
    >>> from dualt.datasets import load_dataset, split_dataset
    >>> dataset = load_dataset("synthetic", n_samples=500, n_test=200)
    >>> split = split_dataset(dataset, dualt.noise.symmetric(2, 0.2))
    >>> config = TrainingConfig(epochs=5, network="mlp-small", method="forward")
    >>> run = train_robustly(training_data(split, dataset), 2, config)
    >>> run.transition.shape, [*run.stages][-1]
    ((2, 2), 'forward')
    """
    names = tuple(class_names or map(str, range(n_classes)))
    kept = None if folder is None else make_folder(folder)
    stages = Stages(data, names, config or TrainingConfig(), kept, resume, on_epoch)
    return train_stages_robustly(stages, clean_labels)


def train_stages_robustly(stages: Stages, clean_labels: NDArray[Any] | None = None) -> RobustRun:
    """`train_robustly` with stages of which some may be trained already."""
    data, config = stages.data, stages.config
    estimate, doubt, posterior = None, None, None
    given: Any = config.transition
    if isinstance(given, TransitionEstimate):
        estimate, given = given, match_transition(given.transition, given.class_names, stages.class_names)
    elif given is None and _needs_estimate(config.method):
        _check_estimator(config.estimator_name, clean_labels)
        estimate, doubt = _estimate(stages, clean_labels)
        posterior = stages.posterior()
        # Whoever asks for the paper's recipe gets it whole, and is told.
        given = None if doubt and config.recipe != "paper" else estimate.transition
    method = _chosen(config, estimate, doubt)
    transition = None
    if given is not None and _needs_estimate(method):
        transition = check_transition(given, stages.n_classes)
        check_labels_possible(transition, data.train.labels)
    trained = stages.train(method, transition)
    networks, accuracy = trained.networks, trained.test_accuracy
    if config.method == AUTO and method != "forward" and posterior is not None and posterior.out_of_fold:
        folds = [stage.networks for name, stage in stages.trained.items() if "-fold-" in name]
        networks = [*networks, *chain.from_iterable(folds)]
    if len(networks) > 1 and data.test is not None and config.recipe != "paper":
        hits = predict_probs(networks, data.test.inputs).argmax(1) == data.test.labels.cpu()
        accuracy = float(hits.float().mean())
    probs, held_out = (None, None) if posterior is None else (stages.pred_probs(), stages.held_out_probs())
    return RobustRun(
        config, method, networks, transition, estimate, doubt, probs, held_out, posterior,
        stages.trained, stages.seconds, accuracy,
    )  # fmt: skip


def _needs_estimate(method: str) -> bool:
    """Tell whether a method wants a matrix; `ce` does not, but its posterior is there to be read."""
    return method in (AUTO, "ce") or find_method(method).takes_transition


def _estimate(stages: Stages, clean_labels: NDArray[Any] | None) -> tuple[TransitionEstimate, str | None]:
    """Return the estimate of the configured estimator, and why it should not be used, if so."""
    name, posterior = stages.config.estimator_name, stages.posterior()
    began = perf_counter()
    options: dict[str, Any] = {}
    if ESTIMATORS[name].needs_clean_labels and clean_labels is not None:
        options = {"clean_labels": clean_labels[: posterior.n_samples]}
    estimate = estimate_posterior(posterior, name, **options)
    stages.seconds["estimate"] = perf_counter() - began
    if options:
        return estimate, None
    unseen = stages.unseen()
    return estimate, estimate.undecided if unseen is None else distrust(estimate, *unseen)


def _chosen(config: TrainingConfig, estimate: TransitionEstimate | None, doubt: str | None) -> str:
    """Return the method to train with: plain cross entropy where the matrix it would need is not to be trusted."""
    if config.method == AUTO:
        return "forward" if config.recipe == "paper" or estimate is None else chosen_by_auto(estimate, doubt)
    return "ce" if config.recipe != "paper" and doubt is not None else config.method


def chosen_by_auto(estimate: TransitionEstimate, doubt: str | None) -> str:
    """Return the method that an estimate speaks for.

    Forward if one class is mistaken for another, which no method without a matrix finds out; else DivideMix, which
    needs none, so that it is also for data that fit many matrices; cross entropy if hardly any labels are wrong, or
    perhaps none.
    """
    if doubt is not None:
        return "dividemix" if doubt == estimate.undecided else "ce"
    # Classes that may overlap speak against a claim, not against a method that helps if labels are wrong.
    readings = estimate.fit.readings and replace(estimate.fit.readings, surest=(0, 0))
    low = estimate.noise_rate_range[0] if readings is None else readings.range(estimate.clean_prior, 0.95)[0]
    if estimate.noise_rate < LITTLE_NOISE or low <= 0:
        return "ce"
    kept = np.diagonal(estimate.transition)
    mistaken = (estimate.transition - np.diag(kept)).max(axis=1) / np.maximum(kept, 1e-12)
    return "forward" if np.minimum(mistaken, 1).mean() >= MISTAKEN else "dividemix"


def _check_estimator(name: str, clean_labels: NDArray[Any] | None) -> None:
    """Refuse an estimator that could not run, before hours of training."""
    if name not in ESTIMATORS:
        raise UnknownNameError("estimator", name, ESTIMATORS)
    if ESTIMATORS[name].needs_clean_labels and clean_labels is None:
        raise InputError(f"The estimator {name!r} needs the clean labels of the training part, and nobody knows them.")
