"""What a run measures: matrices and their errors, accuracies, curves, Δ1, Δ2, Δ3.

Given x, Y' is certain, so the appendix's Δ3 = |P(Ȳ=j | Y'=l, Y=i, x) − P(Ȳ=j | Y'=l, x)| would not depend on the
network, although it should vanish when Y' is the noisy label. We count it as the proof of Theorem 1 uses it: without x,
weighted with P(Y'=l | Y=i).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dualt.datasets import Dataset, load_dataset, split_dataset
from dualt.datasets.synthetic import load_synthetic, noisy_posterior
from dualt.errors import InputError
from dualt.estimators import ESTIMATORS, estimate_posterior
from dualt.nn.config import TrainingConfig
from dualt.nn.loop import Trained
from dualt.nn.methods import METHODS
from dualt.nn.networks import NETWORKS, predict_probs
from dualt.nn.run import OnStage, Stages, posterior_of, training_data
from dualt.noise import from_name
from dualt.reproduce.runs import GIVEN, TRUE, PosteriorSpec, RunSpec, base_name
from dualt.transition import l1_error

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

_VALIDATION = 0.2
_CURVES = ("loss", "validation_accuracy", "validation_loss", "test_accuracy")


class Posterior:
    """A noisy posterior with its data: loaded, corrupted and split here, trained when first needed.

    Checkpoints are kept in `folder`, if given, and continued from.
    """

    def __init__(self, spec: PosteriorSpec, folder: Path | None, n_jobs: int | None, on_epoch: OnStage | None) -> None:
        dataset = _load(spec)
        transition, size = None, {}
        if spec.noise != GIVEN:
            transition = from_name(spec.noise, dataset.n_classes, random_state=spec.seed)
        if spec.size != 1 and (spec.dataset != "synthetic" or spec.whole_validation):
            total = len(dataset.train_y)
            if spec.whole_validation:
                total -= round(_VALIDATION * total)
            n_samples = round(spec.size * total) if spec.size < 1 else min(int(spec.size), total)
            size["n_train" if spec.whole_validation else "n_samples"] = n_samples
        self.spec = spec
        self.split = split_dataset(dataset, transition, random_state=spec.seed, validation_fraction=_VALIDATION, **size)
        data, config = training_data(self.split), _config(spec, n_jobs)
        self._stages = Stages(data, dataset.class_names, config, folder, folder is not None, on_epoch)
        # By estimator: what it measured, and the methods that are trained through its matrix.
        self._branches: dict[str, tuple[dict[str, Any], Stages]] = {}

    def measure(self, run: RunSpec) -> dict[str, Any]:
        """Do a run and return what was measured."""
        n_train, n_validation = len(self.split.train_noisy), len(self.split.val_noisy)
        # `size` counts the training part only, or both parts.
        n_samples = n_train if self.spec.whole_validation else n_train + n_validation
        content: dict[str, Any] = {"n_samples": n_samples, "n_validation": n_validation}
        if run.estimator is None and run.method == "ce":
            return {**content, **_training(self._stages.train("ce")), **self._synthetic_errors()}
        options = (f"{name}={value}" for name, value in sorted(run.estimator_options.items()))
        key = " ".join([run.estimator or "none", *options])
        if key not in self._branches:
            folder = None if self._stages.folder is None else self._stages.folder / key
            stages = replace(self._stages, folder=folder, trained={"ce": self._stages.train("ce")})
            self._branches[key] = ({} if run.estimator is None else self._estimate(run), stages)
        estimated, stages = self._branches[key]
        content |= estimated
        if run.method is not None:
            matrix = None
            if run.estimator is not None:
                matrix = np.asarray(estimated["transition"])
                matrix /= matrix.sum(axis=1, keepdims=True)
            stages.config = _config(self.spec, stages.config.n_jobs, run)
            content |= _training(stages.train(run.method, matrix))
        return content

    def _estimate(self, run: RunSpec) -> dict[str, Any]:
        """Return the matrix of an estimator and, if the true one is known, its errors."""
        stages, split, name = self._stages, self.split, base_name(str(run.estimator))
        if name == TRUE:
            if split.transition is None:
                raise InputError(f"Expected known noise for the matrix {TRUE!r}, got {self.spec.dataset!r}.")
            transition = split.transition
        else:
            if run.estimator != name and stages.data.validation is not None:  # held out
                probs = predict_probs(stages.train("ce").networks, stages.data.validation.inputs).numpy()
                posterior = posterior_of(probs, split.val_noisy, stages.class_names, True, stages.config.determined)
                clean = None if split.clean_labels is None else split.clean_labels[len(split.train_noisy) :]
            else:
                posterior, clean = stages.posterior, split.clean_labels
            options = dict(run.estimator_options)
            if ESTIMATORS[name].needs_clean_labels:
                options["clean_labels"] = None if clean is None else clean[: posterior.n_samples]
            transition = estimate_posterior(posterior, name, **options).transition
        content: dict[str, Any] = {"transition": transition.round(6).tolist()}
        if split.transition is not None:
            content["l1_error"] = l1_error(split.transition, transition)
            content["l1_error_per_class"] = l1_error(split.transition, transition, normalize=True)
        return content

    def _synthetic_errors(self) -> dict[str, Any]:
        """Return the errors that are known for synthetic data only."""
        split, test, clean = self.split, self._stages.data.test, self.split.clean_labels
        if self.spec.dataset != "synthetic" or split.transition is None or clean is None or test is None:
            return {}
        truth = noisy_posterior(np.asarray(split.dataset.train_x)[split.train_index], split.transition)
        probs = self._stages.probs[: len(split.train_noisy)]
        intermediate = probs.argmax(axis=1)
        test_truth = noisy_posterior(np.asarray(split.dataset.test_x), split.transition)
        test_probs = predict_probs(self._stages.train("ce").networks, test.inputs).numpy()
        return {
            "delta1": posterior_error(truth, probs),
            "delta2": counting_error(truth, intermediate, split.train_noisy),
            "delta3": fitting_error(clean[: len(truth)], intermediate, split.train_noisy, truth.shape[1]),
            "posterior_error": posterior_error(test_truth, test_probs),
        }


def _training(trained: Trained) -> dict[str, Any]:
    return {
        "test_accuracy": trained.test_accuracy,
        "best_epoch": trained.best_epoch,
        "recipe": trained.recipe.to_dict(),
        "curves": {name: [None if v is None else float(f"{v:.5g}") for v in trained.curves[name]] for name in _CURVES},
        "seconds": {"train": round(trained.seconds, 2)},
    }


def _config(spec: PosteriorSpec, n_jobs: int | None, run: RunSpec | None = None) -> TrainingConfig:
    """Return the configuration of the posterior, and of the method of a run that starts from it."""
    own = {name: getattr(spec, name) for name in ("batch_size", "optimizer", "learning_rate", "momentum", "schedule")}
    recipes = {"ce": METHODS["ce"].recipe.changed(spec.epochs, **own)}
    if run is not None:
        # A learning rate belongs to its optimizer: the methods take both or neither.
        common = {"batch_size": spec.batch_size} if spec.optimizer is None else own
        for name in METHODS.keys() - {"ce"}:
            changes = {**common, **run.settings.get(name, {})}
            recipes[name] = METHODS[name].recipe.changed(run.method_epochs, **changes)
    # Not every network has these options: they are passed on only if they are set.
    options = {name: value for name, value in spec.to_dict().items() if name in ("width", "stem", "batch_norm")}
    return TrainingConfig(
        network=with_logistic_loss(spec.network) if spec.loss == "logistic" else spec.network,
        method="ce",
        network_options=options,
        weights=spec.weights,
        recipes=recipes,
        folds=1,
        augment=spec.augment,
        n_jobs=n_jobs,
        random_state=spec.seed,
    )


def with_logistic_loss(network: str) -> Callable[..., nn.Module]:
    """Return a function that builds `network` with logits (0, z): their cross entropy is the logistic loss of z."""

    def build(input_shape: Sequence[int], n_classes: int, **options: Any) -> nn.Module:
        if n_classes != 2:
            raise InputError(f"Expected two classes for the logistic loss, got {n_classes}. Use loss=cross-entropy.")
        return nn.Sequential(NETWORKS[network](input_shape, 1, **options), nn.ConstantPad1d((1, 0), 0.0))

    return build


def _load(spec: PosteriorSpec) -> Dataset:
    if spec.dataset != "synthetic":
        return _load_named(spec.dataset)
    if spec.size <= 1:
        raise InputError(f"Expected a number of samples for the synthetic data, got the share {spec.size:g}.")
    n_samples = spec.pool if spec.whole_validation and spec.pool else int(spec.size)
    options = {} if spec.n_test is None else {"n_test": spec.n_test}
    return load_synthetic(n_samples=n_samples, random_state=spec.seed, standardize=spec.standardize, **options)


# The runs on a data set follow one another, so keeping one is enough.
_load_named = lru_cache(maxsize=1)(load_dataset)


def posterior_error(truth: Floats, estimated: NDArray[np.float32]) -> float:
    """Return the mean of |P − P̂| over samples and classes: Δ1 on a training part, Figure 1 on a test part."""
    return float(np.abs(truth - estimated).mean())


def counting_error(truth: Floats, intermediate: Labels, noisy: Labels) -> float:
    """Return Δ2: the mean over j and the predicted classes l of |P(Ȳ=j | Y'=l) − share of label j among them|."""
    n_classes = truth.shape[1]
    errors = [
        np.abs(truth[chosen].mean(axis=0) - np.bincount(noisy[chosen], minlength=n_classes) / chosen.sum())
        for chosen in (intermediate == label for label in range(n_classes))
        if chosen.any()
    ]
    return float(np.mean(errors))


def fitting_error(clean: Labels, intermediate: Labels, noisy: Labels, n_classes: int) -> float:
    """Return Δ3: the mean over i, j of Σ_l |P̂(Ȳ=j | Y'=l, Y=i) − P̂(Ȳ=j | Y'=l)| P̂(Y'=l | Y=i)."""
    counts = np.zeros((n_classes, n_classes, n_classes))
    np.add.at(counts, (clean, intermediate, noisy), 1)
    of_both = counts.sum(axis=2)
    given_both = counts / np.maximum(of_both, 1)[:, :, None]
    given_intermediate = counts.sum(axis=0) / np.maximum(of_both.sum(axis=0), 1)[:, None]
    weights = of_both / np.maximum(of_both.sum(axis=1), 1)[:, None]
    return float((np.abs(given_both - given_intermediate) * weights[:, :, None]).sum(axis=1).mean())
