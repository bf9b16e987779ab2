"""`dualt reproduce` as a user runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from dualt.cli import _Commands
from dualt.cli.reproduce import reproduce
from dualt.reproduce import PAPER_EXPERIMENTS, read_records

sys.path.insert(0, str(Path(__file__).parent.parent / "reproduce"))
from tiny_data import write_all

app = typer.Typer(cls=_Commands, pretty_exceptions_enable=False)
app.command()(reproduce)
app.callback()(lambda: None)


def run(*arguments, code=0, data=None):
    result = CliRunner(env={"DUALT_DATA": data and str(data)}).invoke(app, ["reproduce", *map(str, arguments)])
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
    run("all", "--profile", "smoke", "--out", out, data=data)
    for name in PAPER_EXPERIMENTS:
        for suffix in ("md", "tex", "csv", "png", "svg"):
            assert (out / f"{name}.{suffix}").stat().st_size > 100, (name, suffix)
        assert "–" not in (out / f"{name}.md").read_text().partition("## ")[2], f"{name} has gaps"
    records = read_records(out)
    assert {record["status"] for record in records.values()} == {"done"}
    before = (out / "records.jsonl").stat().st_mtime_ns
    monkeypatch.setattr("dualt.reproduce.figures.write_figures", lambda *_: [])  # they are drawn, which takes long
    shown = run("table1", "--show", "--profile", "smoke", "--out", out)
    assert "95.77 ± 0.11" in shown.stdout
    assert "| not judged at this profile |" in shown.stdout
    run("all", "--profile", "smoke", "--out", out, data=data)
    assert before == (out / "records.jsonl").stat().st_mtime_ns


def test_past_the_paper(tmp_path):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    common = ["--profile", "smoke", "--out", out]
    shown = run(
        "floor",
        *common,
        "--datasets",
        "digits,mnist",
        "--set",
        "noise=clean,random-30",
        "--set",
        "sizes=90,500",
        "--set",
        "estimators=t,dual-t-in-sample,clean-count,oracle",
        data=data,
    )
    assert "All, means over 8 of 8 points" in shown.stdout
    # There are 120 images: of more than there are, all are taken.
    assert "| clean | 120 |" in shown.stdout
    shown = run(
        "better-matrices",
        *common,
        "--datasets",
        "mnist",
        "--set",
        "noise=pair-45",
        "--set",
        "methods=ce,forward,volminnet",
        "--set",
        "estimators=dual-t-in-sample,true",
        data=data,
    )
    for row in ("CE", "DT in sample Forward", "true T Forward", "VolMinNet"):
        assert f"| {row} |" in shown.stdout
    records = read_records(out).values()
    assert {record["status"] for record in records} == {"done"}
    learned = next(record for record in records if record["spec"]["method"] == "volminnet")
    assert len(learned["learned_transition"]) == 10
    assert learned["learned_l1_error"] > 0
    true = next(record for record in records if record["spec"]["estimator"] == "true")
    assert true["l1_error"] == 0
    trained = [record["recipe"] for record in records if "recipe" in record]
    assert {(recipe["optimizer"], recipe["learning_rate"]) for recipe in trained} == {("adam", 1e-3)}


def test_the_grid_can_be_cut_and_widened(tmp_path):
    arguments = [
        "figure2",
        "--profile",
        "smoke",
        "--out",
        tmp_path,
        "--json",
        "--set",
        "seeds=1",
        "--set",
        "sizes=[80]",
    ]
    result = run(*arguments, "--set", "noise=sym-30", "--set", "estimators=t,dual-t,oracle")
    (answer,) = json.loads(result.stdout)
    found = {row["estimator"]: row for row in answer["results"]}
    assert list(found) == ["t", "dual-t", "oracle"]
    assert {(row["noise"], row["n_samples"], row["n_seeds"]) for row in answer["results"]} == {("sym-30", 80, 1)}
    assert found["oracle"]["mean"] < found["t"]["mean"]


FIGURE2 = ["figure2", "--profile", "smoke", "--set", "seeds=1", "--set", "sizes=60"]


def test_show_runs_nothing(tmp_path):
    run(*FIGURE2, "--set", "noise=sym-20", "--out", tmp_path)
    records = (tmp_path / "records.jsonl").stat().st_mtime_ns
    result = run(*FIGURE2, "--set", "noise=sym-20,pair-45", "--out", tmp_path, "--show")
    assert "| pair-45 | 60 | – | – | – | – | 0 |" in result.stdout
    assert (tmp_path / "records.jsonl").stat().st_mtime_ns == records


def test_show_refuses_a_folder_that_has_nothing_to_show(tmp_path):
    result = run("figure2", "--show", "--profile", "smoke", "--out", tmp_path / "typo", code=2)
    assert "Expected records to show" in result.stderr
    assert not (tmp_path / "typo").exists()


def test_data_that_is_not_here_is_left_out_with_a_word(tmp_path):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    common = ["table1", "--profile", "smoke", "--datasets", "mnist", "--set", "noise=sym-20", "--set", "methods=ce"]
    result = run(*common, "--out", out, code=2, data=tmp_path)
    assert "left out: mnist" in result.stderr
    assert not out.exists()
    run(*common, "--out", out, data=data)
    before = (out / "table1.md").read_text()
    run(*common, "--out", out, code=2, data=tmp_path)
    assert (out / "table1.md").read_text() == before, "what is done stays on the table"
    both = ["mnist,cifar10" if word == "mnist" else word for word in common]
    (data / "cifar-10-batches-bin").rename(data / "elsewhere")
    assert "left out: cifar10" in run(*both, "--out", out, data=data).stderr


def test_a_matrix_of_another_size_is_refused_before_any_run(tmp_path):
    np.save(tmp_path / "T3.npy", np.eye(3))
    result = run(*FIGURE2, "--set", f"noise={tmp_path / 'T3.npy'}", "--out", tmp_path / "out", code=2)
    assert "Expected a 2×2 matrix for synthetic, got 3×3 in T3" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_line_per_run_where_there_is_no_terminal(tmp_path):
    arguments = ["figure2", "--profile", "smoke", "--set", "seeds=1", "--set", "noise=sym-20", "--set", "sizes=60"]
    lines = run(*arguments, "--out", tmp_path).stderr.splitlines()
    assert [line.partition(" runs")[0] for line in lines] == [f"{done} of 5" for done in range(6)]
    assert lines[-1].endswith(": synthetic sym-20 n=60 seed 0 clean-count-held-out")
    assert run(*arguments, "--out", tmp_path / "other", "--json").stderr == ""


def test_verbose_has_a_line_per_epoch(tmp_path):
    from dualt.cli import app as whole

    words = [
        "reproduce",
        "figure2",
        "--profile",
        "smoke",
        "--set",
        "seeds=1",
        "--set",
        "noise=sym-20",
        "--set",
        "sizes=60",
    ]
    result = CliRunner().invoke(whole, ["-v", *words, "--out", str(tmp_path)])
    assert "synthetic sym-20 n=60 seed 0 ce, epoch 2" in result.stderr


def test_stopped_it_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dualt.reproduce.run_sweep", stop)
    monkeypatch.setattr(sys, "argv", ["/some/where/dualt", "reproduce", "figure2", "--set", "sizes=[60, 80]"])
    result = run("figure2", "--profile", "smoke", "--out", tmp_path, code=130)
    assert "To continue: dualt reproduce figure2 --set 'sizes=[60, 80]'" in result.stderr


def test_all_leaves_out_what_has_none_of_the_data_sets(tmp_path):
    words = ["all", "--profile", "smoke", "--datasets", "mnist", "--show", "--json", "--out", tmp_path]
    result = run(*words, code=2)
    assert [word for word in PAPER_EXPERIMENTS if word in result.stderr] == ["figure3", "table1"]
    assert "No experiment" in run("all", "--datasets", "digits", "--out", tmp_path, code=2).stderr


def test_labels_that_are_taken_as_they_are_are_called_so(tmp_path):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    result = run(
        "table1",
        "--profile",
        "smoke",
        "--datasets",
        "mnist",
        "--set",
        "noise=given",
        "--set",
        "methods=ce",
        "--out",
        out,
        data=data,
    )
    assert "given: labels as they are" in result.stderr
    assert "| CE |" in result.stdout


def test_every_setting_can_be_changed(tmp_path):
    changes = [
        "momentum=0.5",
        "schedule=one-cycle",
        "width=0.5",
        "batch_norm=true",
        "whole_validation=true",
        "pool=100",
        "recipes.forward.momentum=0.9",
        "estimator_options.t.anchor=quantile",
    ]
    sets = [word for change in changes for word in ("--set", change)]
    result = run(
        "figure2",
        "--profile",
        "smoke",
        "--set",
        "seeds=1",
        "--set",
        "noise=sym-20",
        "--set",
        "estimators=t",
        "--set",
        "methods=forward",
        "--set",
        "sizes=60",
        "--out",
        tmp_path,
        *sets,
    )
    assert "momentum (0.5)" in result.stdout
    records = read_records(tmp_path).values()
    assert {record["status"] for record in records} == {"done"}
    by_method = {record["spec"]["method"]: record for record in records}
    assert by_method["ce"]["recipe"]["momentum"] == 0.5
    assert by_method["ce"]["recipe"]["schedule"] == "one-cycle"
    assert by_method["forward"]["recipe"]["momentum"] == 0.9
    assert by_method["forward"]["spec"]["estimator_options"] == {"anchor": "quantile"}
    assert (by_method["ce"]["n_samples"], by_method["ce"]["n_validation"]) == (60, 20)


def test_a_failed_run_is_an_exit_code(tmp_path):
    arguments = ["figure2", "--profile", "smoke", "--out", tmp_path, "--set", "seeds=1", "--set", "sizes=[0.5]"]
    result = run(*arguments, code=1)
    assert "tries them again" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["figure22"], "Did you mean 'figure2'"),
        (["figure2", "--profile", "papr"], "Did you mean 'paper'"),
        (["figure2", "--set", "epohcs=3"], "Did you mean 'epochs'"),
        (["figure2", "--set", "epochs"], "field=value"),
        (["figure2", "--set", "methods=forwrd"], "Did you mean 'forward'"),
        (["figure2", "--n-jobs", "0"], "at least one process"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(tmp_path, arguments, words):
    result = run(*arguments, "--out", tmp_path / "out", code=2)
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_version_is_refused(tmp_path):
    records = tmp_path / "records.jsonl"
    records.write_text('{"format": 99, "id": "a"}')
    for extra in ([], ["--show"]):
        result = run("figure2", "--profile", "smoke", "--out", tmp_path, *extra, code=2)
        assert "Expected records of format 2" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [records.name]


def test_help_has_an_example():
    assert "Example: dualt reproduce table1" in " ".join(run("--help").stdout.replace("`", "").split())
