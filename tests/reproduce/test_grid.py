"""The runs of a grid: how many, which share a posterior, and what makes one another."""

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest

from dualt.errors import InputError, UnknownNameError
from dualt.reproduce import RunSpec, load_experiment, read_records, runs_of
from dualt.reproduce.runs import PosteriorSpec


def test_table1_has_thirteen_rows_and_twelve_columns():
    runs = runs_of(load_experiment("table1", "paper"))
    cells = {(r.posterior.dataset, r.posterior.noise, r.estimator, r.method) for r in runs if r.method is not None}
    assert len(cells) == 13 * 12
    assert len({run.identity for run in runs}) == len(runs) == (13 + 2) * 12 * 5


def test_one_posterior_serves_all_estimators_and_methods():
    runs = runs_of(load_experiment("table1", "paper", {"datasets": ["mnist"], "seeds": 2}))
    by_posterior = Counter(run.posterior.identity for run in runs)
    assert len(by_posterior) == 3 * 2
    assert {*by_posterior.values()} == {15}


def test_experiments_share_runs():
    first = {run.identity for run in runs_of(load_experiment("figure1", "paper"))}
    second = {run.identity for run in runs_of(load_experiment("figure2", "paper"))}
    assert second < first, "the posteriors of figure 2 are trained once, for figure 1"


def test_identity_depends_on_every_field():
    run = runs_of(load_experiment("figure2", "paper"))[0]
    assert run.identity == RunSpec(replace(run.posterior), run.estimator, run.method).identity
    changes = {"noise": "sym-21", "size": 501.0, "seed": 9, "network": "mlp", "width": 2.0, "loss": "logistic",
               "epochs": 3, "batch_size": 3, "learning_rate": 0.1, "augment": "shift", "n_test": 7, "weights": "x",
               "dataset": "mnist", "optimizer": "adam", "momentum": 0.5, "schedule": "one-cycle", "stem": "imagenet",
               "batch_norm": False, "whole_validation": False, "pool": 9, "standardize": False}  # fmt: skip
    assert changes.keys() == {field.name for field in fields(PosteriorSpec)}
    others = {RunSpec(replace(run.posterior, **{name: value}), None, "ce").identity for name, value in changes.items()}
    assert len({run.identity, *others}) == len(changes) + 1


def test_committed_records_have_the_identity_of_their_settings():
    folder = Path(__file__).parents[2] / "docs" / "reproduction"
    records = [record for path in folder.glob("*/records.jsonl") for record in read_records(path.parent).values()]
    assert len(records) == 1001
    for record in records:
        posterior = PosteriorSpec(**record["spec"]["posterior"])
        assert RunSpec(**{**record["spec"], "posterior": posterior}).identity == record["id"]


def test_settings_of_a_method_reach_those_that_start_from_it():
    changes = {"recipes": {"reweighting": {"momentum": 0.5}}, "datasets": ["mnist"], "seeds": 1, "noise": ["sym-20"]}
    runs = {(run.estimator, run.method): run for run in runs_of(load_experiment("table1", "paper", changes))}
    own = {"reweighting": {"momentum": 0.5}}
    assert runs["t", "revision"].settings == runs["t", "reweighting"].settings == own
    assert runs["t", "forward"].settings == {"forward": {"momentum": 0.9}}
    assert runs[None, "mixup"].settings == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"recipes": {"ce": {"momentum": 0.9}}}, "--set momentum=0.9"),
        ({"recipes": {"forward": {"momentun": 0.9}}}, "Did you mean 'momentum'"),
        ({"recipes": {"forwrad": {"momentum": 0.9}}}, "Did you mean 'forward'"),
        ({"recipes": {"forward": {"momentum": 9}}}, "momentum"),
        ({"estimator_options": {"dualt": {"anchor": "quantile"}}}, "Did you mean 'dual-t'"),
        ({"augment": "shift-flop"}, "Did you mean 'shift-flip'"),
        ({"datasets": ["synthetik"], "network": "mlp"}, "Did you mean 'synthetic'"),
        ({"estimators": ["dualt"]}, "Did you mean 'dual-t'"),
        ({"estimators": ["dual-t-heldout"]}, "Did you mean 'dual-t-held-out'"),
        ({"estimators": ["tru"]}, "Did you mean 'true'"),
        ({"methods": ["forwrad"]}, "Did you mean 'forward'"),
        ({"network": "mlp-smal"}, "Did you mean 'mlp-small'"),
        ({"noise": ["smy-20"]}, "Did you mean 'sym'"),
        ({"noise": []}, "at least one data set"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, words):
    with pytest.raises((InputError, UnknownNameError), match=words):
        runs_of(load_experiment("figure2", "smoke", change))


def test_clean_labels_are_estimated_where_errors_are_shown():
    def estimated(name):
        runs = runs_of(load_experiment(name, "smoke", {"noise": ["clean"]}))
        return [run.estimator for run in runs if run.estimator is not None]

    assert estimated("figure2")
    assert not estimated("figure1"), "its clean posteriors are there to be compared, not to estimate from"
