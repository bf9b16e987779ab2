"""The pipeline: every method end to end, known matrices, folds, checkpoints, plain results."""

import json

import numpy as np
import pytest

import dualt
from dualt.datasets import load_dataset, split_dataset
from dualt.nn.config import TrainingConfig
from dualt.nn.methods import METHODS
from dualt.nn.networks import predict_probs
from dualt.nn.recipe import Recipe
from dualt.nn.run import Stages, chosen_by_auto, issues_of_all_rows, training_data

MATRIX = np.array([[0.8, 0.2], [0.3, 0.7]])
QUICK = {"network": "mlp-small", "recipe": "paper", "epochs": 6, "batch_size": 32}


def run_of(data, config, class_names=("0", "1"), **options):
    return Stages(data, class_names, config, **options).run()


@pytest.fixture(scope="module")
def sample():
    dataset = load_dataset("synthetic", n_samples=1500, n_test=500)
    split = split_dataset(dataset, MATRIX, random_state=0)
    return training_data(split), split


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_from_end_to_end(method, sample):
    data, _ = sample
    own = {"learning_rate": 0.02 if method == "dividemix" else 0.1}
    if METHODS[method].recipe.optimizer == "adam":
        own = {"optimizer": "adam", "learning_rate": 2e-3}
    run = run_of(data, TrainingConfig(method=method, **own, **QUICK))
    assert run.test_accuracy > 0.95
    before = ["ce"] * METHODS[method].takes_transition + ["reweighting"] * (method == "revision")
    assert list(run.stages) == [*before, method]
    takes_part = METHODS[method].takes_transition or method == "ce"
    assert (run.estimate is not None) == takes_part
    assert run.method == method, run.distrust
    assert run.to_dict() == json.loads(json.dumps(run.to_dict()))


def test_the_estimate_is_that_of_the_posterior(sample):
    data, split = sample
    run = run_of(data, TrainingConfig(method="ce", learning_rate=0.1, **QUICK), class_names=["no", "yes"])
    again = dualt.estimate_transition(run.pred_probs[: len(split.train_noisy)], split.train_noisy, "dual-t")
    np.testing.assert_array_equal(run.transition, again.transition)
    assert run.estimate.class_names == ("no", "yes")


def test_revision_shows_what_it_has_learned(sample):
    data, _ = sample
    config = TrainingConfig(method="revision", learning_rate=1e-3, transition=MATRIX, **{**QUICK, "epochs": 2})
    run = run_of(data, config)
    np.testing.assert_array_equal(run.transition, MATRIX)
    assert 0 < dualt.l1_error(run.learned_transition, MATRIX) < 0.2
    assert run.to_dict()["learned_transition"] == run.learned_transition.tolist()


def test_reweighting_starts_from_the_ce_network(sample):
    data, _ = sample
    recipes = {"reweighting": Recipe(epochs=1, learning_rate=1e-12)}
    run = run_of(data, TrainingConfig("mlp-small", "reweighting", recipes={
        **recipes, "ce": Recipe(epochs=3, learning_rate=0.1)
    }))  # fmt: skip
    first, second = (run.stages[name].networks[0][1].weight for name in ("ce", "reweighting"))
    np.testing.assert_allclose(first.detach(), second.detach(), atol=1e-6)


def test_a_known_matrix_or_estimate_is_taken_as_it_is(sample):
    data, split = sample
    run = run_of(data, TrainingConfig(transition=MATRIX, learning_rate=0.1, **QUICK))
    assert (run.estimate, run.pred_probs, list(run.stages)) == (None, None, ["forward"])
    estimate = dualt.estimate_transition(np.tile([0.6, 0.4], (len(split.train_noisy), 1)), split.train_noisy, "spade")
    assert run_of(data, TrainingConfig(method="mentornet", transition=estimate, **QUICK)).estimate is estimate


def test_out_of_fold_probabilities_come_from_other_networks(sample):
    data, split = sample
    in_sample = TrainingConfig(method="ce", estimator="confident-joint", folds=1, learning_rate=0.1, **QUICK)
    out_of_fold = TrainingConfig(method="ce", estimator="confident-joint", folds=5, learning_rate=0.1, **QUICK)
    run = run_of(data, out_of_fold)
    assert list(run.stages) == ["ce", *(f"ce-fold-{number}" for number in range(1, 6))]
    assert run.out_of_fold
    assert run.estimate.n_samples == len(run.pred_probs) == len(split.clean_labels), "every row serves the estimate"
    assert run.to_dict()["out_of_fold"]
    same_network = run_of(data, in_sample)
    assert same_network.out_of_fold is False
    assert not np.array_equal(run.pred_probs, same_network.pred_probs)
    assert (run.pred_probs.argmax(axis=1) == split.clean_labels).mean() > 0.9


def test_several_fold_models_find_matrix_and_wrong_labels(sample):
    data, split = sample
    config = TrainingConfig("mlp-small", "forward", folds=3, fold_models=2, determined=True, epochs=8, batch_size=32)
    run = run_of(data, config)
    assert (run.estimate.estimator, run.out_of_fold) == ("views", True)
    assert dualt.l1_error(run.transition, MATRIX) < 0.1
    issues = issues_of_all_rows(run, split)
    wrong = np.concatenate([split.train_noisy, split.val_noisy]) != split.clean_labels
    order = np.argsort(np.concatenate([split.train_index, split.val_index]))
    assert (issues.is_issue == wrong[order]).mean() > 0.95


def test_stages_resume_from_their_checkpoints(sample, tmp_path):
    data, _ = sample
    config = TrainingConfig(method="revision", learning_rate=1e-3, **QUICK)

    def interrupt(stage, record):
        if (stage, record.epoch) == ("reweighting", 2):
            raise KeyboardInterrupt

    folder, seen = tmp_path / "deep" / "run", []
    with pytest.raises(KeyboardInterrupt):
        run_of(data, config, folder=folder, on_epoch=interrupt)
    resumed = run_of(data, config, folder=folder, resume=True, on_epoch=lambda s, r: seen.append((s, r.epoch)))
    assert seen == [("reweighting", e) for e in (3, 4, 5)] + [("revision", e) for e in range(6)]
    whole = run_of(data, config)
    np.testing.assert_array_equal(resumed.networks[0][1].weight.detach(), whole.networks[0][1].weight.detach())
    assert resumed.test_accuracy == whole.test_accuracy


def estimated(matrix, n_samples=6_000):
    """Return an estimate of labels that were drawn by `matrix`, from probabilities that are sure of the true class."""
    rng = np.random.default_rng(0)
    clean = rng.integers(len(matrix), size=n_samples)
    given = dualt.noise.corrupt(clean, matrix, random_state=0)
    sure = 0.97 * np.eye(len(matrix))[clean] + 0.03 / len(matrix)
    return dualt.estimate_transition(sure @ matrix, given)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (np.eye(4), "ce"),
        (dualt.noise.symmetric(4, 0.02), "ce"),
        (dualt.noise.symmetric(4, 0.3), "dividemix"),
        (dualt.noise.pair(4, 0.15), "dividemix"),
        (dualt.noise.pair(4, 0.3), "forward"),
        (dualt.noise.pair(4, 0.45), "forward"),
    ],
)
def test_auto_goes_by_the_estimate(matrix, expected):
    estimate = estimated(matrix)
    assert chosen_by_auto(estimate, None) == expected
    assert chosen_by_auto(estimate, "the classifier has learned too little") == "ce"


@pytest.mark.parametrize(("rate", "method", "n_own"), [(0.0, "ce", 1), (0.2, "dividemix", 2), (0.4, "forward", 1)])
def test_auto_averages_the_networks_of_the_folds_too_unless_they_learn_the_noise(rate, method, n_own):
    dataset = load_dataset("synthetic", n_samples=1500, n_test=500)
    data = training_data(split_dataset(dataset, dualt.noise.symmetric(2, rate), random_state=0))
    run = run_of(data, TrainingConfig("mlp-small", folds=3, epochs=8, batch_size=32))
    assert run.method == method, run.distrust
    assert len(run.networks) == n_own + (0 if method == "forward" else 3)
    hits = predict_probs(run.networks, data.test.inputs).argmax(1) == data.test.labels
    expected = run.stages[method].test_accuracy if method == "forward" else hits.float().mean().item()
    assert run.test_accuracy == pytest.approx(expected)
    assert run.test_accuracy > 0.9
