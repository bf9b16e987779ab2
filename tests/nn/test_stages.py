"""Stages of many runs, trained as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualt import noise
from dualt.datasets import load_dataset, split_dataset
from dualt.errors import InputError
from dualt.nn.config import TrainingConfig
from dualt.nn.pipeline import training_data
from dualt.nn.stages import Stages, can_replicate, learned_transition, train_stages

RATES = (0.1, 0.3)
MATRICES = [noise.pair(2, rate) for rate in RATES]


def stages(folder=None, on_epoch=None, **options):
    dataset = load_dataset("synthetic", n_samples=400, n_test=100)
    every = []
    for seed, matrix in enumerate(MATRICES):
        data = training_data(split_dataset(dataset, matrix, random_state=seed), dataset)
        config = TrainingConfig(
            "mlp-small", **{"recipe": "paper", "epochs": 3, "batch_size": 32, "random_state": seed, **options}
        )
        own = None if folder is None else folder / str(seed)
        if own is not None:
            own.mkdir(exist_ok=True)
        every.append(Stages(data, ("a", "b"), config, own, resume=own is not None, on_epoch=on_epoch))
    return every


def test_a_chain_of_stages_comes_out_as_alone():
    together, alone = stages(method="revision"), stages(method="revision")
    found = train_stages(together, "revision", MATRICES)
    for own, trained, single, matrix in zip(together, found, alone, MATRICES, strict=True):
        assert [*own.trained] == [*own.seconds] == ["ce", "reweighting", "revision"]
        expected = single.train("revision", matrix)
        np.testing.assert_allclose(learned_transition(trained), learned_transition(expected), atol=1e-5)
        for a, b in zip(trained.history.records, expected.history.records, strict=True):
            assert a.loss == pytest.approx(b.loss, rel=1e-3)


def test_what_is_trained_stays_and_a_finished_checkpoint_is_not_trained_again(tmp_path):
    told = []
    every = stages(tmp_path, on_epoch=lambda name, record: told.append((name, record.epoch)))
    first = train_stages(every, "ce")
    assert sorted(told) == sorted(("ce", epoch) for epoch in range(3) for _ in every)
    assert train_stages(every, "ce") == first
    again = train_stages(stages(tmp_path, on_epoch=lambda *_: pytest.fail("trained again")), "ce")
    assert [one.history for one in again] == [one.history for one in first]


def test_what_cannot_be_batched_is_trained_one_by_one():
    assert not can_replicate(stages(precision="bf16")[0], "ce")
    every = stages(method="dividemix")
    assert not can_replicate(every[0], "dividemix")
    assert [len(one.history) for one in train_stages(every, "dividemix")] == [3, 3]


def test_folds_of_many_runs_are_trained_as_one_and_come_out_as_alone():
    together, alone = stages(folds=3, method="ce"), stages(folds=3, method="ce")
    for name in together[0].folds:
        assert can_replicate(together[0], name)
        train_stages(together, name)
    for own, single in zip(together, alone, strict=True):
        assert [*own.trained] == ["ce", *own.folds] == ["ce", "ce-fold-1", "ce-fold-2", "ce-fold-3"]
        trained = dict(own.trained)
        np.testing.assert_allclose(own.pred_probs(), single.pred_probs(), atol=1e-5)
        assert own.trained == trained, "trained once"
    n_rows = len(own.data.train.labels) + len(own.data.validation.labels)
    assert sorted(np.concatenate(list(own.folds.values()))) == list(range(n_rows))


def test_no_network_of_a_fold_has_seen_the_labels_of_the_rows_that_it_judges():
    """What it says of them stays the same, to the bit, whatever they are."""
    own = stages(folds=3, method="ce")[0]
    probs = np.concatenate([own.pred_probs(), own.held_out_probs()])
    rows = own.folds["ce-fold-2"]
    n_train = len(own.data.train.labels)
    own.trained.pop("ce-fold-2")
    own.data.train.labels[rows[rows < n_train]] = 0
    own.data.validation.labels[rows[rows >= n_train] - n_train] = 0
    other = replace(own, _probs={}, _posteriors={})
    again = np.concatenate([other.pred_probs(), other.held_out_probs()])
    np.testing.assert_array_equal(again[rows], probs[rows])


def test_folds_stop_where_the_validation_part_says_that_the_network_has_learned():
    own = stages(folds=3, method="ce", epochs=6)[0]
    history = own.train("ce").history
    assert len(history) == 6
    own.posterior()
    for name in own.folds:
        assert len(own.trained[name].history) == history.learned_epoch + 1
        assert own.trained[name].recipe.epochs == 6, "the schedule is the same"


def test_folds_that_were_interrupted_go_on_and_come_out_the_same(tmp_path):
    def interrupt(name, record):
        if (name, record.epoch) == ("ce-fold-2", 0):
            raise KeyboardInterrupt

    options = {"folds": 3, "method": "ce", "learning_rate": 0.1}
    with pytest.raises(KeyboardInterrupt):
        stages(tmp_path, on_epoch=interrupt, **options)[0].posterior()
    seen = []
    resumed = stages(tmp_path, on_epoch=lambda name, record: seen.append((name, record.epoch)), **options)[0]
    whole = stages(**options)[0]
    np.testing.assert_array_equal(resumed.pred_probs(), whole.pred_probs())
    n_epochs = whole.train("ce").history.learned_epoch + 1
    assert n_epochs > 1
    left = [("ce-fold-2", epoch) for epoch in range(1, n_epochs)] + [("ce-fold-3", epoch) for epoch in range(n_epochs)]
    assert seen == left


def test_what_no_judge_has_seen():
    own = stages(folds=3, method="ce")[0]
    probs, labels = own.unseen()
    assert (len(probs), labels.tolist()) == (len(own.every_row.labels), own.every_row.labels.tolist())
    own = stages(folds=1, method="ce")[0]
    probs, labels = own.unseen()
    assert labels.tolist() == own.data.validation.labels.tolist()
    np.testing.assert_array_equal(probs, own.held_out_probs())
    alone = replace(own, data=own.data._replace(validation=None), _probs={}, _posteriors={})
    alone.trained.clear()
    assert (alone.unseen(), alone.held_out_probs()) == (None, None)


def test_runs_of_several_recipes_are_refused():
    short, long = stages(epochs=2)[0], stages(epochs=3)[1]
    with pytest.raises(InputError, match="one recipe of 'ce'"):
        train_stages([short, long], "ce")
