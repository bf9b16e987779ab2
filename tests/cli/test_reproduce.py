"""`dualt reproduce` as a user runs it."""

from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

from dualt.cli import app
from dualt.reproduce import EXPERIMENTS, read_records
from tests.paper_data import write_all


def run(command, out, *sets, code=0, data=None):
    """Run a command, with the smoke profile unless it names one, and with `--set` for each of `sets`."""
    words = [*command.split(), "--out", str(out), *(word for each in sets for word in ("--set", each))]
    words += [] if "--profile" in words else ["--profile", "smoke"]
    result = CliRunner(env={"DUALT_DATA": data and str(data)}).invoke(app, ["reproduce", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_everything_from_nothing(tmp_path, monkeypatch):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    run("all", out, data=data)
    for name in EXPERIMENTS:
        for suffix in ("md", "csv", *["svg"] * name.startswith("figure")):
            assert (out / f"{name}.{suffix}").stat().st_size > 100, (name, suffix)
        tables = (out / f"{name}.md").read_text().partition("## ")[2].partition("## What the paper claims")[0]
        assert "–" not in tables, f"{name} has gaps"
    assert {record["status"] for record in read_records(out).values()} == {"done"}
    before = (out / "records.jsonl").read_bytes()
    monkeypatch.setattr("dualt.reproduce.figures.write_figure", lambda *_: [])  # drawing takes long
    shown = run("table1 --show", out)
    assert "95.77 ± 0.11" in shown.stdout
    assert "| not judged at this profile |" in shown.stdout
    run("all", out, data=data)
    assert before == (out / "records.jsonl").read_bytes()


def test_other_matrices_and_methods(tmp_path):
    data = write_all(tmp_path / "data")
    sets = ("noise=pair-45", "methods=ce,forward,dividemix", "estimators=dual-t-held-out,true", "sizes=500")
    shown = run("table1 --datasets mnist", tmp_path, *sets, "network=mlp", "width=1.0", data=data)
    for row in ("CE", "DT held out Forward", "true T Forward", "dividemix"):
        assert f"| {row} |" in shown.stdout
    records = read_records(tmp_path).values()
    assert {record["status"] for record in records} == {"done"}
    assert {record["n_samples"] for record in records} == {120}, "there are no more"
    assert next(record for record in records if record["spec"]["estimator"] == "true")["l1_error"] == 0


def test_the_grid_can_be_cut_and_widened(tmp_path):
    sets = ("seeds=1", "sizes=[80]", "noise=sym-30", "estimators=t,dual-t,oracle", "datasets=['synthetic']")
    result = run("figure2 --json", tmp_path, *sets)
    assert result.stderr == ""
    (answer,) = json.loads(result.stdout)
    found = {row["estimator"]: row for row in answer["results"]}
    assert list(found) == ["t", "dual-t", "oracle"]
    assert {(row["noise"], row["n_samples"], row["n_seeds"]) for row in answer["results"]} == {("sym-30", 80, 1)}
    assert found["oracle"]["mean"] < found["t"]["mean"]


SMALL = ("seeds=1", "sizes=60")


def test_show_runs_nothing(tmp_path):
    run("figure2", tmp_path, *SMALL, "noise=sym-20")
    records = (tmp_path / "records.jsonl").read_bytes()
    result = run("figure2 --show", tmp_path, *SMALL, "noise=sym-20,pair-45")
    assert "| pair-45 | 60 | – | – | – | – | 0 |" in result.stdout
    assert (tmp_path / "records.jsonl").read_bytes() == records
    result = run("figure2 --show", tmp_path / "typo", code=2)
    assert "Expected records to show" in result.stderr
    assert not (tmp_path / "typo").exists()


def test_data_that_is_not_here_is_left_out(tmp_path):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    sets = ("noise=sym-20", "methods=ce")
    result = run("table1 --datasets mnist", out, *sets, code=2, data=tmp_path)
    assert "left out: mnist" in result.stderr
    assert not out.exists()
    (data / "cifar-10-batches-bin").rename(data / "elsewhere")
    assert "left out: cifar10" in run("table1 --datasets mnist,cifar10", out, *sets, data=data).stderr
    before = (out / "table1.md").read_text()
    run("table1 --datasets mnist", out, *sets, code=2, data=tmp_path)
    assert (out / "table1.md").read_text() == before
    run("table1 --datasets mnist", out, "noise=given", "methods=ce", data=data)


def test_all_leaves_out_what_has_none_of_the_data_sets(tmp_path):
    result = run("all --datasets mnist --show --json", tmp_path, code=2)
    assert [word for word in EXPERIMENTS if word in result.stderr] == ["figure3", "table1"]
    assert "No experiment" in run("all --datasets digits", tmp_path, code=2).stderr


def test_every_setting_can_be_changed(tmp_path):
    changes = ("momentum=0.5", "schedule=one-cycle", "width=0.5", "batch_norm=true", "whole_validation=true",
               "pool=100", "recipes.forward.momentum=0.9", "estimator_options.t.anchor=quantile")  # fmt: skip
    result = run("figure2", tmp_path, *SMALL, "noise=sym-20", "estimators=t", "methods=forward", *changes)
    assert "momentum=0.5" in result.stdout
    records = read_records(tmp_path).values()
    assert {record["status"] for record in records} == {"done"}
    by_method = {record["spec"]["method"]: record for record in records}
    assert by_method["ce"]["recipe"]["momentum"] == 0.5
    assert by_method["ce"]["recipe"]["schedule"] == "one-cycle"
    assert by_method["forward"]["recipe"]["momentum"] == 0.9
    assert by_method["forward"]["spec"]["estimator_options"] == {"anchor": "quantile"}
    assert (by_method["ce"]["n_samples"], by_method["ce"]["n_validation"]) == (60, 20)


def test_a_failed_run_is_an_exit_code(tmp_path):
    assert "tries them again" in run("figure2", tmp_path, "seeds=1", "sizes=[0.5]", code=1).stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("figure22", "Did you mean 'figure2'"),
        ("figure2 --profile papr", "Did you mean 'paper'"),
        ("figure2 --set epohcs=3", "Did you mean 'epochs'"),
        ("figure2 --set epochs", "NAME=VALUE"),
        ("figure2 --set methods=forwrd", "Did you mean 'forward'"),
        ("figure2 --n-jobs 0", "at least one process"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(tmp_path, command, words):
    assert words in run(command, tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()
