"""One piece of work: train the posterior (or several), and make every run of it into a record."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualt.datasets.synthetic import noisy_posterior
from dualt.errors import FileError
from dualt.nn.methods import check_labels_possible
from dualt.nn.methods.stages import Stages, learned_transition
from dualt.nn.training import Trained, predict_probs
from dualt.nn.training.loop import limited_threads
from dualt.reproduce import measures
from dualt.reproduce.grid import Work
from dualt.reproduce.learning import Learned, Place, checkpoint_folder, learn_together, prepare
from dualt.reproduce.matrices import find_matrix
from dualt.reproduce.records import Record, failed_record, new_record
from dualt.reproduce.spec import Run
from dualt.transition import l1_error

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_CURVES = ("loss", "validation_accuracy", "validation_loss", "test_accuracy")


def do_work(work: Work, place: Place, keep: Callable[[Record], None], is_done: Callable[[Run], bool]) -> None:
    """Do the runs of `work` that are not done by now, and hand each record to `keep` as soon as it is there.

    A run that fails has a record that says why, and does not stop the others. A disk that is full does.
    """
    work = Work(tuple(run for run in work.runs if not is_done(run)))
    if not work.runs:
        return
    with limited_threads(place.threads):
        if len(work.posteriors) > 1:
            _do_together(work, place, keep)
        else:
            _do_one(work, place, keep, is_done)


def _do_together(work: Work, place: Place, keep: Callable[[Record], None]) -> None:
    # Nothing resumes a batched run, and its networks are small: no checkpoints.
    without = Place(place.data_dir, None, place.threads)
    try:
        learned = {posterior: prepare(posterior, without) for posterior in work.posteriors}
        learn_together(list(learned.values()))
    except Exception as error:
        _keep_failures(work, error, keep)
        return
    for run in work.runs:
        keep(_record(run, learned[run.posterior], {}, without))


def _do_one(work: Work, place: Place, keep: Callable[[Record], None], is_done: Callable[[Run], bool]) -> None:
    try:
        learned = prepare(work.posteriors[0], place)
        learned.stages.train("ce")
    except Exception as error:
        _stop_without_room(error)
        _keep_failures(work, error, keep)
        return
    branches: dict[str, Stages] = {}
    for run in work.runs:
        if not is_done(run):
            keep(_record(run, learned, branches, place))
    for branch in branches.values():
        for file in branch.folder.glob("*.safetensors") if branch.folder is not None else ():
            file.unlink(missing_ok=True)


def _keep_failures(work: Work, error: Exception, keep: Callable[[Record], None]) -> None:
    log.warning("%s failed: %s", work.label, error)
    for run in work.runs:
        keep(failed_record(run, error))


def _stop_without_room(error: Exception) -> None:
    """Pass on that nothing can be written: no fault of the run, which is done once there is room again."""
    cause = error.__cause__ if isinstance(error, FileError) else error
    if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
        raise FileError(f"{error} The records so far are kept; the same command goes on from there.") from error


def _record(run: Run, learned: Learned, branches: dict[str, Stages], place: Place) -> Record:
    try:
        return new_record(run, _measure(run, learned, branches, place))
    except Exception as error:
        _stop_without_room(error)
        log.warning("%s failed: %s", run.label, error)
        return failed_record(run, error)


def _measure(run: Run, learned: Learned, branches: dict[str, Stages], place: Place) -> dict[str, Any]:
    """Return what the record of a run says beside its spec."""
    content: dict[str, Any] = {"n_samples": len(learned.split.train_noisy) + len(learned.split.val_noisy)}
    if run.estimator is None and run.method == "ce":
        trained, seconds = learned.stages.train("ce"), learned.stages.seconds["ce"]
        return {**content, **_training(trained, seconds), **_known_posterior(learned)}
    if run.estimator is not None:
        content |= _estimate(run.estimator, learned)
    if run.method is not None:
        content |= _method(run, learned, content.get("transition"), branches, place)
    return content


def _estimate(name: str, learned: Learned) -> dict[str, Any]:
    began, trained = perf_counter(), sum(learned.stages.seconds.values())
    transition = find_matrix(name, learned)
    # The first estimator to want the folds has them trained: that is not its own time.
    seconds = perf_counter() - began - (sum(learned.stages.seconds.values()) - trained)
    content: dict[str, Any] = {"transition": transition.round(6).tolist()}
    if learned.split.transition is not None:
        content |= _errors(learned.split.transition, transition)
    return {**content, "seconds": {"estimate": round(seconds, 4)}}


def _errors(truth: NDArray[np.float64], transition: NDArray[np.float64]) -> dict[str, float]:
    return {
        "l1_error": l1_error(truth, transition),
        "l1_error_per_class": l1_error(truth, transition, normalize=True),
    }


def _method(run: Run, learned: Learned, transition: Any, branches: dict[str, Stages], place: Place) -> dict[str, Any]:
    """Train a method; the stages of one estimator share what they start from."""
    name = str(run.method)
    branch = run.estimator or "none"
    if branch not in branches:
        branches[branch] = learned.branch(branch, checkpoint_folder(run.posterior, place), run.method_epochs)
    stages = branches[branch]
    matrix: NDArray[np.float64] | None = None
    if transition is not None:
        matrix = np.asarray(transition)
        matrix /= matrix.sum(axis=1, keepdims=True)
        check_labels_possible(matrix, stages.data.train.labels)
    trained = stages.train(name, matrix)
    return {**_training(trained, stages.seconds[name]), **_learned(trained, learned)}


def _learned(trained: Trained, learned: Learned) -> dict[str, Any]:
    """Return the matrix that a method has learned, and its errors where the truth is known."""
    matrix, truth = learned_transition(trained), learned.split.transition
    if matrix is None:
        return {}
    errors = {} if truth is None else {f"learned_{name}": value for name, value in _errors(truth, matrix).items()}
    return {"learned_transition": matrix.round(6).tolist(), **errors}


def _training(trained: Trained, seconds: float) -> dict[str, Any]:
    columns = trained.history.to_dict()
    return {
        "test_accuracy": trained.test_accuracy,
        "best_epoch": trained.history.best_epoch,
        "recipe": trained.recipe.to_dict(),
        "curves": {name: [_short(value) for value in columns[name]] for name in _CURVES},
        "seconds": {"train": round(seconds, 2)},
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _known_posterior(learned: Learned) -> dict[str, Any]:
    """Return the errors that only synthetic data can tell."""
    split = learned.split
    if learned.spec.dataset != "synthetic" or split.transition is None or split.train_clean is None:
        return {}
    test = learned.stages.data.test
    truth = noisy_posterior(np.asarray(split.train_x), split.transition)
    intermediate = learned.pred_probs.argmax(axis=1)
    content = {
        "delta1": measures.posterior_error(truth, learned.pred_probs),
        "delta2": measures.counting_error(truth, intermediate, split.train_noisy),
        "delta3": measures.fitting_error(split.train_clean, intermediate, split.train_noisy, split.n_classes),
    }
    if test is not None and split.test_x is not None:
        estimated = predict_probs(learned.stages.train("ce").networks, test.inputs).numpy()
        content["posterior_error"] = measures.posterior_error(
            noisy_posterior(np.asarray(split.test_x), split.transition), estimated
        )
    return content
