"""The stages of a run: what each starts from, folds, and what is trained once."""

from dataclasses import replace

import numpy as np
import pytest

from dualt import noise
from dualt.datasets import load_dataset, split_dataset
from dualt.errors import InputError
from dualt.nn.config import TrainingConfig
from dualt.nn.networks import predict_probs
from dualt.nn.run import Stages, training_data

MATRIX = noise.pair(2, 0.3)


def stages(folder=None, on_epoch=None, **options):
    dataset = load_dataset("synthetic", n_samples=400, n_test=100)
    data = training_data(split_dataset(dataset, MATRIX))
    config = TrainingConfig("mlp-small", **{"recipe": "paper", "epochs": 3, "batch_size": 32, **options})
    return Stages(data, ("a", "b"), config, folder, resume=folder is not None, on_epoch=on_epoch)


def test_a_method_trains_the_stages_that_it_starts_from():
    own = stages(method="revision")
    trained = own.train("revision", MATRIX)
    assert [*own.trained] == ["ce", "reweighting", "revision"]
    assert own.train("revision", MATRIX) is trained, "trained once"
    assert trained.learned_transition.shape == (2, 2)


def test_every_row_is_held_out_once():
    own = stages(folds=3, method="ce")
    assert own.probs.shape == (len(own.data.rows.labels), 2)
    assert [*own.trained] == ["ce", *own.folds] == ["ce", "ce-fold-1", "ce-fold-2", "ce-fold-3"]
    assert sorted(np.concatenate(list(own.folds.values()))) == list(range(len(own.data.rows.labels)))


def test_several_models_hold_every_row_out_once_each_and_are_heard_as_voices():
    own = stages(folds=3, fold_models=2, recipe="default", estimator=None)
    n_samples = len(own.data.rows.labels)
    assert own.probs.shape == (2, n_samples, 2)
    held_out = list(own.folds.values())
    for rows in (held_out[:3], held_out[3:]):
        assert sorted(np.concatenate(rows)) == list(range(n_samples))
    for number, (name, rows) in enumerate(own.folds.items()):
        own_probs = predict_probs(own.trained[name].networks, own.data.rows.subset(rows).inputs)
        np.testing.assert_array_equal(own.probs[number // 3, rows], own_probs)
    alone = stages(folds=3, recipe="default")
    np.testing.assert_array_equal(own.probs[0], alone.probs, "the first is the one that is there without a second")
    found = [each.estimate()[0].estimator for each in (own, alone)]
    assert found == ["views", "clean-count"]
    with pytest.raises(InputError, match=r"2 folds.*fold_models=2, got 1"):
        stages(fold_models=2).run()
    with pytest.raises(InputError, match="determined True, False or None, got 'maybe'"):
        stages(determined="maybe").run()
    with pytest.raises(InputError, match="fold_models of at least 2 for 'views', got 1"):
        stages(estimator="views").run()


def test_no_network_of_a_fold_has_seen_the_labels_of_the_rows_that_it_judges():
    """What it says of them stays the same, to the bit, whatever they are."""
    own = stages(folds=3, method="ce")
    probs = own.probs
    rows = own.folds["ce-fold-2"]
    own.trained.pop("ce-fold-2")
    own.data.rows.labels[rows] = 0
    np.testing.assert_array_equal(replace(own).probs[rows], probs[rows])


def test_folds_stop_where_the_validation_part_says_that_the_network_has_learned():
    own = stages(folds=3, method="ce", epochs=6)
    first = own.train("ce")
    assert len(first.records) == 6
    assert len(own.probs) == len(own.data.rows.labels)
    for name in own.folds:
        assert len(own.trained[name].records) == first.learned_epoch + 1
        assert own.trained[name].recipe.epochs == 6, "the schedule is the same"


def test_folds_that_were_interrupted_go_on_and_come_out_the_same(tmp_path):
    def interrupt(name, record):
        if (name, record.epoch) == ("ce-fold-2", 0):
            raise KeyboardInterrupt

    options = {"folds": 3, "method": "ce", "learning_rate": 0.1}
    with pytest.raises(KeyboardInterrupt):
        _ = stages(tmp_path, on_epoch=interrupt, **options).probs
    seen = []
    resumed = stages(tmp_path, on_epoch=lambda name, record: seen.append((name, record.epoch)), **options)
    whole = stages(**options)
    np.testing.assert_array_equal(resumed.probs, whole.probs)
    n_epochs = whole.train("ce").learned_epoch + 1
    assert n_epochs > 1
    left = [("ce-fold-2", epoch) for epoch in range(1, n_epochs)] + [("ce-fold-3", epoch) for epoch in range(n_epochs)]
    assert seen == left
