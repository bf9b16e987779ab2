"""Shards and threads on the command line: the results of whole files, or one line that names the shard."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import dualt
from dualt.cli import app
from dualt.cli.progress import rows_progress

N = 600


@pytest.fixture
def data(tmp_path):
    """The same data as two whole files, as folders of shards, as Parquet, and as CSV."""
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 3, N)
    noisy = dualt.noise.corrupt(clean, dualt.noise.symmetric(3, 0.2), rng)
    probs = rng.dirichlet(np.ones(3), N) * 0.3 + 0.7 * np.eye(3)[clean]
    probs /= probs.sum(axis=1, keepdims=True)
    np.save(tmp_path / "probs.npy", probs)
    np.save(tmp_path / "labels.npy", noisy)
    frame = pd.DataFrame(probs, columns=["p_0", "p_1", "p_2"]).assign(given=noisy)
    frame.to_parquet(tmp_path / "whole.parquet", row_group_size=100)
    for folder in ("p", "y", "tables"):
        (tmp_path / folder).mkdir()
    for number, rows in enumerate(np.array_split(np.arange(N), 11)):
        np.save(tmp_path / "p" / f"part{number}.npy", probs[rows])
        np.save(tmp_path / "y" / f"part{number}.npy", noisy[rows])
        frame.iloc[rows].to_parquet(tmp_path / "tables" / f"part-{number}.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def inputs(data):
    tables = ["--label", "given", "--probs", "p_*"]
    return {
        "pattern": [data / "p" / "*.npy", data / "y" / "part*.npy"],
        "folders": [data / "p", data / "y"],
        "tables": [data / "tables", "--format", "parquet", *tables],
        "one table": [data / "whole.parquet", *tables],
        "threads": [data / "p", data / "y", "--n-jobs", "2"],
        "whole, threads": [data / "probs.npy", data / "labels.npy", "--n-jobs", "2"],
    }


KINDS = ["pattern", "folders", "tables", "one table", "threads", "whole, threads"]


def same_estimate(found, whole):
    """Compare two estimates as JSON; they agree up to rounding."""
    found, whole = json.loads(found.stdout), json.loads(whole.stdout)
    assert found.keys() == whole.keys()
    for name in ("estimator", "n_samples", "class_names"):
        assert found[name] == whole[name]
    np.testing.assert_allclose(found["transition"], whole["transition"], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_from_shards_are_those_of_the_whole(data, kind):
    whole = run("estimate", data / "probs.npy", data / "labels.npy", "--json")
    found = run("estimate", *inputs(data)[kind], "--json")
    assert found.exit_code == 0, found.stderr
    same_estimate(found, whole)
    assert found.stderr == ""


@pytest.mark.parametrize("kind", KINDS)
def test_issues_from_shards_are_those_of_the_whole(data, kind):
    run("issues", data / "probs.npy", data / "labels.npy", "-o", data / "whole.csv")
    found = run("issues", *inputs(data)[kind], "-o", data / "found.csv")
    assert found.exit_code == 0, found.stderr
    whole = pd.read_csv(data / "whole.csv")
    pd.testing.assert_frame_equal(pd.read_csv(data / "found.csv"), whole, atol=2e-6)
    assert len(whole) > 50
    assert not list(data.glob(".*"))


def test_class_names_from_columns_and_from_a_file(data):
    frame = pd.read_parquet(data / "whole.parquet")
    names = ["ant", "bee", "cat"]
    frame.columns = [*(f"p_{name}" for name in names), "given"]
    frame["given"] = np.array(names)[frame["given"]]
    frame.to_parquet(data / "named.parquet")
    tables = ["--label", "given", "--probs", "p_*", "--json"]
    assert json.loads(run("estimate", data / "named.parquet", *tables).stdout)["class_names"] == names
    for number, rows in enumerate(np.array_split(np.arange(N), 11)):
        np.save(data / "y" / f"part{number}.npy", frame["given"].to_numpy(str)[rows])
    (data / "names.txt").write_text("ant\nbee\ncat\n")
    for more in ([], ["--classes", data / "names.txt"]):
        found = run("estimate", data / "p", data / "y", "--json", *more)
        assert json.loads(found.stdout)["class_names"] == names


def test_verified_labels_and_the_report_work_over_shards(data):
    audited = run("audit", data / "labels.npy", "--size", 40, "-o", data / "audit.csv")
    assert audited.exit_code == 0
    table = pd.read_csv(data / "audit.csv")
    table["true"] = table["given"]
    table.to_csv(data / "audit.csv", index=False)
    options = ["--verified", data / "audit.csv", "--report", data / "report.html", "--json"]
    found = run("estimate", data / "p", data / "y", *options)
    whole = run("estimate", data / "probs.npy", data / "labels.npy", *options)
    assert found.exit_code == 0, found.stderr
    same_estimate(found, whole)
    assert (data / "report.html").exists()


def refused(result, message):
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert re.search(message, result.stderr), result.stderr


def test_bad_shards_are_one_line_that_names_them_and_nothing_is_written(data):
    issues = [data / "p" / "*.npy", data / "y", "-o", data / "issues.csv"]
    refused(run("issues", data / "p" / "q*.npy", data / "y"), r"match '.*q\*\.npy', got none")
    (data / "y" / "part10.npy").unlink()
    refused(run("issues", *issues), "got 11 for .* and 10 for")
    np.save(data / "y" / "part10.npy", np.full(N // 11, 7))
    refused(run("issues", *issues), r"In .*part10\.npy.*got 7 at row")
    path = data / "p" / "part3.npy"
    path.write_bytes(path.read_bytes()[:200])
    refused(run("issues", *issues), r"part3\.npy.*header promises")
    assert not (data / "issues.csv").exists()
    assert not list(data.glob(".*"))
    refused(run("estimate", data / "probs.npy", data / "labels.npy", "--n-jobs", 0), "Expected n_jobs")
    refused(run("estimate", data / "p", data / "y", "--format", "csv"), r"end in \.csv, got the folder")


def test_the_next_step_can_be_typed_as_it_is_shown(data):
    shown = run("estimate", data / "p" / "*.npy", data / "y").stdout
    assert f"dualt issues '{data}/p/*.npy' {data}/y " in shown
    shown = run("issues", *inputs(data)["tables"]).stdout
    assert f"dualt issues {data}/tables --label given --probs 'p_*' --format parquet -o issues.csv" in shown


def test_progress_shows_rows_and_speed_on_a_terminal_only(monkeypatch, capsys):
    with rows_progress() as advance:
        assert advance is None
    monkeypatch.setattr(Console, "is_terminal", property(lambda _: True))
    with rows_progress() as advance:
        for done in (100, 500, 1000, 500, 1000):
            advance(done, 1000)
    assert re.search("pass 2.*1,000 of 1,000 rows", capsys.readouterr().err)
