"""`dualt reproduce` as a user runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from dualt.cli import _Commands
from dualt.cli.reproduce import reproduce
from dualt.reproduce import PAPER_EXPERIMENTS, Store

sys.path.insert(0, str(Path(__file__).parent.parent / "reproduce"))
from tiny_data import write_all

app = typer.Typer(cls=_Commands, pretty_exceptions_enable=False)
app.command()(reproduce)
app.callback()(lambda: None)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
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
def test_everything_from_nothing(tmp_path):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    run("all", "--profile", "smoke", "--data-dir", data, "--out", out)
    for name in PAPER_EXPERIMENTS:
        for suffix in ("md", "tex", "csv", "png", "svg"):
            assert (out / f"{name}.{suffix}").stat().st_size > 100, (name, suffix)
        assert "–" not in (out / f"{name}.md").read_text().partition("## ")[2], f"{name} has gaps"
    records = Store(out).read_all()
    assert {record["status"] for record in records.values()} == {"done"}
    before = {path: path.stat().st_mtime_ns for path in (out / "records").iterdir()}
    shown = run("table1", "--show", "--profile", "smoke", "--out", out)
    assert "95.77 ± 0.11" in shown.stdout
    run("all", "--profile", "smoke", "--data-dir", data, "--out", out)
    assert before == {path: path.stat().st_mtime_ns for path in (out / "records").iterdir()}


def test_past_the_paper(tmp_path):
    data, out = write_all(tmp_path / "data"), tmp_path / "out"
    common = ["--profile", "smoke", "--data-dir", data, "--out", out]
    shown = run("floor", *common, "--datasets", "digits,mnist", "--noise", "clean,random-30", "--set", "sizes=90,500",
                "--estimators", "t,dual-t-in-sample,clean-count,oracle")  # fmt: skip
    assert "All, means over 8 of 8 points" in shown.stdout
    # There are 120 images: of more than there are, all are taken.
    assert "| clean | 120 |" in shown.stdout
    shown = run("better-matrices", *common, "--datasets", "mnist", "--noise", "pair-45", "--methods",
                "ce,forward,volminnet", "--estimators", "dual-t-in-sample,true")  # fmt: skip
    for row in ("CE", "DT in sample Forward", "true T Forward", "VolMinNet"):
        assert f"| {row} |" in shown.stdout
    records = Store(out).read_all().values()
    assert {record["status"] for record in records} == {"done"}
    learned = next(record for record in records if record["spec"]["method"] == "volminnet")
    assert len(learned["learned_transition"]) == 10
    assert learned["learned_l1_error"] > 0
    true = next(record for record in records if record["spec"]["estimator"] == "true")
    assert true["l1_error"] == 0
    trained = [record["recipe"] for record in records if "recipe" in record]
    assert {(recipe["optimizer"], recipe["learning_rate"]) for recipe in trained} == {("adam", 1e-3)}


def test_the_grid_can_be_cut_and_widened(tmp_path):
    arguments = ["figure2", "--profile", "smoke", "--out", tmp_path, "--json", "--seeds", 1, "--set", "sizes=[80]"]
    result = run(*arguments, "--noise", "sym-30", "--estimators", "t,dual-t,oracle")
    (answer,) = json.loads(result.stdout)
    found = {row["estimator"]: row for row in answer["results"]}
    assert list(found) == ["t", "dual-t", "oracle"]
    assert {(row["noise"], row["n_samples"], row["n_seeds"]) for row in answer["results"]} == {("sym-30", 80, 1)}
    assert found["oracle"]["mean"] < found["t"]["mean"]


def test_show_runs_nothing(tmp_path):
    result = run("figure2", "--show", "--profile", "smoke", "--out", tmp_path)
    assert "| sym-20 | 60 | – | – | 0 |" in result.stdout
    assert list((tmp_path / "records").iterdir()) == []


def test_data_that_is_not_here_is_left_out_with_a_word(tmp_path):
    out = tmp_path / "out"
    result = run("figure3", "--profile", "smoke", "--data-dir", tmp_path, "--out", out, "--datasets", "mnist")
    assert "left out: mnist" in result.stderr
    assert list((out / "records").iterdir()) == []


def test_a_failed_run_is_an_exit_code(tmp_path):
    arguments = ["figure2", "--profile", "smoke", "--out", tmp_path, "--seeds", 1, "--set", "sizes=[0.5]"]
    result = run(*arguments, code=1)
    assert "--retry-failed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["figure22"], "Did you mean 'figure2'"),
        (["figure2", "--profile", "papr"], "Did you mean 'paper'"),
        (["figure2", "--set", "epohcs=3"], "Did you mean 'epochs'"),
        (["figure2", "--set", "epochs"], "field=value"),
        (["figure2", "--methods", "forwrd"], "Did you mean 'forward'"),
        (["figure2", "--n-jobs", "0"], "at least one process"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(tmp_path, arguments, words):
    result = run(*arguments, "--out", tmp_path / "out", code=2)
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_version_is_refused(tmp_path):
    records = tmp_path / "records"
    records.mkdir()
    (records / "a.json").write_text('{"format": 99, "id": "a"}')
    for extra in ([], ["--show"]):
        result = run("figure2", "--profile", "smoke", "--out", tmp_path, *extra, code=2)
        assert "format 99" in result.stderr
    assert [path.name for path in records.iterdir()] == ["a.json"]


def test_help_has_an_example():
    assert "Example: dualt reproduce table1" in " ".join(run("--help").stdout.replace("`", "").split())
