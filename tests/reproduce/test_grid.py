"""The runs of a grid: how many, which share a posterior, and what makes one another."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from dualt.errors import InputError, UnknownNameError
from dualt.noise import symmetric
from dualt.reproduce import RunSpec, load_experiment, runs_of
from dualt.reproduce.grid import divide
from dualt.reproduce.spec import PosteriorSpec


def test_table1_has_thirteen_rows_and_twelve_columns():
    runs = runs_of(load_experiment("table1", "paper"))
    cells = {(r.posterior.dataset, r.posterior.noise, r.estimator, r.method) for r in runs if r.method is not None}
    assert len(cells) == 13 * 12
    assert len({run.identity for run in runs}) == len(runs) == (13 + 2) * 12 * 5


def test_one_posterior_serves_all_estimators_and_methods():
    runs = runs_of(load_experiment("table1", "paper", {"datasets": ["mnist"], "seeds": 2}))
    work = divide(runs, together=False)
    assert len(work) == 3 * 2
    assert all(len(piece.runs) == 15 and len(piece.posteriors) == 1 for piece in work)


def test_noises_and_seeds_of_one_size_go_together():
    experiment = load_experiment("figure2", "paper")
    work = divide(runs_of(experiment), together=True)
    assert len(work) == len(experiment.sizes)
    assert all(len(piece.posteriors) == 2 * 5 for piece in work)
    assert all(len({posterior.size for posterior in piece.posteriors}) == 1 for piece in work)


def test_experiments_share_runs():
    first = {run.identity for run in runs_of(load_experiment("figure1", "paper"))}
    second = {run.identity for run in runs_of(load_experiment("figure2", "paper"))}
    assert second < first, "the posteriors of figure 2 are trained once, for figure 1"


def test_identity_depends_on_every_field():
    run = runs_of(load_experiment("figure2", "paper"))[0]
    assert run.identity == RunSpec(replace(run.posterior), run.estimator, run.method).identity
    changes = {"noise": "sym-21", "size": 501.0, "seed": 9, "network": "mlp", "width": 2.0, "loss": "logistic",
               "epochs": 3, "batch_size": 3, "learning_rate": 0.1, "augment": "shift", "folds": 2,
               "validation_fraction": 0.3, "n_test": 7, "weights": "x", "dataset": "mnist",
               "matrix": ((1.0, 0.0), (0.0, 1.0)), "optimizer": "adam"}  # fmt: skip
    assert changes.keys() == {field.name for field in fields(PosteriorSpec)}
    others = {RunSpec(replace(run.posterior, **{name: value}), None, "ce").identity for name, value in changes.items()}
    assert len({run.identity, *others}) == len(changes) + 1


def test_records_of_before_keep_their_identity():
    folder = Path(__file__).parents[2] / "docs" / "reproduction"
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("**/records/*.json"))]
    assert len(records) > 500
    for record in records:
        spec = record["spec"]
        run = RunSpec(PosteriorSpec(**spec["posterior"]), spec["estimator"], spec["method"], spec["method_epochs"])
        assert run.identity == record["id"]


def test_clean_labels_are_estimated_where_errors_are_shown():
    def estimated(name):
        runs = runs_of(load_experiment(name, "smoke", {"noise": ["clean"]}))
        return [run.estimator for run in runs if run.estimator is not None]

    assert estimated("floor")
    assert not estimated("figure1"), "its clean posteriors are there to be compared, not to estimate from"


def test_noise_from_a_file_travels_in_the_run(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(symmetric(2, 0.3).tolist()))
    runs = runs_of(load_experiment("figure2", "smoke", {"noise": [str(path)]}))
    posterior = runs[0].posterior
    assert posterior.noise == "mine"
    np.testing.assert_allclose(posterior.matrix, symmetric(2, 0.3))
    path.write_text(json.dumps(symmetric(2, 0.4).tolist()))
    assert runs_of(load_experiment("figure2", "smoke", {"noise": [str(path)]}))[0].identity != runs[0].identity


@pytest.mark.parametrize(
    ("change", "nearest"),
    [
        ({"datasets": ["synthetik"], "network": "mlp"}, "synthetic"),
        ({"estimators": ["dualt"]}, "dual-t"),
        ({"estimators": ["dual-t-insample"]}, "dual-t-in-sample"),
        ({"estimators": ["tru"]}, "true"),
        ({"methods": ["forwrad"]}, "forward"),
        ({"network": "mlp-smal"}, "mlp-small"),
        ({"noise": ["smy-20"]}, "sym"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(change, nearest):
    with pytest.raises(UnknownNameError, match=f"Did you mean '{nearest}'"):
        runs_of(load_experiment("figure2", "smoke", change))


def test_an_empty_grid_is_refused():
    with pytest.raises(InputError, match="Nothing is left"):
        runs_of(load_experiment("figure2", "smoke", {"noise": []}))
