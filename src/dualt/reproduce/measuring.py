"""What the record of a run says beside its spec: matrices and their errors, accuracies, curves, Δ1, Δ2, Δ3.

The appendix defines Δ1 = |P(Ȳ=j | x) − P̂(Ȳ=j | x)|, Δ2 = |P(Ȳ=j | Y'=l) − P̂(Ȳ=j | Y'=l)| and
Δ3 = |P(Ȳ=j | Y'=l, Y=i, x) − P(Ȳ=j | Y'=l, x)|, and says that they are computed on the training set. Given x,
Y' is certain, and the last would not depend on the network at all; but it is to vanish once Y' is the noisy label.
So we count it, as the proof of Theorem 1 uses it: without x, weighted with P(Y'=l | Y=i).
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.synthetic import noisy_posterior
from dualt.errors import InputError
from dualt.estimators import ESTIMATORS, estimate_posterior
from dualt.nn.methods import check_labels_possible
from dualt.nn.stages import learned_transition, posterior_of
from dualt.nn.training import Trained, predict_probs
from dualt.reproduce.grid import TRUE
from dualt.reproduce.learning import Learned
from dualt.reproduce.spec import HELD_OUT, IN_SAMPLE, RunSpec, Settings, base_name
from dualt.rows import NoisyPosterior
from dualt.transition import l1_error

_CURVES = ("loss", "validation_accuracy", "validation_loss", "test_accuracy")

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def measure(run: RunSpec, learned: Learned) -> dict[str, Any]:
    """Do a run on its posterior, unless its method is trained by now, and return what was measured."""
    n_train, n_validation = len(learned.split.train_noisy), len(learned.split.val_noisy)
    # What the size of the spec counts.
    n_samples = n_train if learned.spec.whole_validation else n_train + n_validation
    content: dict[str, Any] = {"n_samples": n_samples, "n_validation": n_validation}
    if run.estimator is None and run.method == "ce":
        return {**content, **_training(learned.stages.train("ce")), **_known_posterior(learned)}
    if run.estimator is not None:
        content |= estimate(run, learned)
    if run.method is not None:
        content |= _method(run, learned)
    return content


def estimate(run: RunSpec, learned: Learned) -> dict[str, Any]:
    """Return the matrix of the run's estimator and its errors."""
    key = (str(run.estimator), run.estimator_options)
    if key not in learned.estimates:
        learned.estimates[key] = _estimate(*key, learned)
    return learned.estimates[key]


def matrix_to_train_through(run: RunSpec, learned: Learned) -> Floats | None:
    """Return the matrix that the run's method gets, or `None` if it takes none."""
    if run.estimator is None:
        return None
    matrix = np.asarray(estimate(run, learned)["transition"])
    matrix /= matrix.sum(axis=1, keepdims=True)
    check_labels_possible(matrix, learned.stages.data.train.labels)
    return matrix


def _estimate(name: str, given: Settings, learned: Learned) -> dict[str, Any]:
    truth = learned.split.transition
    if name == TRUE:
        if truth is None:
            raise InputError(f"Expected labels with known noise for the matrix {TRUE!r}, got {learned.spec.dataset!r}.")
        transition, seconds = truth, 0.0
    else:
        posterior, clean = _posterior(name, learned)
        estimator = base_name(name)
        # The summary serves every estimator: reading the rows for it is no one's own time.
        _ = posterior.summary
        began = perf_counter()
        options = {"clean_labels": clean} if ESTIMATORS[estimator].needs_clean_labels else {}
        transition = estimate_posterior(posterior, estimator, **options, **dict(given)).transition
        seconds = perf_counter() - began
    content = {"transition": transition.round(6).tolist(), **_errors(learned, transition)}
    return {**content, "seconds": {"estimate": round(seconds, 4)}}


def _posterior(name: str, learned: Learned) -> tuple[NoisyPosterior, Labels | None]:
    """Return the probabilities that an estimator of this name reads, and the clean labels of their samples."""
    stages, split = learned.stages, learned.split
    if name.endswith(HELD_OUT):
        probs = stages.held_out_probs(1)
        if probs is None:
            raise InputError(f"Expected a validation part for {name!r}, got none.")
        return posterior_of(probs, split.val_noisy, stages.class_names, out_of_fold=True), split.val_clean
    posterior, clean = stages.posterior(folds=1 if name.endswith(IN_SAMPLE) else None), split.clean_labels
    return posterior, None if clean is None else clean[: posterior.n_samples]


def _errors(learned: Learned, transition: Floats) -> dict[str, float]:
    """Return how far a matrix is from the true one, where that is known."""
    truth = learned.split.transition
    if truth is None:
        return {}
    return {"l1_error": l1_error(truth, transition), "l1_error_per_class": l1_error(truth, transition, normalize=True)}


def _method(run: RunSpec, learned: Learned) -> dict[str, Any]:
    """Train a method; the stages of one estimator share what they start from."""
    trained = learned.branch(run).train(str(run.method), matrix_to_train_through(run, learned))
    content, found = _training(trained), learned_transition(trained)
    if found is not None:
        content["learned_transition"] = found.round(6).tolist()
        content |= {f"learned_{key}": value for key, value in _errors(learned, found).items()}
    return content


def _training(trained: Trained) -> dict[str, Any]:
    columns = trained.history.to_dict()
    return {
        "test_accuracy": trained.test_accuracy,
        "best_epoch": trained.history.best_epoch,
        "recipe": trained.recipe.to_dict(),
        "curves": {name: [_short(value) for value in columns[name]] for name in _CURVES},
        "seconds": {"train": round(trained.history.seconds, 2)},
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _known_posterior(learned: Learned) -> dict[str, Any]:
    """Return the errors that only synthetic data can tell."""
    split, pred_probs, test = learned.split, learned.stages.pred_probs, learned.stages.data.test
    if learned.spec.dataset != "synthetic" or split.transition is None or split.train_clean is None:
        return {}
    truth = noisy_posterior(np.asarray(split.train_x), split.transition)
    intermediate = pred_probs().argmax(axis=1)
    content = {
        "delta1": posterior_error(truth, pred_probs()),
        "delta2": counting_error(truth, intermediate, split.train_noisy),
        "delta3": fitting_error(split.train_clean, intermediate, split.train_noisy, split.n_classes),
    }
    if test is not None and split.test_x is not None:
        estimated = predict_probs(learned.stages.train("ce").networks, test.inputs).numpy()
        content["posterior_error"] = posterior_error(
            noisy_posterior(np.asarray(split.test_x), split.transition), estimated
        )
    return content


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
